import type { AssistantMeta, CallRequest, InboxMeta, ResultMeta, Shown } from "../../protocol/exported-history.ts";
import { type JournalRow, messagesOf } from "../journal.ts";

/**
 * What a run's rows of the journal tell: its steps, its calls and what came of them. All questions about the rows go to
 * this view. So the run, a replay after a crash and a reader see the same (R3).
 */
export type StepRow = JournalRow & { meta: AssistantMeta };
type ResultRow = JournalRow & { meta: ResultMeta };

/** A call that the model made. `begunAt`: when it was begun, and may have taken effect; undefined before. */
export type RunCall = { step: number; call: CallRequest; begunAt: number | undefined; result: ResultRow | undefined };

export type RunRows = {
  all: JournalRow[];
  steps: StepRow[];
  /** In the order in which the model made them. */
  calls: RunCall[];
};

const isStep = (row: JournalRow): row is StepRow => row.meta?.kind === "assistant";
const isResult = (row: JournalRow): row is ResultRow => row.meta?.kind === "result";

export const readRows = (all: JournalRow[]): RunRows => {
  const steps = all.filter(isStep);
  const begunAt = new Map(
    all.flatMap(({ content, createdAt }) => ("callId" in content ? [[content.callId, createdAt]] : [])),
  );
  const results = new Map(all.filter(isResult).map((row) => [row.meta.callId, row]));
  const calls = steps.flatMap(({ step, meta }) =>
    meta.calls.map((call) => ({
      ...{ step, call, begunAt: begunAt.get(call.callId), result: results.get(call.callId) },
    })),
  );
  return { all, steps, calls };
};

/**
 * The rows of a run's newest invocation, from its input on. A run that waited for answers, or whose input was too long,
 * goes on in a fresh invocation, whose input tells the earlier calls.
 */
export const invocationOf = (rows: JournalRow[]): JournalRow[] => {
  // A timeline's input may be several messages, of which the first has `made`. A cycle's input is one message.
  const begins = rows.findLastIndex(({ meta }) => meta?.kind === "inbox" && meta.made);
  const from = begins === -1 ? rows.findIndex(({ kind }) => kind === "inbox") : begins;
  return from === -1 ? rows : rows.slice(from);
};

export const openCalls = ({ steps, calls }: RunRows): RunCall[] =>
  calls.filter(({ step, result }) => step === steps.at(-1)?.step && !result);

/** The active space follows from where the run began and the results of its calls. */
export const activeSpaceOf = (begunIn: string | null, rows: JournalRow[]): string | null => {
  const moved = rows.filter(isResult).findLast(({ meta }) => meta.activeSpaceId !== undefined);
  return moved ? (moved.meta.activeSpaceId ?? null) : begunIn;
};

/** How many of the newest steps in a row made only invalid calls. */
export const invalidStepsInARow = ({ steps }: RunRows): number => {
  const isValid = ({ meta: { calls } }: StepRow): boolean => calls.length === 0 || calls.some((call) => !call.invalid);
  return steps.length - 1 - steps.findLastIndex(isValid);
};

/** The tokens that a finished step was billed; undefined while it is not finished. */
export const tokensOfStep = (rows: JournalRow[], step: number): number | undefined => {
  const usage = rows.filter(isStep).find((row) => row.step === step)?.meta.usage;
  return usage && usage.inputTokens + usage.outputTokens;
};

/** The tokens that the run has added: all its output, and the growth of its input since its first step. */
export const tokensAdded = ({ steps }: RunRows): number => {
  const output = steps.reduce((sum, { meta }) => sum + meta.usage.outputTokens, 0);
  // Of a guest's step only what came since the one before is estimated.
  const inputs = steps.map(({ meta: { usage, input } }) => (usage.estimated ? input.tokens : usage.inputTokens));
  return output + Math.max(0, (inputs.at(-1) ?? 0) - (inputs[0] ?? 0));
};

/** The output of a call; undefined while it has no result. */
export const outputOf = ({ result }: RunCall): unknown => {
  if (!result || !("role" in result.content) || result.content.role !== "tool") return undefined;
  const [part] = result.content.content;
  return part?.type === "tool-result" && "value" in part.output ? part.output.value : null;
};

/** The finished calls with their outputs, in the order of their results. */
export const finishedCalls = ({ calls }: RunRows): { toolName: string; input: unknown; output: unknown }[] =>
  calls
    .filter(({ result }) => result)
    .sort((one, other) => (one.result?.seq ?? 0) - (other.result?.seq ?? 0))
    .map((each) => ({ toolName: each.call.toolName, input: each.call.input, output: outputOf(each) }));

/** What the run's inputs and results showed of spaces: the newest message of each. */
export const shownIn = (rows: JournalRow[]): Shown[] =>
  rows.flatMap(({ meta }) => (meta?.kind === "inbox" || meta?.kind === "result" ? (meta.shown ?? []) : []));

/** The facts beside the text of its inputs, oldest first. */
export const inputsIn = (rows: JournalRow[]): InboxMeta[] =>
  rows.flatMap(({ meta }) => (meta?.kind === "inbox" ? [meta] : []));

const cutOffHead = "ENDED WITH THE RUN THAT BEGAN IT:";

/** The outcomes of calls that the model knows only as pending, as the journal tells them. */
export const cutOffText = (lines: string[]): string => [cutOffHead, ...lines].join("\n");

export const cutOffIn = (rows: JournalRow[]): string[] =>
  messagesOf(rows.filter(({ kind }) => kind === "preview")).flatMap(({ role, content }) =>
    role === "user" && typeof content === "string" && content.startsWith(cutOffHead) ? [content] : [],
  );
