import { ApprovalResult, type AwaitedAnswer, type ToolAnswer, type ToolCall } from "../../protocol/tool-call.ts";
import { ColloquyError, type Issue } from "../../shared/errors.ts";
import { schemaIssues } from "../../shared/json-schema.ts";
import { sameJson } from "../../shared/same-json.ts";
import type { CallOutcome } from "../types.ts";

/** A person's answer to a call, `at` in ISO 8601. */
export type Given = { entityId: string; name: string; at: string; answer: ToolAnswer };

/** How the call stands then; `outcome` once it is decided. */
export type Verdict = { call: ToolCall; outcome: CallOutcome | null };

const invalid = (detail: string, issues: Issue[]): ColloquyError =>
  new ColloquyError("answer_invalid", detail, { issues });

/**
 * The one judge of people's answers. Pure. Undefined where this person has said the same before.
 *
 * Rules
 * 1. Of an answer the first that is valid counts; of an approval each person's first, until enough have approved or
 *    one has rejected.
 * 2. Once it is decided, or a person has answered, anything else is a `conflict`; once nobody waits any more, `gone`.
 */
export const judge = (call: ToolCall, given: Given): Verdict | undefined => {
  const { awaits, status } = call;
  if (!awaits) throw new ColloquyError("conflict", "This tool call waits for nobody's answer");
  if (status === "expired") throw new ColloquyError("gone", `The time to answer was up at ${awaits.expiresAt}`);
  if (status === "canceled") throw new ColloquyError("gone", "The tool call was canceled: nobody waits for an answer");
  return awaits.kind === "approval" ? judgeApproval(call, awaits, given) : judgeAnswer(call, awaits, given);
};

const decided = (what: string, { answers }: AwaitedAnswer): ColloquyError => {
  const last = answers.at(-1);
  return new ColloquyError("conflict", last ? `${last.name} has ${what} already` : "It is decided already");
};

const judgeApproval = (call: ToolCall, awaits: AwaitedAnswer, { answer, ...who }: Given): Verdict | undefined => {
  const parsed = ApprovalResult.safeParse("result" in answer ? answer.result : undefined);
  if (!parsed.success) {
    const issues = parsed.error.issues.map(({ path, message }) => ({ path: ["result", ...path].join("."), message }));
    throw invalid("An approval is answered with {result: {approved: true or false, note?}}", issues);
  }
  const { approved, note } = parsed.data;
  const earlier = awaits.answers.find(({ entityId }) => entityId === who.entityId);
  if (earlier?.approved === approved && earlier.note === note) return undefined;
  if (earlier) throw new ColloquyError("conflict", "You have answered otherwise already: your first answer stands");
  if (call.status !== "requires_action") throw decided("decided it", awaits);
  const answers = [...awaits.answers, { ...who, approved, ...(note === undefined ? {} : { note }) }];
  const next: ToolCall = { ...call, awaits: { ...awaits, answers } };
  if (!approved) {
    const error = { code: "approval_rejected", message: "A person rejected it" };
    return { call: { ...next, status: "error", error }, outcome: "rejected" };
  }
  if (answers.length < awaits.quorum) return { call: next, outcome: null };
  return { call: { ...next, status: "running" }, outcome: "approved" };
};

const judgeAnswer = (call: ToolCall, awaits: AwaitedAnswer, { answer, ...who }: Given): Verdict | undefined => {
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
