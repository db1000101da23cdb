import type { Action } from "../context/timeline/snapshot.ts";
import type { JournalRow } from "../journal.ts";
import type { AssistantMeta, CallRequest } from "../records.ts";
import { factsOf } from "../tools/registry.ts";
import { invocationOf } from "./invocation.ts";

/**
 * Where a run stands, from its journal alone: what a replay after a crash, and the run itself, do next (R3).
 *
 * Invariants
 * 1. A finished step is not generated again; a call with a result is not executed again.
 * 2. The active space follows from where the run began and the results of its calls.
 */
export type Progress =
  | { kind: "generate"; step: number }
  | { kind: "execute"; step: number; call: CallRequest; started: boolean }
  /** What is left of the step waits for people or servers. */
  | { kind: "await" }
  | { kind: "skip"; reason: string | undefined }
  /** The step asked for answers; when they are there, the run goes on with step `next` in a fresh invocation. */
  | { kind: "wait"; next: number }
  | { kind: "done" };

type Row = Pick<JournalRow, "kind" | "step" | "content" | "meta">;

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

/** How many of the newest steps in a row made calls, all of them invalid. */
export const invalidStepsInARow = (rows: Row[]): number => {
  const metas = rows.flatMap((row) => assistantMeta(row) ?? []);
  const valid = metas.findLastIndex((meta) => meta.calls.length === 0 || meta.calls.some((call) => !call.invalid));
  return metas.length - 1 - valid;
};

/** Tokens that the run has added: all its output, and by how much its input grew since its first step. */
export const tokensAdded = (rows: Row[]): number => {
  const metas = rows.flatMap((row) => assistantMeta(row) ?? []);
  const first = metas[0];
  const last = metas.at(-1);
  if (!first || !last) return 0;
  const output = metas.reduce((sum, meta) => sum + meta.usage.outputTokens, 0);
  return output + Math.max(0, last.usage.inputTokens - first.usage.inputTokens);
};

/** What a `result` row holds; undefined of any other. */
export const outputOf = ({ meta, content }: Pick<JournalRow, "meta" | "content">): unknown => {
  if (meta?.kind !== "result" || !("role" in content) || content.role !== "tool") return undefined;
  const [part] = content.content;
  return part?.type === "tool-result" && "value" in part.output ? part.output.value : null;
};

/** Every call that these rows of a run finished, with what came of it, oldest first. */
export const finishedCalls = (rows: JournalRow[]): Action[] => {
  const inputs = new Map(
    rows.flatMap(({ meta }) => (meta?.kind === "assistant" ? meta.calls.map((call) => [call.callId, call.input]) : [])),
  );
  return rows.flatMap((row) => {
    const { meta } = row;
    if (meta?.kind !== "result") return [];
    return [{ toolName: meta.toolName, input: inputs.get(meta.callId), output: outputOf(row) }];
  });
};
