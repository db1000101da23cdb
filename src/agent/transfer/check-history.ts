import { asc, eq, gt, sql } from "drizzle-orm";
import type { CarriedItem } from "../../protocol/exported-agent.ts";
import type { Database } from "../../shared/database.ts";
import { ColloquyError } from "../../shared/errors.ts";
import {
  maxArchivalEntries,
  maxDonePlans,
  maxGoals,
  maxMemories,
  maxMemoriesCharacters,
  maxPlanAheadMs,
  maxPlans,
} from "../bounds.ts";
import { nextCronTime } from "../plans/recurrence.ts";
import { type PastRun, past } from "../runs.ts";
import { journal, plans, runs } from "../schema.ts";
import { unfit } from "./kind-store.ts";
import { callsIn } from "./journal-shape.ts";

/** Whether what an import has brought fits together. Each throws what does not. */

/** Where a row is found by one of these, the document contradicts itself: `at` names it. */
const contradictions: { path: string; message: string; find: ReturnType<typeof sql> }[] = [
  {
    path: "agent.runs",
    message: "must count 1, 2, 3 … without a gap",
    find: sql`select max(ordinal) as at from runs having max(ordinal) <> count(*)`,
  },
  {
    path: "agent.runs",
    message: "names a window that is not there",
    find: sql`select ordinal as at from runs where window_id not in (select id from windows) limit 1`,
  },
  {
    path: "agent.runs",
    message: "must end in the journal after it began there",
    find: sql`select ordinal as at from runs where journal_to < journal_from limit 1`,
  },
  {
    path: "agent.runs",
    message: "is of a timeline, which keeps no cycles",
    find: sql`select ordinal as at from runs where kept and continuity <> 'consciousness' limit 1`,
  },
  {
    path: "agent.runs",
    message: "must begin in the journal after the cycle before it has ended",
    find: sql`select ordinal as at from (
      select ordinal, journal_from, lag(journal_to) over (order by ordinal) as before
      from runs where continuity = 'consciousness'
    ) where journal_from <= before limit 1`,
  },
  {
    path: "agent.runs",
    message: "must end where the journal does, or before",
    find: sql`select ordinal as at from runs
      where journal_to > (select coalesce(max(seq), 0) from journal) + (not kept) limit 1`,
  },
  {
    path: "agent.journal",
    message: "is not where its run, whose cycle is kept, has its rows",
    find: sql`select seq as at from journal join runs on ordinal = run_ordinal
      where kept and seq not between journal_from and journal_to limit 1`,
  },
  {
    path: "agent.journal",
    message: "is of a run that is not there",
    find: sql`select seq as at from journal where run_ordinal not in (select ordinal from runs) limit 1`,
  },
  {
    path: "agent.windows",
    message: "begins after the last run",
    find: sql`select id as at from windows
      where max(first_run, told_from) > (select coalesce(max(ordinal), 0) + 1 from runs) limit 1`,
  },
  {
    path: "agent.summaries",
    message: "is of runs that are not there",
    find: sql`select up_to as at from summaries
      where subject = 'cycles' and up_to > (select coalesce(max(ordinal), 0) from runs) limit 1`,
  },
];

const bounds: { path: string; name: string; most: number; count: ReturnType<typeof sql> }[] = [
  { path: "memories", name: "maxMemories", most: maxMemories, count: sql`select count(*) as rows from memories` },
  {
    path: "memories",
    name: "maxMemoriesCharacters",
    most: maxMemoriesCharacters,
    count: sql`select coalesce(sum(length(value)), 0) as rows from memories`,
  },
  { path: "goals", name: "maxGoals", most: maxGoals, count: sql`select count(*) as rows from goals` },
  {
    path: "plans",
    name: "maxPlans",
    most: maxPlans,
    count: sql`select count(*) as rows from plans where status = 'active'`,
  },
  {
    path: "plans",
    name: "maxDonePlans",
    most: maxDonePlans,
    count: sql`select count(*) as rows from plans where status <> 'active'`,
  },
  {
    path: "archival",
    name: "maxArchivalEntries",
    most: maxArchivalEntries,
    count: sql`select count(*) as rows from archival`,
  },
];

const checkBounds = (db: Database): void => {
  for (const { path, name, most, count } of bounds) {
    const { rows } = db.get<{ rows: number }>(count);
    if (rows <= most) continue;
    throw new ColloquyError("limit_reached", `agent.${path} would be ${rows}; ${name} is ${most}`);
  }
};

const checkPlans = (db: Database, now: number): void => {
  for (const { id, cron, timezone, dueAt, status } of db.select().from(plans).all()) {
    const refused = (message: string) => unfit(`agent.plans (${id})`, message);
    if (dueAt > now + maxPlanAheadMs) throw refused("is due later than any plan may be");
    if (cron === null || status !== "active") continue;
    try {
      nextCronTime(cron, timezone ?? undefined, now);
    } catch (error) {
      if (error instanceof ColloquyError) throw refused(`has a time that cannot be kept: ${error.message}`);
      throw error;
    }
  }
};

const rowsAtATime = 50;

/** A provider refuses a conversation in which a call has no result, for ever. */
const checkCalls = (db: Database): void => {
  const open = new Map<string, number>();
  let after = 0;
  for (;;) {
    const rows = db
      .select({ seq: journal.seq, kind: journal.kind, content: journal.content })
      .from(journal)
      .innerJoin(runs, eq(runs.ordinal, journal.runOrdinal))
      .where(sql`${gt(journal.seq, after)} and ${runs.kept} and ${journal.kind} <> 'call'`)
      .orderBy(asc(journal.seq))
      .limit(rowsAtATime)
      .all();
    for (const { seq, kind, content } of rows) {
      const [waiting] = open.values();
      if (waiting !== undefined && kind !== "result") {
        throw unfit(`agent.journal (${waiting})`, "makes a call whose result does not follow it");
      }
      const calls = callsIn(content as unknown as CarriedItem<"journal">["content"]);
      for (const id of calls.answered) {
        if (!open.delete(id)) throw unfit(`agent.journal (${seq})`, "answers a call that nobody made");
      }
      for (const id of calls.made) {
        if (open.has(id)) throw unfit(`agent.journal (${seq})`, "makes a call twice");
        open.set(id, seq);
      }
    }
    const last = rows.at(-1);
    if (!last) break;
    after = last.seq;
  }
  const [seq] = open.values();
  if (seq !== undefined) throw unfit(`agent.journal (${seq})`, "makes a call whose result is not there");
};

export const checkLife = (db: Database, now: number): void => {
  for (const { path, message, find } of contradictions) {
    const found = db.get<{ at: number } | undefined>(find);
    if (found) throw unfit(`${path} (${found.at})`, message);
  }
  checkBounds(db);
  checkPlans(db, now);
  checkCalls(db);
};

/** What each run knows of those before it follows from them. In a transaction. */
export const linkRuns = (db: Database): void => {
  let before: PastRun | undefined;
  for (;;) {
    const rows = db
      .select()
      .from(runs)
      .where(gt(runs.ordinal, before?.ordinal ?? 0))
      .orderBy(asc(runs.ordinal))
      .limit(rowsAtATime)
      .all();
    if (rows.length === 0) return;
    for (const row of rows) {
      const link = past(before);
      db.update(runs).set(link).where(eq(runs.ordinal, row.ordinal)).run();
      before = { ...row, ...link };
    }
  }
};
