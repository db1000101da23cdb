import { and, asc, eq, gt, lte, sql } from "drizzle-orm";
import type { CarriedJournalRow, CarriedRun } from "../../protocol/exported-history.ts";
import type { ExportBounds } from "../../protocol/transfer-rpc.ts";
import { isoTime } from "../../shared/clock.ts";
import type { Database } from "../../shared/database.ts";
import type { JournalContent } from "../records.ts";
import type { RunRow } from "../runs.ts";
import { journal, runs, windows } from "../schema.ts";
import { interruptedCall } from "../tools/unknown-outcome.ts";
import { type Becoming, isNew, type ListOf } from "./kind-store.ts";

/** What an agent has lived through: the windows of its consciousness, its runs, its journal. */
const windowsAtATime = 10;
const runsAtATime = 100;
const journalAtATime = 20;

const last = (after: (string | number)[]): number => Number(after[0] ?? 0);

/** What a past window's runs could call nobody asks any more: the next run begins a window with the agent's new name. */
const noTools = { messaging: "simple", tools: [], toolRules: [], mcpListId: null } as const;

export const carriedWindows: ListOf<"windows"> = {
  read: (db, after, bounds) =>
    db
      .select()
      .from(windows)
      .where(and(gt(windows.id, last(after)), lte(windows.id, bounds.window)))
      .orderBy(asc(windows.id))
      .limit(windowsAtATime)
      .all()
      .map(({ id, instructions, summary, continuity, firstRun, toldFrom, createdAt }) => ({
        item: { id, instructions, summary, continuity, firstRun, toldFrom, createdAt: isoTime(createdAt) },
        place: [id],
      })),
  writer:
    (db) =>
    ({ createdAt, ...window }) =>
      isNew(
        db
          .insert(windows)
          .values({ ...window, toolset: { ...noTools, tools: [], toolRules: [] }, createdAt: Date.parse(createdAt) })
          .onConflictDoNothing()
          .returning({ id: windows.id })
          .all(),
      ),
};

const underWay = "it was under way when the agent was exported";

/** Of a run that has not ended, or ended after the export began: what it had done by then, ended by the export. */
const endOf = (row: RunRow, { at, journal: upTo, cut }: ExportBounds): Partial<CarriedRun> => {
  const { status, completedAt, journalTo } = row;
  if (completedAt !== null && journalTo !== null && journalTo <= Math.max(upTo, row.journalFrom) && completedAt <= at) {
    // A run that has an end has one of these.
    return { status: status as CarriedRun["status"], kept: row.kept, journalTo, completedAt: isoTime(completedAt) };
  }
  const kept = row.ordinal === cut?.run;
  const to = Math.max(row.journalFrom, upTo) + (kept ? cut.open.length : 0);
  return { status: "canceled", kept, journalTo: to, completedAt: isoTime(at), reason: underWay };
};

const numberOf = (db: Database, runId: string): number | undefined =>
  db.select({ ordinal: runs.ordinal }).from(runs).where(eq(runs.id, runId)).get()?.ordinal;

const asCarriedRun = (db: Database, row: RunRow, bounds: ExportBounds): CarriedRun => {
  const endedBy = row.endedBy === null ? undefined : numberOf(db, row.endedBy);
  return {
    ordinal: row.ordinal,
    id: row.id,
    status: "canceled",
    continuity: row.continuity,
    ...(endedBy === undefined ? {} : { endedBy }),
    trigger: row.trigger,
    events: row.events.length,
    roots: row.roots,
    spaceIds: row.spaceIds,
    windowId: row.windowId,
    journalFrom: row.journalFrom,
    journalTo: bounds.journal,
    ...(row.rests === null
      ? {}
      : { rests: row.rests.map(({ from, to }) => ({ from, to: to ?? Math.max(from, bounds.journal) })) }),
    kept: row.kept,
    activeSpaceId: row.activeSpaceId,
    ...(row.outcome === null ? {} : { outcome: row.outcome }),
    ...(row.reason === null ? {} : { reason: row.reason }),
    ...(row.error === null ? {} : { error: row.error }),
    ...(row.prefixReuse === null ? {} : { prefixReuse: row.prefixReuse }),
    startedAt: isoTime(row.startedAt),
    completedAt: isoTime(bounds.at),
    ...endOf(row, bounds),
  };
};

