import type { Action } from "../context/timeline/snapshot.ts";
import type { JournalRow } from "../journal.ts";
import type { AssistantMeta, CallRequest } from "../records.ts";
import { factsOf } from "../tools/registry.ts";

/**
 * The next thing to do for a run, from its journal alone: for the run itself and for a replay after a crash (R3).
 *
 * Invariants
 * 1. A finished step is not generated again; a call with a result is not executed again.
 * 2. The active space follows from where the run began and the results of its calls.
 */
export type Progress =
  | { kind: "generate"; step: number }
  | { kind: "execute"; step: number; call: CallRequest; started: boolean }
  /** All unfinished calls of the step wait for people or servers. */
  | { kind: "await" }
  | { kind: "skip"; reason: string | undefined }
  /** The step asked for answers; when they are there, the run goes on with step `next` in a fresh invocation. */
  | { kind: "wait"; next: number }
  | { kind: "done" };

type Row = Pick<JournalRow, "kind" | "step" | "content" | "meta">;

/**
 * The rows of a run's newest invocation, from its input on. A run that waited for answers, or whose input was too long,
 * goes on in a fresh invocation, whose input tells the earlier calls.
 */
export const invocationOf = <Row extends Pick<JournalRow, "kind" | "meta">>(rows: Row[]): Row[] => {
  // A timeline's input may be several messages, of which the first has `made`. A cycle's input is one message.
  const begins = rows.findLastIndex(({ meta }) => meta?.kind === "inbox" && meta.made);
  const from = begins === -1 ? rows.findIndex(({ kind }) => kind === "inbox") : begins;
  return from === -1 ? rows : rows.slice(from);
};

const assistantMeta = (row: Row | undefined): AssistantMeta | undefined =>
  row?.meta?.kind === "assistant" ? row.meta : undefined;

/** A call that ends its own run does so only as the first step's only call. */
const skipOf = (meta: AssistantMeta, step: number): CallRequest | undefined => {
  const [only, ...others] = meta.calls;
  if (!only || only.invalid || others.length > 0 || step > 0) return undefined;
  return factsOf(only.toolName).endsRun === "own" ? only : undefined;
};

const reasonOf = (input: unknown): string | undefined =>
  typeof input === "object" && input !== null && "reason" in input && typeof input.reason === "string"
    ? input.reason
    : undefined;

/** `isAwaited`: whether somebody outside has a call that was begun. */
export const progressOf = (all: Row[], isAwaited: (callId: string) => boolean): Progress => {
  const rows = invocationOf(all);
  const last = rows.findLast((row) => row.kind === "assistant");
  const meta = assistantMeta(last);
  if (!last || !meta) return { kind: "generate", step: rows[0]?.step ?? 0 };
  const skip = skipOf(meta, last.step);
  if (skip) return { kind: "skip", reason: reasonOf(skip.input) };
  if (meta.calls.length === 0) return { kind: "done" };
  const finished = new Set(rows.flatMap((row) => (row.meta?.kind === "result" ? [row.meta.callId] : [])));
  const unfinished = meta.calls.filter((request) => !finished.has(request.callId));
  const begun = new Set(rows.flatMap((row) => ("callId" in row.content ? [row.content.callId] : [])));
  const call = unfinished.find(({ callId }) => !begun.has(callId) || !isAwaited(callId));
  if (!call && unfinished.length > 0) return { kind: "await" };
  if (!call) {
    const waits = rows.some((row) => row.step === last.step && row.meta?.kind === "result" && row.meta.waits);
    return waits ? { kind: "wait", next: last.step + 1 } : { kind: "generate", step: last.step + 1 };
  }
  return { kind: "execute", step: last.step, call, started: begun.has(call.callId) };
};

export const activeSpaceOf = (begunIn: string | null, rows: Row[]): string | null => {
  const moved = rows.findLast((row) => row.meta?.kind === "result" && row.meta.activeSpaceId !== undefined);
  return moved?.meta?.kind === "result" ? (moved.meta.activeSpaceId ?? null) : begunIn;
};

/** How many of the newest steps in a row made only invalid calls. */
export const invalidStepsInARow = (rows: Row[]): number => {
  const metas = rows.flatMap((row) => assistantMeta(row) ?? []);
  const valid = metas.findLastIndex((meta) => meta.calls.length === 0 || meta.calls.some((call) => !call.invalid));
  return metas.length - 1 - valid;
};

/** The tokens that the run has added: all its output, and the growth of its input since its first step. */
export const tokensAdded = (rows: Row[]): number => {
  const metas = rows.flatMap((row) => assistantMeta(row) ?? []);
  const first = metas[0];
  const last = metas.at(-1);
  if (!first || !last) return 0;
  const output = metas.reduce((sum, meta) => sum + meta.usage.outputTokens, 0);
  return output + Math.max(0, last.usage.inputTokens - first.usage.inputTokens);
};

/** The output in a `result` row; undefined for any other row. */
export const outputOf = ({ meta, content }: Pick<JournalRow, "meta" | "content">): unknown => {
  if (meta?.kind !== "result" || !("role" in content) || content.role !== "tool") return undefined;
  const [part] = content.content;
  return part?.type === "tool-result" && "value" in part.output ? part.output.value : null;
};

/** The inputs of all calls in these rows, by the call's id. */
export const callInputs = (rows: JournalRow[]): Map<string, unknown> =>
  new Map(
    rows.flatMap(({ meta }) => (meta?.kind === "assistant" ? meta.calls.map((call) => [call.callId, call.input]) : [])),
  );

/** The finished calls in these rows of a run, with their outputs, oldest first. */
export const finishedCalls = (rows: JournalRow[]): Action[] => {
  const inputs = callInputs(rows);
  return rows.flatMap((row) => {
    const { meta } = row;
    if (meta?.kind !== "result") return [];
    return [{ toolName: meta.toolName, input: inputs.get(meta.callId), output: outputOf(row) }];
  });
};
