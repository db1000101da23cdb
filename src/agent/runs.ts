import { and, desc, eq, gt, gte, lt, type SQL, sql } from "drizzle-orm";
import { continuityFacts } from "../protocol/continuity.ts";
import type { RunStatus } from "../protocol/run.ts";
import type { Clock } from "../shared/clock.ts";
import { among, type Database, placeholders, prepared, Remembered } from "../shared/database.ts";
import { ColloquyError } from "../shared/errors.ts";
import { crowdedRetryMs, runsHourMs, workNoteMs } from "./bounds.ts";
import { runs } from "./schema.ts";

/**
 * The agent's runs.
 *
 * Invariants
 * 1. A consciousness has at most one active run, its newest. A timeline agent's runs are in the index `runs_active`
 *    until they end or wait for a tool. A thousand may wait, and no step reads them all.
 * 2. Ordinals count 1, 2, 3 … without a gap. Each run names the newest kept one before it. So kept runs are found
 *    without reading the others, however often the agent was silent (B4).
 * 3. `workedMs` holds the finished stretches of a run's work, which `maxRunMinutes` bounds (B3). `worksSince` is the start
 *    of the one under way, null while the run pauses or rests. Pauses and rests count for nothing.
 * 4. A run that is not cut writes no row for its working time: its first stretch begins with its row and ends with it.
 *    The watchdog stores the stretch under way every `workNoteMs`. After a crash at most `workNoteMs` of what was not
 *    stored counts, since the object may have been away.
 * 5. In a compartment the runs that the open mind did stand among its own, in the order in which they were fed (`fed`).
 *    They have ended, and are read as its past; nothing else counts them.
 */
export type RunRow = typeof runs.$inferSelect;
export type NewRun = Pick<
  RunRow,
  | ("id" | "continuity" | "trigger" | "events" | "roots" | "spaceIds" | "person")
  | ("windowId" | "journalFrom" | "told" | "activeSpaceId" | "startedAt" | "fed")
>;

export const isActive = ({ status }: Pick<RunRow, "status">): boolean =>
  status === "running" || status === "waiting_reply" || status === "waiting_tool";

/** Why a run that has ended is ended by nobody else. `reader` reads it. */
export const hasEnded = ({ status, endedBy }: RunRow, reader: string): ColloquyError => {
  const by = endedBy ?? "somebody";
  const cut = status === "absorbed" ? `${by} absorbed it and answers its event too` : `${by} stopped it`;
  const isCut = status === "absorbed" || status === "canceled";
  const how = isCut ? `run already canceled: ${cut}` : `the run has ended: it is ${status}`;
  return new ColloquyError("conflict", `${how}; ${reader} reads what it did`);
};

/** The rows that the index `runs_active` holds. */
const isInFront = sql`${runs.continuity} = 'timeline' and ${runs.status} in ('running', 'waiting_reply')`;

/** How long the stretch of work under way has lasted. */
const stretchMs = ({ worksSince }: Pick<RunRow, "worksSince">, now: number): number =>
  worksSince === null ? 0 : Math.max(0, now - worksSince);

/** A run that began less than this ago is still in its first stretch of work. */
const justBegunMs = 1000;

const maxKnownPersons = 1000;

export type Runs = ReturnType<typeof createRuns>;

/** The runs that this holds for, oldest first. */
const those = (where: SQL) => prepared((db) => db.select().from(runs).where(where).orderBy(runs.ordinal));
const frontQuery = those(
  sql`${runs.ordinal} in (select ${runs.ordinal} from ${runs} where ${isInFront} union all select max(${runs.ordinal}) from ${runs})`,
);
const atQuery = those(eq(runs.ordinal, sql.placeholder("ordinal")));
const keptQuery = those(sql`${runs.ordinal} in (with recursive chain(ordinal) as (
  select ${sql.placeholder("last")} where ${sql.placeholder("last")} >= ${sql.placeholder("from")} union all
  select ${runs.keptBefore} from ${runs} join chain on ${runs.ordinal} = chain.ordinal
    where ${runs.keptBefore} >= ${sql.placeholder("from")})
  select ordinal from chain)`);
