import { goalLine, memoryLine, planLineFrom, spaceLine } from "../../src/agent/context/agent-state.ts";
import { renderInstructions } from "../../src/agent/context/instructions.ts";
import { activeRunLines } from "../../src/agent/context/timeline/compose-timeline.ts";
import { entryLines, marksOf } from "../../src/agent/context/timeline/history.ts";
import type { TimelineSnapshot } from "../../src/agent/context/timeline/snapshot.ts";
import { activeSpaceLine, triggerLines } from "../../src/agent/context/timeline/trigger.ts";

/**
 * The layout that the first design wrote down, to the letter: everything in the system prompt and made anew each time,
 * in the order of its blocks: identity with the time, trigger, active space, history, spaces, state, instructions.
 */
export const literalLayout = (snapshot: TimelineSnapshot): { instructions: string; messages: [] } => {
  const { state, now, base, toolRules, trigger } = snapshot;
  const [identity = "", ...instructions] = renderInstructions(state.agentId, { ...base, toolRules }).split("\n\n");
  const marks = marksOf(snapshot);
  const list = (heading: string, lines: string[]): string =>
    [`${heading}:`, ...lines.map((line) => `  - ${line}`)].join("\n");
  const blocks = [
    `${identity}\n  currentTime: "${now}"`,
    triggerLines(trigger, base.messaging).join("\n"),
    activeSpaceLine(snapshot.activeSpace),
    ...snapshot.histories.map(({ space, entries }) =>
      [`SPACE HISTORY ("${space.name}"):`, ...entries.flatMap((entry) => entryLines(entry, marks))].join("\n"),
    ),
    list(
      "YOUR SPACES",
      state.spaces.map((space) => spaceLine(space, state.agentId, space.id === snapshot.activeSpace?.id)),
    ),
    list("GOALS", state.goals.map(goalLine)),
    list("MEMORIES", state.memories.map(memoryLine)),
    list(
      "PLANS",
      state.plans.map((plan) => planLineFrom(plan, now)),
    ),
    activeRunLines(snapshot.activeRuns).join("\n"),
    ...instructions,
  ];
  return { instructions: blocks.join("\n\n"), messages: [] };
};
