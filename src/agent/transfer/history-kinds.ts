import { eq, lte, sql } from "drizzle-orm";
import type { RowOf } from "../../protocol/exported-agent.ts";
import type { ExportBounds } from "../../protocol/transfer-rpc.ts";
import { isoTime } from "../../shared/clock.ts";
import type { Database } from "../../shared/database.ts";
import type { RunRow } from "../runs.ts";
import { journal, runs, windows } from "../schema.ts";
import { interruptedCall } from "../tools/unknown-outcome.ts";
import { insertNew, type KindStore, rowsAfter } from "./kind-store.ts";

/** The history of an agent: the windows of its consciousness, its runs, its journal. */
const windowsAtATime = 10;
const runsAtATime = 100;
const journalAtATime = 20;

export const windowRows: KindStore<"window"> = {
  read: (db, after, bounds) =>
    rowsAfter(db, windows, {
      column: windows.id,
      after,
      limit: windowsAtATime,
      only: lte(windows.id, bounds.window),
    }).map(({ toolset: _, blocks: __, createdAt, ...window }) => ({
      row: { ...window, createdAt: isoTime(createdAt) },
      place: window.id,
    })),
  insert: (db, row) =>
    insertNew(db, windows, {
      ...row,
      // The next run begins a window of its own, and nobody reads the tools of a past one.
      toolset: { messaging: "simple", tools: [], toolRules: [], mcpListId: null },
      createdAt: Date.parse(row.createdAt),
    }),
};

type ExportedRun = RowOf<"run">;

/** The end of a run. A run that had not ended when the export began is exported as canceled, with what it had done. */
const endOf = (
  row: RunRow,
  { at, journal: upTo, cut }: ExportBounds,
): Pick<ExportedRun, "status" | "kept" | "journalTo" | "completedAt" | "reason"> => {
  const { completedAt, journalTo, reason } = row;
  if (completedAt !== null && journalTo !== null && journalTo <= Math.max(upTo, row.journalFrom) && completedAt <= at) {
    // A run that has ended has one of these.
    const status = row.status as ExportedRun["status"];
    return { status, kept: row.kept, journalTo, completedAt: isoTime(completedAt), reason: reason ?? undefined };
  }
  const kept = row.ordinal === cut?.run;
  return {
    status: "canceled",
    kept,
    journalTo: Math.max(row.journalFrom, upTo) + (kept ? cut.open.length : 0),
    completedAt: isoTime(at),
    reason: "it was under way when the agent was exported",
  };
};

const ordinalOf = (db: Database, runId: string): number | undefined =>
  db.select({ ordinal: runs.ordinal }).from(runs).where(eq(runs.id, runId)).get()?.ordinal;

export const runRows: KindStore<"run"> = {
  read: (db, after, bounds) =>
    rowsAfter(db, runs, {
      column: runs.ordinal,
      after,
      limit: runsAtATime,
      only: lte(runs.ordinal, bounds.run),
    }).map((run) => ({
      row: {
        ordinal: run.ordinal,
        id: run.id,
        continuity: run.continuity,
        endedBy: run.endedBy === null ? undefined : ordinalOf(db, run.endedBy),
        trigger: run.trigger,
        events: run.events.length,
        roots: run.roots,
        spaceIds: run.spaceIds,
        windowId: run.windowId,
        journalFrom: run.journalFrom,
        rests: run.rests?.map(({ from, to }) => ({ from, to: to ?? Math.max(from, bounds.journal) })),
        activeSpaceId: run.activeSpaceId,
        outcome: run.outcome ?? undefined,
        error: run.error ?? undefined,
        prefixReuse: run.prefixReuse ?? undefined,
        startedAt: isoTime(run.startedAt),
        ...endOf(run, bounds),
      },
      place: run.ordinal,
    })),
  insert: (db, { ordinal, endedBy, events, startedAt, completedAt, ...run }, { ids, agentId }) => {
    const idOf = (number: number): string => ids.deriveOwned("run", agentId, number);
    return insertNew(db, runs, {
      ...run,
      ordinal,
      id: idOf(ordinal),
      endedBy: endedBy === undefined ? null : idOf(endedBy),
      // The events stay behind, but their number counts.
      events: Array.from({ length: events }, (_, index) => -1 - index),
      told: {},
      // `linkRuns` sets them once all runs are there.
      keptBefore: 0,
      silentBefore: 0,
      startedAt: Date.parse(startedAt),
      completedAt: Date.parse(completedAt),
    });
  },
};

const unexecuted = { code: "run_canceled", message: "the agent was exported before this call was executed" };
/** The imported agent never hears of the outcome. */
const interrupted = { code: "outcome_unknown", message: interruptedCall };

/** Results for the calls that were open: a provider refuses a call without one. */
const closingRows = ({ at, journal: upTo, cut }: ExportBounds): RowOf<"journal">[] =>
  (cut?.open ?? []).map(({ step, callId, toolName, undone }, index) => {
    const value = { success: false, error: undone ? unexecuted : interrupted };
    return {
      seq: upTo + 1 + index,
      run: cut?.run ?? 0,
      step,
      kind: "result",
      content: {
        role: "tool",
        content: [{ type: "tool-result", toolCallId: callId, toolName, output: { type: "json", value } }],
      },
      meta: { kind: "result", callId, toolName, error: true },
      createdAt: isoTime(at),
    };
  });

export const journalRows: KindStore<"journal"> = {
  read: (db, after, bounds) => {
    const rows = rowsAfter(db, journal, {
      column: journal.seq,
      after,
      limit: journalAtATime,
      only: lte(journal.seq, bounds.journal),
    }).map(
      ({ runOrdinal, createdAt, ...row }) =>
        // The runtime writes only rows that fit the schema.
        ({ ...row, run: runOrdinal, createdAt: isoTime(createdAt) }) as unknown as RowOf<"journal">,
    );
    const items = rows.length > 0 ? rows : closingRows(bounds).filter(({ seq }) => seq > Number(after ?? 0));
    return items.map((row) => ({ row, place: row.seq }));
  },
  // Raw SQL: there may be very many, and building a query costs more than running it.
  insert: (db, { seq, run, step, kind, content, meta, createdAt }) =>
    db.all(sql`insert into journal (seq, run_ordinal, step, kind, content, meta, created_at) values (
      ${seq}, ${run}, ${step}, ${kind}, ${JSON.stringify(content)}, ${meta && JSON.stringify(meta)},
      ${Date.parse(createdAt)}) on conflict do nothing returning seq`).length > 0,
};
