import type { JournalRow } from "../journal.ts";
import type { CallRequest } from "../records.ts";
import type { RunRow } from "../runs.ts";
import { kindOf } from "./kind.ts";
import type { Parts } from "./parts.ts";

/** What a run that is ended in the middle has done, and what it has begun. */
const effects = new Set([
  "send_message",
  "send_reply",
  "set_memories",
  "delete_memories",
  "set_goals",
  "delete_goals",
  "set_plans",
  "delete_plans",
  "block_edit",
  "block_create",
  "block_archive",
  "block_share",
  "block_unshare",
]);

const isSearch = (input: unknown): boolean =>
  typeof input === "object" && input !== null && "op" in input && input.op === "search";

const callsOf = (rows: JournalRow[]): CallRequest[] =>
  rows.flatMap(({ meta }) => (meta?.kind === "assistant" ? meta.calls : []));

const begunIn = (rows: JournalRow[]): Set<string> =>
  new Set(rows.flatMap(({ content }) => ("callId" in content ? [content.callId] : [])));

/** Tells of a call, by its tool's name and its id, whether it is one that changes something. */
const actsIn = (
  parts: Parts,
  run: RunRow,
  rows: JournalRow[],
  begun = begunIn(rows),
): ((toolName: string, callId: string) => boolean) => {
  const kind = kindOf(parts, run);
  const searches = new Set(callsOf(rows).flatMap(({ callId, input }) => (isSearch(input) ? [callId] : [])));
  return (toolName, callId) => {
    if (toolName === "recall") return !searches.has(callId);
    if (parts.tools.builtin(toolName)) return effects.has(toolName);
    // Of a tool that is there no more it cannot be told that it changes nothing.
    return parts.tools.find(toolName, kind)?.effect ?? begun.has(callId);
  };
};

/** Whether the run changed anything that outlives it. Then its cycle is remembered, however it ended. */
export const hasActed = (parts: Parts, run: RunRow, rows: JournalRow[]): boolean => {
  const acts = actsIn(parts, run, rows);
  return rows.some(({ meta }) => meta?.kind === "result" && !meta.error && acts(meta.toolName, meta.callId));
};

/**
 * Whether it may have changed something: what failed, or was begun and has no result, may have done what it should.
 * Such a run is not begun anew, which would do it again.
 */
export const mayHaveActed = (parts: Parts, run: RunRow): boolean => {
  const rows = parts.journal.ofRun(run);
  const begun = begunIn(rows);
  const acts = actsIn(parts, run, rows, begun);
  return (
    rows.some(({ meta }) => meta?.kind === "result" && !meta.refused && acts(meta.toolName, meta.callId)) ||
    callsOf(rows).some(({ toolName, callId }) => begun.has(callId) && acts(toolName, callId))
  );
};

/** The calls of its last step that have no result as yet. */
export const openCalls = (rows: JournalRow[]): { step: number; call: CallRequest }[] => {
  const last = rows.findLast(({ meta }) => meta?.kind === "assistant");
  if (last?.meta?.kind !== "assistant") return [];
  const finished = new Set(rows.flatMap(({ meta }) => (meta?.kind === "result" ? [meta.callId] : [])));
  return last.meta.calls.filter(({ callId }) => !finished.has(callId)).map((call) => ({ step: last.step, call }));
};
