import { sql } from "drizzle-orm";
import { dayMs } from "../../shared/clock.ts";
import type { Jobs } from "../../timers/jobs.ts";
import { cutRunsAtOnce, journalLookMs, maxPastRuns, redactionPauseMs } from "../bounds.ts";
import type { AgentRuntime } from "./agent-runtime.ts";

/**
 * The journal of runs that are older than all of their spaces keep messages is cut, once no input shows them.
 *
 * Invariants
 * 1. A run is cut as a whole, with what search finds of it, in one transaction. Its own row stays: runs count without a gap.
 * 2. Runs are left that a cycle's window shows, the newest `maxPastRuns`, and those that something still waits for.
 * 3. While a space of the agent has such a setting, the agent has the job. A crash repeats nothing.
 */
const kind = "cut-journal";
/** Spaces say how many days they keep messages: also those that a compartment was fed. */
export const armCuts = (jobs: Jobs, keptDays: Record<string, number>): void => {
  const isShort = Object.values(keptDays).some((days) => days > 0);
  if (isShort && jobs.keys(kind).length === 0) jobs.set({ kind, key: kind });
};

/** In a transaction. Answers how many runs were cut; undefined where all spaces keep what is said. */
const cutSome = ({ db, services }: AgentRuntime): number | undefined => {
  const { runs, windows, search, clock } = services;
  const mine = services.spaces.mine();
  const days = services.spaces.keptDays();
  if (Object.keys(days).length === 0) return undefined;
  /** The days of a space that keeps all messages. */
  const forEver = 1e9;
  const ofNone = Math.max(...mine.map(({ id }) => days[id] ?? forEver), mine.length === 0 ? forEver : 0);
  const next = runs.nextOrdinal();
  const shownFrom = windows.newest("consciousness")?.firstRun ?? next;
  const before = Math.min(next - maxPastRuns, shownFrom, runs.past(next).keptBefore || next);
  const kept = sql`coalesce((select max(coalesce(each.value, ${forEver})) from json_each(space_ids) its
    left join json_each(${JSON.stringify(days)}) each on each.key = its.value), ${ofNone})`;
  const isIts = sql`run_ordinal = ordinal`;
  const old = db.all<{ ordinal: number; id: string; from: number; to: number }>(sql`
    select ordinal, id, journal_from as "from", journal_to as "to" from runs
    where ordinal < ${before} and completed_at + ${kept} * ${dayMs} < ${clock.now()}
      and exists (select 1 from journal where seq between journal_from and journal_to and ${isIts})
      and not exists (select 1 from calls where ${isIts}) and not exists (select 1 from waits where ${isIts})
    order by ordinal limit ${cutRunsAtOnce}`);
  for (const { ordinal, from, to } of old) {
    db.run(sql`delete from journal where seq between ${from} and ${to} and run_ordinal = ${ordinal}`);
  }
  db.run(sql`delete from journal_names where part <> '' and seq not in (select seq from journal)`);
  search.forgetRuns(old.map(({ id }) => id));
  return old.length;
};

export const handleCuts = (runtime: AgentRuntime): void =>
  runtime.jobs.handle(kind, {
    atOnce: 1,
    async run() {
      const { clock, transaction, isSuspended } = runtime.services;
      const cut = isSuspended() ? 0 : transaction(() => cutSome(runtime));
      return cut === undefined ? cut : clock.now() + (cut === cutRunsAtOnce ? redactionPauseMs : journalLookMs);
    },
  });
