import { pendingCallOf } from "../action-result.ts";
import { outcomeInWords } from "../outcome-in-words.ts";
import { answer, type Doing, enter, ruleForPeople, type ToolCall, type Turn, toolNamed } from "../turn.ts";
import { inputFrom } from "../words.ts";

/** Calls a tool in the message's space and says there what came of it: `words` where all went well. */
export function* callTool(turn: Turn, call: ToolCall, words?: string): Doing {
  if (!(yield* enter(turn.cycle, turn.event.spaceId))) {
    return `could not use ${call.toolName}, since the space cannot be entered`;
  }
  const result = yield call;
  const done = result.ok && pendingCallOf(result) === undefined;
  const said = done && words !== undefined ? words : outcomeInWords(call.toolName, call.input, result);
  return yield* answer(turn, said, `used ${call.toolName}`);
}

/** "use get_weather with city: Basra": any tool, in the words of its own properties. */
export const useNamed = ruleForPeople(
  /^\s*(?:use|call|run)\s+(?:the\s+)?(?:tool\s+)?([\w-]+)(?:\s*(?::|\b(?:with|for|on)\b)\s*(.+))?[\s.!]*$/is,
  (turn, name = "", words = "") => {
    const tool = toolNamed(turn, name);
    return tool && callTool(turn, { toolName: tool.name, input: inputFrom(words, tool.properties) });
  },
);
