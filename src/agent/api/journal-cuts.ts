import { sql } from "drizzle-orm";
import type { Delivery } from "../../protocol/rpc.ts";
import type { Jobs } from "../../timers/jobs.ts";
import { cutRunsAtOnce, journalLookMs, maxPastRuns, redactionPauseMs } from "../bounds.ts";
import { spaces } from "../schema.ts";
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
const dayMs = 24 * 60 * 60_000;

/** From the space: how long it keeps messages. In the turn that takes the delivery in. */
export const armCuts = (jobs: Jobs, { space }: Delivery): void => {
  if (space.retentionDays !== undefined && jobs.keys(kind).length === 0) jobs.set({ kind, key: kind });
};

/** Days by space, those that it left too; and for runs of no space, where all that it is in have a setting. */
const daysKept = ({ db, services }: AgentRuntime): { days: Record<string, number>; ofNone: number | null } => {
  const mine = services.spaces.mine();
  const all = [
    ...db
      .select({ snapshot: spaces.snapshot })
      .from(spaces)
      .all()
      .map((row) => row.snapshot),
    ...mine,
  ];
  const days = Object.fromEntries(
    all.flatMap((each) => (each.retentionDays === undefined ? [] : [[each.id, each.retentionDays]])),
  );
  const ofNone = mine.length > 0 && mine.every(({ id }) => days[id] !== undefined);
  return { days, ofNone: ofNone ? Math.max(...mine.map(({ id }) => days[id] ?? 0)) : null };
};

/** In a transaction. Answers how many runs were cut. */
const cutSome = (runtime: AgentRuntime, { days, ofNone }: ReturnType<typeof daysKept>): number => {
  const {
    db,
    services: { runs, windows, search, clock },
  } = runtime;
  const next = runs.nextOrdinal();
  const shownFrom = windows.newest("consciousness")?.firstRun ?? next;
  const before = Math.min(next - maxPastRuns, shownFrom, runs.past(next).keptBefore || next);
  // Of a space that is not known, or that keeps all, nothing is cut: an infinite number of days.
  const kept = sql`coalesce((select max(coalesce(each.value, 1e9)) from json_each(space_ids) its
    left join json_each(${JSON.stringify(days)}) each on each.key = its.value), ${ofNone}, 1e9)`;
  const isIts = sql`run_ordinal = ordinal`;
  const old = db.all<{ ordinal: number; id: string; from: number; to: number }>(sql`
    select ordinal, id, journal_from as "from", journal_to as "to" from runs
    where ordinal < ${before} and completed_at + ${kept} * ${dayMs} < ${clock.now()}
      and exists (select 1 from journal where seq between journal_from and journal_to and ${isIts})
      and not exists (select 1 from calls where ${isIts}) and not exists (select 1 from waits where ${isIts})
    order by ordinal limit ${cutRunsAtOnce}`);
  if (old.length === 0) return 0;
  for (const { ordinal, from, to } of old) {
    db.run(sql`delete from journal where seq between ${from} and ${to} and run_ordinal = ${ordinal}`);
  }
  db.run(sql`delete from journal_names where part <> '' and seq not in (select seq from journal)`);
  search.forgetRuns(old.map(({ id }) => id));
  return old.length;
};

export const handleCuts = (runtime: AgentRuntime): void => {
  const {
    jobs,
    services: { clock, transaction, isSuspended },
  } = runtime;
  jobs.handle(kind, {
    atOnce: 1,
    async run() {
      const kept = daysKept(runtime);
      if (Object.keys(kept.days).length === 0) return undefined;
      const cut = isSuspended() ? 0 : transaction(() => cutSome(runtime, kept));
      return clock.now() + (cut === cutRunsAtOnce ? redactionPauseMs : journalLookMs);
    },
  });
};
