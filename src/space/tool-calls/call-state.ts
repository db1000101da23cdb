import type { AgentToolCall, ToolCallOutcome } from "../../protocol/rpc.ts";
import { textBytes } from "../../protocol/text.ts";
import { ApprovalResult, type AwaitedAnswer, type ToolAnswer, type ToolCall } from "../../protocol/tool-call.ts";
import { jsonHash } from "../../shared/canonical-json.ts";
import { ColloquyError, type Issue } from "../../shared/errors.ts";
import { schemaIssues } from "../../shared/json-schema.ts";
import { sameJson } from "../../shared/same-json.ts";
import { maxToolErrorCharacters, maxToolInputBytes, maxToolOutputBytes } from "../bounds.ts";
import type { CallOutcome } from "../schema.ts";
import { shownFields } from "./shown-fields.ts";

/**
 * The states of a call that shows here. Pure. Its agent says how it stands (`begun`, `advanced`); people answer it (`judge`).
 *
 * Rules
 * 1. Nothing changes a call that is over. Only people take a call out of `requires_action` towards its execution.
 * 2. Of an answer the first that is valid counts; of an approval each person's first, until enough have approved or
 *    one has rejected. Those who had left by then are not among those who decided.
 * 3. An approval counts for the arguments that its person was shown, and for no others, while that person is in the
 *    space. One of an impersonated session counts while the workspace allows that.
 * 4. Once it is decided, or a person has answered, anything else is a `conflict`; once nobody waits any more, `gone`.
 */
const over: ToolCall["status"][] = ["complete", "error", "expired", "canceled"];

export const isOver = (status: ToolCall["status"]): boolean => over.includes(status);

/** The output as the log keeps it: of a long one the beginning of its JSON, with a note of how much there is. */
const shortened = (output: unknown): unknown => {
  const json = JSON.stringify(output) ?? "null";
  const bytes = textBytes(json);
  if (bytes <= maxToolOutputBytes) return output;
  return {
    note: `The first ${maxToolOutputBytes} of ${bytes} bytes of the output's JSON (maxToolOutputBytes)`,
    // As much as so many bytes of UTF-8 hold, never half of a character.
    beginning: json.slice(0, new TextEncoder().encodeInto(json, new Uint8Array(maxToolOutputBytes)).read),
  };
};

const saidOutcome = ({ status, output, error }: AgentToolCall): Pick<ToolCall, "status" | "output" | "error"> => ({
  status,
  ...(output === undefined ? {} : { output: shortened(output) }),
  ...(error && { error: { code: error.code, message: error.message.slice(0, maxToolErrorCharacters) } }),
});

/** A call with what people see before they approve it. Calls that earlier versions stored are without. */
export const withShown = (
  call: ToolCall,
  said: Pick<AgentToolCall, "target" | "release" | "request"> = {},
): ToolCall => {
  const { name, input, awaits } = call;
  if (awaits?.kind !== "approval" || awaits.shown) return call;
  return { ...call, awaits: { ...awaits, shown: shownFields({ ...said, name, input }), inputHash: jsonHash(input) } };
};

/** A call as it is first shown. */
export const begun = (said: AgentToolCall): ToolCall => {
  const { toolCallId: id, name, input = null, status, release, awaits } = said;
  if (status === "requires_action" && !awaits) {
    throw new ColloquyError("invalid_request", "A call that requires action says what it awaits");
  }
  const bytes = textBytes(JSON.stringify(input));
  if (bytes > maxToolInputBytes) {
    throw new ColloquyError(
      "payload_too_large",
      `The input of a call that shows in a space has at most ${maxToolInputBytes} bytes of JSON (maxToolInputBytes); this one has ${bytes}`,
    );
  }
  const call = {
    id,
    name,
    input,
    ...saidOutcome(said),
    ...(release && { release }),
    ...(awaits && { awaits: { ...awaits, answers: [] } }),
  };
  return withShown(call, said);
};

/** A call after its agent has said how it stands; the same one where that is no news: a replayed agent repeats itself. */
export const advanced = (call: ToolCall, said: AgentToolCall): ToolCall => {
  if (isOver(call.status)) return call;
  if (said.status === "requires_action") {
    // Other arguments are shown anew: nobody has approved these.
    const isSame = call.status !== "requires_action" || sameJson(call.input, said.input ?? null);
    return isSame ? call : begun(said);
  }
  if (call.status === "requires_action" && said.status === "running") return call;
  if (call.status === "requires_action" && said.status === "complete") {
    throw new ColloquyError("conflict", `${call.id} waits for people: it is not complete before they have answered`);
  }
  const next: ToolCall = { ...call, ...saidOutcome(said) };
  return sameJson(next, call) ? call : next;
};

type Answered = AwaitedAnswer["answers"][number];

/** A person's answer to a call, `at` in ISO 8601. `isCounted`: which approvals count by now; all, if left out. */
export type Given = Answered & { answer: ToolAnswer; isCounted?: (answer: Answered) => boolean };

/** How the call stands then; `outcome` once it is decided. */
export type Verdict = { call: ToolCall; outcome: CallOutcome | null };

