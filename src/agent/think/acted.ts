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

/** Whether the run changed anything that outlives it. Then its cycle is remembered, however it ended. */
export const hasActed = (parts: Parts, run: RunRow, rows: JournalRow[]): boolean => {
  const kind = kindOf(parts, run);
  const searches = new Set(callsOf(rows).flatMap(({ callId, input }) => (isSearch(input) ? [callId] : [])));
  const acts = (toolName: string, callId: string): boolean => {
    if (effects.has(toolName)) return true;
    if (toolName === "recall") return !searches.has(callId);
    const tool = parts.tools.find(toolName, kind);
    return tool?.config !== undefined && tool.effect;
  };
  return rows.some(({ meta }) => meta?.kind === "result" && !meta.error && acts(meta.toolName, meta.callId));
};

/** The calls of its last step that have no result as yet. */
export const openCalls = (rows: JournalRow[]): { step: number; call: CallRequest }[] => {
  const last = rows.findLast(({ meta }) => meta?.kind === "assistant");
  if (last?.meta?.kind !== "assistant") return [];
  const finished = new Set(rows.flatMap(({ meta }) => (meta?.kind === "result" ? [meta.callId] : [])));
  return last.meta.calls.filter(({ callId }) => !finished.has(callId)).map((call) => ({ step: last.step, call }));
};
