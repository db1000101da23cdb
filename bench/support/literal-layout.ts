import { renderInstructions } from "../../src/agent/context/instructions.ts";
import { composeTimeline, type TimelineSnapshot } from "../../src/agent/context/timeline/compose-timeline.ts";

const order = ["trigger", "active_space", "history", "spaces", "goals", "memories", "plans", "active_runs"];

/**
 * The layout that the first design wrote down, to the letter: everything in the system prompt and made anew each time.
 * Its blocks in order: identity with the time, trigger, active space, history, spaces, state, instructions.
 */
export const literalLayout = (snapshot: TimelineSnapshot): { instructions: string; messages: [] } => {
  const { state, now, config } = snapshot;
  const [identity = "", ...instructions] = renderInstructions(state.agentId, config).split("\n\n");
  const { sections } = composeTimeline(snapshot);
  const blocks = order.flatMap((name) => sections.filter((each) => each.name === name).map(({ text }) => text));
  return {
    instructions: [`${identity}\n  currentTime: "${now}"`, ...blocks, ...instructions].join("\n\n"),
    messages: [],
  };
};
