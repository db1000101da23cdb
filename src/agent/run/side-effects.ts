import type { JournalRow } from "../journal.ts";
import type { CallRequest } from "../records.ts";
import type { RunRow } from "../runs.ts";
import { builtinTool, findTool } from "../tools/registry.ts";
import { kindOf } from "./composing.ts";
import type { RunServices } from "./run-services.ts";

/** What a run that is ended in the middle may have done, and what it left open. */
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
  // A tool that the agent no longer has may have changed anything.
  const acts = ({ toolName, input }: CallRequest): boolean =>
    (builtinTool(toolName) ?? findTool(toolName, kind))?.effect(input) ?? true;
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
