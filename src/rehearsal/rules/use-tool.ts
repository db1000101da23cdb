import { pendingCallOf } from "../action-result.ts";
import { outcomeInWords } from "../outcome-in-words.ts";
import type { ToolView } from "../tool-view.ts";
import { answer, type Doing, enter, type Rule, type ToolCall, type Turn } from "../turn.ts";
import { inputFrom } from "../words-as-data.ts";

/** Calls a tool where it was asked to, and says there what came of it, in `words` where all went well. */
export function* callTool(turn: Turn, call: ToolCall, words?: string): Doing {
  if (!(yield* enter(turn.cycle, turn.event.spaceId))) {
    return `could not use ${call.toolName}, since the space cannot be entered`;
  }
  const result = yield call;
  const done = result.ok && pendingCallOf(result) === undefined;
  const said = done && words !== undefined ? words : outcomeInWords(call.toolName, call.input, result);
  return yield* answer(turn, said, `used ${call.toolName}`);
}

export const toolNamed = ({ cycle }: Turn, name: string): ToolView | undefined =>
  cycle.tools.find((tool) => tool.name.toLowerCase() === name.toLowerCase());

/** "use get_weather with city: Basra": any tool, in the words of its own properties. */
export const useNamed: Rule = {
  forAgents: false,
  match: (turn) => {
    const [, name, words = ""] =
      /^\s*(?:use|call|run)\s+(?:the\s+)?(?:tool\s+)?([\w-]+)(?:\s*(?::|\b(?:with|for|on)\b)\s*(.+))?[\s.!]*$/is.exec(
        turn.request,
      ) ?? [];
    const tool = name === undefined ? undefined : toolNamed(turn, name);
    return tool && callTool(turn, { toolName: tool.name, input: inputFrom(words, tool.properties) });
  },
};