/** Its events are in no inbox here, but how many they were counts. */
const goneEvents = (count: number): number[] => Array.from({ length: count }, (_, index) => -1 - index);

const asRunRow = (run: CarriedRun, { ids, agentId }: Becoming): typeof runs.$inferInsert => {
  const { ordinal, endedBy, events, startedAt, completedAt, ...same } = run;
  const idOf = (number: number): string => ids.deriveOwned("run", agentId, number);
  return {
    ...same,
    ordinal,
    id: idOf(ordinal),
    endedBy: endedBy === undefined ? null : idOf(endedBy),
    events: goneEvents(events),
    told: {},
    // They follow from the runs before, once all are there.
    keptBefore: 0,
    silentBefore: 0,
    startedAt: Date.parse(startedAt),
    completedAt: Date.parse(completedAt),
  };
};

export const carriedRuns: ListOf<"runs"> = {
  read: (db, after, bounds) =>
    db
      .select()
      .from(runs)
      .where(and(gt(runs.ordinal, last(after)), lte(runs.ordinal, bounds.run)))
      .orderBy(asc(runs.ordinal))
      .limit(runsAtATime)
      .all()
      .map((row) => ({ item: asCarriedRun(db, row, bounds), place: [row.ordinal] })),
  writer: (db, becoming) => (run) =>
    isNew(
      db.insert(runs).values(asRunRow(run, becoming)).onConflictDoNothing().returning({ ordinal: runs.ordinal }).all(),
    ),
};

const journalOf = (db: Database, after: number, upTo: number): CarriedJournalRow[] =>
  db
    .select()
    .from(journal)
    .where(and(gt(journal.seq, after), lte(journal.seq, upTo)))
    .orderBy(asc(journal.seq))
    .limit(journalAtATime)
    .all()
    .map(({ seq, runOrdinal, step, kind, content, meta, createdAt }) => {
      const item = { seq, run: runOrdinal, step, kind, content, meta, createdAt: isoTime(createdAt) };
      // What the journal holds is what the document's schema tells of it.
      return item as unknown as CarriedJournalRow;
    });

const unexecuted = { code: "run_canceled", message: "the agent was exported before this call was executed" };
/** Where the agent goes on, nobody will hear what came of it. */
const interrupted = { code: "outcome_unknown", message: interruptedCall };

/** What answers the calls that were open: each call has its result, wherever an agent goes on. */
const closings = ({ at, journal: upTo, cut }: ExportBounds): CarriedJournalRow[] =>
  (cut?.open ?? []).map(({ step, callId, toolName, undone }, index) => {
    const output = { type: "json", value: { success: false, error: undone ? unexecuted : interrupted } };
    return {
      seq: upTo + 1 + index,
      run: cut?.run ?? 0,
      step,
      kind: "result",
      content: { role: "tool", content: [{ type: "tool-result", toolCallId: callId, toolName, output }] },
      meta: { kind: "result", callId, toolName, error: true },
      createdAt: isoTime(at),
    };
  });

export const carriedJournal: ListOf<"journal"> = {
  read: (db, after, bounds) => {
    const rows = journalOf(db, last(after), bounds.journal);
    const items = rows.length > 0 ? rows : closings(bounds).filter(({ seq }) => seq > last(after));
    return items.map((item) => ({ item, place: [item.seq] }));
  },
  writer: (db) => {
    const insert = db
      .insert(journal)
      .values({
        seq: sql.placeholder("seq"),
        runOrdinal: sql.placeholder("run"),
        step: sql.placeholder("step"),
        kind: sql.placeholder("kind"),
        content: sql.placeholder("content"),
        meta: sql.placeholder("meta"),
        createdAt: sql.placeholder("createdAt"),
      })
      .onConflictDoNothing()
      .returning({ seq: journal.seq })
      .prepare();
    return ({ createdAt, ...row }) => {
      const at = Date.parse(createdAt);
      if (row.meta) return isNew(insert.all({ ...row, createdAt: at }));
      // A placeholder would store the text "null" for none.
      const { run: runOrdinal, content, ...same } = row;
      // `journal-shape.ts` has read it.
      const values = { ...same, runOrdinal, content: content as unknown as JournalContent, meta: null, createdAt: at };
      return isNew(db.insert(journal).values(values).onConflictDoNothing().returning({ seq: journal.seq }).all());
    };
  },
};
