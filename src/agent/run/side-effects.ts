import type { JournalRow } from "../journal.ts";
import type { CallRequest } from "../records.ts";
import type { RunRow } from "../runs.ts";
import { kindOf } from "./kind.ts";
import type { RunServices } from "./run-services.ts";

/** What a run that is ended in the middle may have done, and what it left open. */
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
  // What the other one did is done, and its event belongs to this run now.
  "absorb_run",
]);

const isSearch = (input: unknown): boolean =>
  typeof input === "object" && input !== null && "op" in input && input.op === "search";

const callsOf = (rows: JournalRow[]): CallRequest[] =>
  rows.flatMap(({ meta }) => (meta?.kind === "assistant" ? meta.calls : []));

const begunIn = (rows: JournalRow[]): Set<string> =>
  new Set(rows.flatMap(({ content }) => ("callId" in content ? [content.callId] : [])));

/**
 * Whether it may have changed something that outlives it: a call that was begun may have done what it should, whatever
 * came of it. Such a run is remembered, however it ended, and not begun anew, which would do it again.
 */
export const mayHaveActed = (services: RunServices, run: RunRow, rows = services.journal.ofRun(run)): boolean => {
  const kind = kindOf(services, run);
  const begun = begunIn(rows);
  const acts = ({ toolName, input }: CallRequest): boolean => {
    if (toolName === "recall") return !isSearch(input);
    if (services.tools.builtin(toolName)) return effects.has(toolName);
    // Of a tool that is there no more it cannot be told that it changes nothing.
    return services.tools.find(toolName, kind)?.effect ?? true;
  };
  return callsOf(rows).some((call) => begun.has(call.callId) && acts(call));
};

/** The calls of its last step that have no result as yet. `begun`: they may have taken effect. */
export const openCalls = (rows: JournalRow[]): { step: number; call: CallRequest; begun: boolean }[] => {
  const last = rows.findLast(({ meta }) => meta?.kind === "assistant");
  if (last?.meta?.kind !== "assistant") return [];
  const begun = begunIn(rows);
  const finished = new Set(rows.flatMap(({ meta }) => (meta?.kind === "result" ? [meta.callId] : [])));
  return last.meta.calls
    .filter(({ callId }) => !finished.has(callId))
    .map((call) => ({ step: last.step, call, begun: begun.has(call.callId) }));
};