/** The one judge of people's answers. Undefined where this person has said the same before. */
export const judge = (call: ToolCall, given: Given): Verdict | undefined => {
  const { awaits, status } = call;
  if (!awaits) throw new ColloquyError("conflict", "This tool call waits for nobody's answer");
  if (status === "expired") throw new ColloquyError("gone", `The time to answer was up at ${awaits.expiresAt}`);
  if (status === "canceled") {
    const why = call.error?.message ?? "nobody waits for an answer";
    throw new ColloquyError("gone", `The tool call was canceled: ${why}`);
  }
  return awaits.kind === "approval" ? judgeApproval(call, awaits, given) : judgeAnswer(call, awaits, given);
};

const invalid = (detail: string, issues: Issue[]): ColloquyError =>
  new ColloquyError("answer_invalid", detail, { issues });

const decided = (what: string, { answers }: AwaitedAnswer): ColloquyError => {
  const last = answers.at(-1);
  return new ColloquyError("conflict", last ? `${last.name} has ${what} already` : "It is decided already");
};

const judgeApproval = (call: ToolCall, awaits: AwaitedAnswer, given: Given): Verdict | undefined => {
  const { answer, isCounted = () => true, ...who } = given;
  const parsed = ApprovalResult.safeParse("result" in answer ? answer.result : undefined);
  if (!parsed.success) {
    const issues = parsed.error.issues.map(({ path, message }) => ({ path: ["result", ...path].join("."), message }));
    throw invalid("An approval is answered with {result: {approved: true or false, inputHash, note?}}", issues);
  }
  const { approved, note, inputHash } = parsed.data;
  const before = awaits.answers.find(({ entityId }) => entityId === who.entityId);
  // A person's own answer replaces one that an impersonated session gave.
  const earlier = who.impersonatedBy === undefined && before?.impersonatedBy !== undefined ? undefined : before;
  const isSaid = earlier?.approved === approved && earlier.note === note;
  if (isSaid && call.status !== "requires_action") return undefined;
  if (earlier && !isSaid) {
    throw new ColloquyError("conflict", "You have answered otherwise already: your first answer stands");
  }
  if (call.status !== "requires_action") throw decided("decided it", awaits);
  if (approved) requireShown(awaits, inputHash);
  const own = { ...who, approved, note, ...(approved && { inputHash }) };
  const answers = isSaid ? awaits.answers : [...awaits.answers.filter((each) => each !== before), own];
  const next: ToolCall = { ...call, awaits: { ...awaits, answers } };
  if (!approved) {
    const error = { code: "approval_rejected", message: "A person rejected it" };
    return { call: { ...next, status: "error", error }, outcome: "rejected" };
  }
  const counted = answers.filter(isCounted);
  // Somebody who had left may be back, and say so by approving again.
  if (counted.length < awaits.quorum) return isSaid ? undefined : { call: next, outcome: null };
  return { call: { ...next, status: "running", awaits: { ...awaits, answers: counted } }, outcome: "approved" };
};

/** Refuses an approval of other arguments than those that show now (rule 3). */
const requireShown = (awaits: AwaitedAnswer, inputHash: string | undefined): void => {
  if (inputHash === undefined) {
    const message = "is missing: show every field of the call's awaits.shown, and send its awaits.inputHash";
    throw invalid("Whoever approves says what they were shown", [{ path: "result.inputHash", message }]);
  }
  if (inputHash === awaits.inputHash) return;
  throw new ColloquyError(
    "approval_changed",
    "The call's arguments are not those that you were shown: show awaits.shown again, and send its awaits.inputHash",
  );
};

const judgeAnswer = (call: ToolCall, awaits: AwaitedAnswer, given: Given): Verdict | undefined => {
  const { answer, isCounted: _, ...who } = given;
  if (call.status !== "requires_action") {
    const own = awaits.answers.some(({ entityId }) => entityId === who.entityId);
    if (own && isSame(call, answer)) return undefined;
    throw decided("answered it", awaits);
  }
  const next: ToolCall = { ...call, awaits: { ...awaits, answers: [who] } };
  if ("error" in answer) {
    const error = { code: "tool_failed", message: answer.error.message };
    return { call: { ...next, status: "error", error }, outcome: "failed" };
  }
  const issues = awaits.schema === undefined ? [] : schemaIssues(awaits.schema, answer.result);
  if (issues.length > 0) {
    const inResult = issues.map(({ path, message }) => ({ path: path === "" ? "result" : `result.${path}`, message }));
    throw invalid("The result does not match what the tool call asks for: see its awaits.schema", inResult);
  }
  return { call: { ...next, status: "complete", output: answer.result }, outcome: "answered" };
};

const isSame = ({ status, output, error }: ToolCall, answer: ToolAnswer): boolean =>
  "error" in answer
    ? status === "error" && error?.message === answer.error.message
    : status === "complete" && sameJson(output, answer.result);

/**
 * The decision of the event at `seq` about a call, as its agent is told of it. `by` names everybody who approved, or the one
 * who rejected or answered. `note` is that person's, or says why there is no answer.
 */
export const toldOutcome = (seq: number, toolCall: ToolCall, outcome: CallOutcome): ToolCallOutcome => {
  const answers = outcome === "expired" ? [] : (toolCall.awaits?.answers ?? []);
  const deciding = outcome === "rejected" ? answers.slice(-1) : answers;
  return {
    seq,
    toolCallId: toolCall.id,
    outcome,
    output: outcome === "answered" ? toolCall.output : undefined,
    note: outcome === "failed" ? toolCall.error?.message : deciding.at(-1)?.note,
    by: deciding.map(({ entityId: id, name, note }) => ({ id, name, note })),
    inputHash: outcome === "approved" ? jsonHash(toolCall.input) : undefined,
  };
};
