import type { AgentToolCall, ToolCallOutcome } from "../../protocol/rpc.ts";
import type { ToolCall } from "../../protocol/tool-call.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { sameJson } from "../../shared/same-json.ts";
import { maxToolErrorCharacters, maxToolInputBytes, maxToolOutputBytes } from "../bounds.ts";
import type { CallOutcome } from "../types.ts";

/** The state of a call, by what its agent says of it. Pure; `verdict.ts` judges what people say. */

const over = new Set<ToolCall["status"]>(["complete", "error", "expired", "canceled"]);

/** Nothing changes a call that is over. */
export const isOver = (status: ToolCall["status"]): boolean => over.has(status);

const bytesOf = (json: string): number => new TextEncoder().encode(json).length;

/** The beginning of `text` that `bytes` of UTF-8 hold, never half of a character. */
const beginning = (text: string, bytes: number): string => {
  const room = new Uint8Array(bytes);
  return text.slice(0, new TextEncoder().encodeInto(text, room).read);
};

/** The output as the log keeps it: of a long one the beginning of its JSON, with a note of how much there is. */
const shortened = (output: unknown): unknown => {
  const json = JSON.stringify(output) ?? "null";
  const bytes = bytesOf(json);
  if (bytes <= maxToolOutputBytes) return output;
  return {
    note: `The first ${maxToolOutputBytes} of ${bytes} bytes of the output's JSON (maxToolOutputBytes)`,
    beginning: beginning(json, maxToolOutputBytes),
  };
};

const outcomeOf = ({ status, output, error }: AgentToolCall): Pick<ToolCall, "status" | "output" | "error"> => ({
  status,
  ...(output === undefined ? {} : { output: shortened(output) }),
  ...(error === undefined
    ? {}
    : { error: { code: error.code, message: error.message.slice(0, maxToolErrorCharacters) } }),
});

/** A call as it is first shown. */
export const begun = (said: AgentToolCall): ToolCall => {
  const { toolCallId: id, name, input = null, status, awaits } = said;
  if (status === "requires_action" && !awaits) {
    throw new ColloquyError("invalid_request", "A call that requires action says what it awaits");
  }
  const bytes = bytesOf(JSON.stringify(input));
  if (bytes > maxToolInputBytes) {
    throw new ColloquyError(
      "payload_too_large",
      `The input of a call that shows in a space has at most ${maxToolInputBytes} bytes of JSON (maxToolInputBytes); this one has ${bytes}`,
    );
  }
  return { id, name, input, ...outcomeOf(said), ...(awaits ? { awaits: { ...awaits, answers: [] } } : {}) };
};

/**
 * A call after its agent has said how it stands; the same one where that is no news. Only people take a call out of
 * `requires_action` towards its execution: an agent that was replayed repeats itself.
 */
export const advanced = (call: ToolCall, said: AgentToolCall): ToolCall => {
  if (isOver(call.status) || said.status === "requires_action") return call;
  if (call.status === "requires_action" && said.status === "running") return call;
  if (call.status === "requires_action" && said.status === "complete") {
    throw new ColloquyError("conflict", `${call.id} waits for people: it is not complete before they have answered`);
  }
  const next: ToolCall = { ...call, ...outcomeOf(said) };
  return sameJson(next, call) ? call : next;
};

/**
 * The decision of the event at `seq` about a call, as its agent is told of it. `by` names everybody who approved, or the one
 * who rejected or answered. `note` is that person's, or says why there is no answer.
 */
export const toldOutcome = (seq: number, toolCall: ToolCall, outcome: CallOutcome): ToolCallOutcome => {
  const answers = outcome === "expired" ? [] : (toolCall.awaits?.answers ?? []);
  const deciding = outcome === "rejected" ? answers.slice(-1) : answers;
  const note = outcome === "failed" ? toolCall.error?.message : deciding.at(-1)?.note;
  return {
    seq,
    toolCallId: toolCall.id,
    outcome,
    ...(outcome === "answered" ? { output: toolCall.output } : {}),
    ...(note === undefined ? {} : { note }),
    by: deciding.map(({ entityId: id, name, note: word }) => ({
      id,
      name,
      ...(word === undefined ? {} : { note: word }),
    })),
  };
};
