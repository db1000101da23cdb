import * as z from "zod";
import { spaceId, toolCallId } from "../protocol/ids.ts";
import { Message } from "../protocol/message.ts";
import { ApprovalResult, type AwaitedAnswer, ShownField } from "../protocol/tool-call.ts";
import { ColloquyError } from "../shared/errors.ts";
import { quoteJson } from "../shared/quote.ts";
import { sameJson } from "../shared/same-json.ts";
import { type AskApi, askFor, inputOf, jsonOf, type Surroundings } from "./toolset.ts";

/**
 * Answers a call that waits for a person. An assistant's own dialog shows a person what a tool is called with. So an
 * approval is called with all that is approved, and its hash (T4): what was not shown there is not approved here.
 */
export const AnswerInput = z.strictObject({
  spaceId,
  toolCallId,
  approved: z.boolean().optional().describe("For an approval: the person's decision"),
  note: z.string().max(1000).optional().describe("With an approval or a rejection: what the person says of it"),
  shown: z
    .array(ShownField)
    .optional()
    .describe("To approve: the call's awaits.shown, each field of it, as the person was shown it"),
  inputHash: z.string().optional().describe("To approve: the call's awaits.inputHash"),
  result: z.json().optional().describe("For a form or a choice: the answer, as the call's awaits.schema wants it"),
  error: z.string().min(1).max(1000).optional().describe("For a form or a choice: why there is no answer"),
});
type AnswerInput = z.infer<typeof AnswerInput>;

const Waiting = z.object({ items: z.array(Message) });

/** What the call waits for; undefined where it does not wait for this person. */
const awaitedBy = async (ask: AskApi, { spaceId: id, toolCallId: wanted }: AnswerInput) => {
  const { items } = await askFor(ask, Waiting, `/v1/needs-you?spaceId=${id}`);
  return items.find(({ toolCall }) => toolCall?.id === wanted)?.toolCall?.awaits;
};

const asShown = (fields: unknown): unknown => JSON.parse(quoteJson(fields));

/** Refuses an approval that was not called with all that is approved. */
const requireShown = ({ shown, inputHash }: AnswerInput, awaits: AwaitedAnswer): void => {
  const isAll = awaits.inputHash === inputHash && sameJson(asShown(shown ?? []), asShown(awaits.shown ?? []));
  if (isAll) return;
  const all = quoteJson({ shown: awaits.shown, inputHash: awaits.inputHash });
  throw new ColloquyError(
    "approval_changed",
    `Show the person each of these fields, and ask. If they approve, call answer with these very values: ${all}`,
  );
};

/** Reads an approval in the form of a result as the decision that it is. */
const asDecision = (given: AnswerInput): AnswerInput => {
  const decided = given.approved === undefined ? ApprovalResult.safeParse(given.result).data : undefined;
  return decided ? { ...given, ...decided, result: undefined } : given;
};

const bodyOf = ({ approved, note, inputHash, result, error }: AnswerInput): unknown => {
  const given = [approved, result, error].filter((one) => one !== undefined);
  if (given.length !== 1) throw new ColloquyError("invalid_request", "Send one of approved, result and error.");
  if (error !== undefined) return { error: { message: error } };
  if (approved === undefined) return { result };
  return { result: { approved, ...(note !== undefined && { note }), ...(approved && { inputHash }) } };
};

export const answerCall = async (input: unknown, { ask }: Surroundings): Promise<unknown> => {
  const asked = inputOf(AnswerInput, input);
  const found = asked.error === undefined ? await awaitedBy(ask, asked) : undefined;
  const given = found?.kind === "answer" ? asked : asDecision(asked);
  const awaits = given.approved ? found : undefined;
  if (awaits) requireShown(given, awaits);
  // Where it does not wait for them the space says why, and approves nothing without a hash.
  const body = bodyOf({ ...given, inputHash: awaits && given.inputHash });
  const path = `/v1/spaces/${given.spaceId}/tool-calls/${given.toolCallId}/result`;
  return jsonOf(await ask({ method: "POST", path, body }));
};