const absorbedQuery = those(sql`${runs.endedBy} = ${sql.placeholder("id")} and ${runs.status} = 'absorbed'`);
const restedQuery = prepared((db) =>
  db
    .select()
    .from(runs)
    .where(sql`${runs.rests} is not null and ${runs.completedAt} is not null`)
    .orderBy(desc(runs.completedAt))
    .limit(sql.placeholder("limit")),
);
/** Of an open mind all. */
const isItsOwn = sql`${runs.fed} is not 1`;
/** Its own runs that began since then, oldest first. It reads their rows alone, and no run writes an index row for it. */
const begunSince = prepared((db) => {
  const { ordinal, person, startedAt } = runs;
  const isOld = sql`${isItsOwn} and ${startedAt} <= ${sql.placeholder("since")}`;
  const last = sql`(select ${ordinal} from ${runs} where ${isOld} order by ${ordinal} desc limit 1)`;
  const isRecent = sql`${isItsOwn} and ${ordinal} > coalesce(${last}, 0)`;
  return db.select({ person, startedAt }).from(runs).where(isRecent).orderBy(ordinal);
});
const ownQuery = prepared((db) => {
  const isOwn = sql`${runs.fed} = 0 and ${runs.ordinal} < ${sql.placeholder("before")}`;
  const newestFirst = db.select().from(runs).where(isOwn).orderBy(desc(runs.ordinal));
  return newestFirst.limit(1).offset(sql.placeholder("skipped"));
});
const ownKeptQuery = prepared((db) => {
  const isIt = sql`${runs.fed} = 0 and ${runs.kept} and ${runs.ordinal} < ${sql.placeholder("before")}`;
  return db.select().from(runs).where(isIt).orderBy(desc(runs.ordinal)).limit(1);
});

const beginning = prepared((db) =>
  db
    .insert(runs)
    .values({
      ...placeholders(["ordinal", "id", "status", "continuity", "trigger", "events", "roots", "spaceIds", "windowId"]),
      ...placeholders(["journalFrom", "told", "keptBefore", "silentBefore", "activeSpaceId", "startedAt"]),
      ...placeholders(["person", "worksSince"]),
      // As a column's own placeholder, null would be false.
      fed: sql`${sql.placeholder("fed")}`,
      correction: sql`${sql.placeholder("correction")}`,
    })
    .returning(),
);

