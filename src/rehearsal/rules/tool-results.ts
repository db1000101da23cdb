import { outcomeInWords } from "../outcome-in-words.ts";
import type { PromptView, ToolResultEvent } from "../prompt-view.ts";
import { type CycleState, type Doing, type Handling, sayIn } from "../turn.ts";

function* tell(cycle: CycleState, spaceId: string, text: string): Doing {
  return (yield* sayIn(cycle, spaceId, text)) ? "told what came of it" : "could not tell what came of it";
}

/** What came of a call that was under way is said where the call was made. */
export const tellResult = (event: ToolResultEvent, view: PromptView, cycle: CycleState): Handling => {
  const { tool, toolCallId, result } = event;
  const call = view.pending.get(toolCallId);
  const spaceId = call?.spaceId ?? view.activeSpaceId;
  const known = view.spaces.some(({ id }) => id === spaceId);
  if (spaceId === undefined || !known) return { silent: `I am not where I called ${tool} any more` };
  return { doing: tell(cycle, spaceId, outcomeInWords(tool, call?.input, result)) };
};