export const createRuns = (db: Database, clock: Clock) => {
  /** When the runs of the last hour began, by person, oldest first. */
  const begunBy = new Remembered(db, () => {
    const begun = begunSince(db).all({ since: clock.now() - runsHourMs });
    return new Map(
      [...Map.groupBy(begun, ({ person }) => person)].map(([of, all]) => [of, all.map((run) => run.startedAt)]),
    );
  });
  const noteBegun = ({ person, startedAt }: Pick<RunRow, "person" | "startedAt">): void => {
    if (begunBy.get().size > maxKnownPersons) begunBy.forget();
    const isRecent = (at: number): boolean => at > clock.now() - runsHourMs;
    begunBy.get().set(person, [...(begunBy.get().get(person) ?? []).filter(isRecent), startedAt]);
  };
  /** The newest run and the active ones. Callers get copies, since a run's loop changes its row. */
  const known = new Remembered(db, () => frontQuery(db).all());
  /** Those of the open mind stand among them: this is a compartment. */
  const isMixed = (): boolean => typeof known.get().at(-1)?.fed === "boolean";
  return {
    /** Those under way, oldest first. */
    running(): RunRow[] {
      return this.active().filter((run) => run.status === "running");
    },

    /** Those under way or waiting, oldest first, but for a timeline's that wait for tools. */
    active: (): RunRow[] => known.get().flatMap((row) => (isActive(row) ? [{ ...row }] : [])),

    /** The newest that the mind did itself. */
    newest(): RunRow | undefined {
      return this.own(this.nextOrdinal());
    },

    nextOrdinal: (): number => (known.get().at(-1)?.ordinal ?? 0) + 1,

    /** The newest run before this one that the mind did itself, `skipped` others before it. */
    own(before: number, skipped = 0): RunRow | undefined {
      const ordinal = before - 1 - skipped;
      if (isMixed()) return ownQuery(db).get({ before, skipped });
      return ordinal < 1 ? undefined : this.at(ordinal);
    },

    /**
     * When one run more may begin of the `most` that may within an hour, `waiting` others first. Undefined: now. In
     * milliseconds since the epoch.
     */
    hourFullUntil(most: number, waiting = 0): number | undefined {
      const now = clock.now();
      if (waiting >= most) return now + crowdedRetryMs;
      const first = this.own(this.nextOrdinal(), most - waiting - 1);
      // A clock that went back does not hold it up for longer.
      const until = Math.min(first?.startedAt ?? Number.NEGATIVE_INFINITY, now) + runsHourMs;
      return until > now ? until : undefined;
    },

    /**
     * Until when a person may begin no more runs: an hour from their last, if `most` of theirs began within an hour.
     * Undefined: they may.
     */
    shareFullUntil(person: string, most: number): number | undefined {
      const now = clock.now();
      const begun = begunBy.get().get(person) ?? [];
      const [first, newest] = [begun.at(-most), begun.at(-1)];
      if (first === undefined || newest === undefined || Math.min(first, now) + runsHourMs <= now) return undefined;
      return Math.min(newest, now) + runsHourMs;
    },

    begin(run: NewRun): RunRow {
      const ordinal = this.nextOrdinal();
      noteBegun(run);
      const correction = this.correction();
      const started = { status: "running", worksSince: run.startedAt } as const;
      const row = { ...run, ...this.past(ordinal), ordinal, ...started };
      const asStored = {
        fed: run.fed === null ? null : Number(run.fed),
        correction: correction && JSON.stringify(correction),
      };
      return beginning(known.writing()).get({ ...row, ...asStored });
    },

    /** How the newest run corrects estimates of tokens. */
    correction: (): RunRow["correction"] => known.get().at(-1)?.correction ?? null,

    /** A run has ended: what it learned holds, also where it is not the newest. */
    correct(ended: number, correction: RunRow["correction"]): void {
      const newest = known.get().at(-1);
      if (newest && newest.ordinal > ended) this.update(newest.ordinal, { correction });
    },

    /** Stores a run that the open mind did, as one that has ended. Of its events only the number is known here. */
    takeFed(run: RunRow, journalFrom: number): RunRow {
      const ordinal = this.nextOrdinal();
      const none = {
        roots: [],
        rests: null,
        told: {},
        receipts: null,
        prefixReuse: null,
        resumeAt: null,
        lease: null,
        person: null,
        personRuns: null,
        correction: this.correction(),
      };
      const events = run.events.map(() => 0);
      const place = { ordinal, ...this.past(ordinal), windowId: 0, journalFrom, worksSince: null };
      const row = { ...run, ...none, ...place, events, fed: true };
      return known.writing().insert(runs).values(row).returning().get();
    },

    /** The run waits, and holds nothing in memory. Rows of the journal from `nextSeq` on are not its own. */
    rest(run: RunRow, status: "waiting_reply" | "waiting_tool", nextSeq: number): void {
      // No other run writes while a consciousness waits.
      const rests = !continuityFacts(run).runsAlone ? [...(run.rests ?? []), { from: nextSeq, to: null }] : run.rests;
      this.update(run.ordinal, { status, rests, lease: null, ...this.worked(run) });
    },

    /** The run goes on after a wait. Its next rows in the journal lie from `nextSeq` on. */
    goOn(run: RunRow, nextSeq: number): RunRow {
      const changes = { status: "running", rests: overRests(run, nextSeq) } as const;
      this.update(run.ordinal, changes);
      return { ...run, ...changes };
    },

    /** Begins a stretch of work. Answers how long the run has worked before. `run` was read just now. */
    beginWork(run: RunRow): number {
      const now = clock.now();
      if (run.worksSince !== null && stretchMs(run, now) < justBegunMs) return run.workedMs;
      const workedMs = run.workedMs + Math.min(stretchMs(run, now), workNoteMs);
      this.update(run.ordinal, { workedMs, worksSince: now });
      return workedMs;
    },

    /** Stores the stretch of work under way, if that is due. `run` was read just now. */
    noteWork({ ordinal, ...run }: RunRow): void {
      const now = clock.now();
      const sinceMs = stretchMs(run, now);
      if (sinceMs >= workNoteMs) this.update(ordinal, { workedMs: run.workedMs + sinceMs, worksSince: now });
    },

    /** The columns to store as a run stops working for a while. */
    worked(run: RunRow): Pick<RunRow, "workedMs" | "worksSince"> {
      const row = this.at(run.ordinal) ?? run;
      return { workedMs: row.workedMs + stretchMs(row, clock.now()), worksSince: null };
    },

    update(ordinal: number, changes: Partial<Omit<RunRow, "ordinal" | "id">>): void {
      known.writing().update(runs).set(changes).where(eq(runs.ordinal, ordinal)).run();
    },

    /** Those that the mind began itself since it was made or imported, after this one. */
    begunAfter(ordinal: number, since: number, limit: number) {
      const { person, trigger, startedAt } = runs;
      const isMeant = and(gt(runs.ordinal, ordinal), gte(startedAt, since), isItsOwn);
      const begun = db.select({ ordinal: runs.ordinal, person, trigger, startedAt }).from(runs).where(isMeant);
      return begun.orderBy(runs.ordinal).limit(limit).all();
    },

    get(id: string): RunRow | undefined {
      return db.select().from(runs).where(eq(runs.id, id)).get();
    },

    those(ordinals: number[]): RunRow[] {
      if (ordinals.length === 0) return [];
      return db.select().from(runs).where(among(runs.ordinal, ordinals)).orderBy(runs.ordinal).all();
    },

    /** The windows that these runs and the active ones read in. */
    windowsOf(ordinals: number[]): number[] {
      const rows = db.selectDistinct({ windowId: runs.windowId }).from(runs).where(among(runs.ordinal, ordinals));
      return [...new Set([...rows.all(), ...this.active()].map(({ windowId }) => windowId))];
    },

    at(ordinal: number): RunRow | undefined {
      const row = known.get().find((each) => each.ordinal === ordinal);
      return row ? { ...row } : atQuery(db).get({ ordinal });
    },

    /** The kept run and the silent events before run `before`. */
    past(before: number): Pick<RunRow, "keptBefore" | "silentBefore"> {
      return past(this.at(before - 1));
    },

    /** Runs from `from` (1 or more) on whose cycles are part of consciousness, oldest first. Reads no others. */
    kept(from: number, before: number): RunRow[] {
      return keptQuery(db).all({ from, last: this.past(before).keptBefore });
    },

    /** The newest kept run before this one that the mind did itself. */
    lastKept(before: number): RunRow | undefined {
      const row = this.at(this.past(before).keptBefore);
      return row?.fed ? ownKeptQuery(db).get({ before }) : row;
    },

    /** The silent ones of the newest `limit` runs after the last kept, newest first; and the events of all silent ones. */
    silent(before: number, limit: number): { rows: RunRow[]; events: number } {
      const { keptBefore, silentBefore } = this.past(before);
      const since = before - 1 - keptBefore;
      const rows = since === 0 ? [] : this.page(before, Math.min(limit, since), undefined);
      return { rows: rows.filter(isSilent), events: silentBefore };
    },

    /** Those that this run absorbed itself, oldest first. */
    absorbedBy: (id: string): RunRow[] => absorbedQuery(db).all({ id }),

    /** Those, and the ones that they had absorbed before. */
    absorbedInto(id: string): RunRow[] {
      return this.absorbedBy(id).flatMap((run) => [...this.absorbedInto(run.id), run]);
    },

    /** The newest `limit` to end of those that waited. */
    rested: (limit: number): RunRow[] => restedQuery(db).all({ limit }),

    /** Newest first. `own`: those alone that the mind did itself. */
    page(before: number | undefined, limit: number, status: RunStatus | undefined, own = false): RunRow[] {
      const isOwn = own && isMixed() ? eq(runs.fed, false) : undefined;
      const isBefore = before === undefined ? undefined : lt(runs.ordinal, before);
      const where = and(isOwn, isBefore, status && eq(runs.status, status));
      return db.select().from(runs).where(where).orderBy(desc(runs.ordinal)).limit(limit).all();
    },
  };
};

/** A run's rests once it goes on. Its next rows in the journal lie from `nextSeq` on. */
export const overRests = ({ rests }: Pick<RunRow, "rests">, nextSeq: number): RunRow["rests"] =>
  rests?.map((rest) => ({ ...rest, to: rest.to ?? nextSeq - 1 })) ?? null;

/** A cycle that is not kept, because it skipped or was canceled. */
const isSilent = ({ continuity, kept, status }: Pick<RunRow, "continuity" | "kept" | "status">): boolean =>
  continuityFacts({ continuity }).runsAlone && !kept && (status === "skipped" || status === "canceled");

/** The facts of a run that the runs after it depend on. */
export type PastRun = Pick<
  RunRow,
  "ordinal" | "continuity" | "status" | "kept" | "events" | "keptBefore" | "silentBefore"
>;

/** The kept run and the silent events before the run that follows `previous`. */
export const past = (previous: PastRun | undefined): Pick<RunRow, "keptBefore" | "silentBefore"> => {
  if (!previous) return { keptBefore: 0, silentBefore: 0 };
  if (previous.kept) return { keptBefore: previous.ordinal, silentBefore: 0 };
  const silent = isSilent(previous) ? previous.events.length : 0;
  return { keptBefore: previous.keptBefore, silentBefore: previous.silentBefore + silent };
};

/** The ids of a run's log lines: its agent, itself, and the event that began it. */
export const loggedRun = (
  { identity }: { identity: { get(): { id: string } } },
  { id: runId, trigger }: Pick<RunRow, "id" | "trigger">,
): { agentId: string; runId: string; eventId: string } => ({
  agentId: identity.get().id,
  runId,
  eventId: trigger.eventId,
});
