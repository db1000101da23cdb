import { and, asc, eq, gt, lte, min, not, sql } from "drizzle-orm";
import { backoff, type Pauses } from "../shared/backoff.ts";
import type { Clock } from "../shared/clock.ts";
import { among, countOf, type Database, prepared } from "../shared/database.ts";
import { ColloquyError } from "../shared/errors.ts";
import { log } from "../shared/log.ts";
import { meter } from "../shared/meter.ts";
import { jobs } from "./schema.ts";
import type { Timers } from "./timers.ts";

/**
 * The job engine: work that an actor does in the background, again and again until it succeeds.
 *
 * To add a kind of job: export `jobs` from the actor's `schema.ts`. Call `handle(kind, handler)` when the actor's
 * services are created, `onTimer` where its alarm hands out `jobsTimer`. `set` a job in the transaction that needs it.
 * A handler may run again after it succeeded, if a crash came in between: what it does must bear that.
 *
 * Invariants
 * 1. A job that was set stays in the table until its handler has answered that it is done, whatever crashes.
 * 2. A run holds a lease: its row is due when the lease ends. The lease is renewed while the object lives, so only a run
 *    that was cut is followed by another.
 * 3. While the table holds a job, the timer `jobs` is due no later than the first that may run.
 * 4. A job has one run at a time, and a kind at most `atOnce`. The longest due goes first.
 * 5. A job that is set while it runs runs once more after that, with the newest payload.
 * 6. A run that throws delays its own job, each time longer, and no other.
 */
export const jobsTimer = "jobs";
/** After a crash, a job that was running runs again within this time. */
export const jobLeaseMs = 5000;
/** The pauses after runs that threw. */
const pauses: Pauses = { firstMs: 1000, longestMs: 10 * 60_000 };

type Job = typeof jobs.$inferSelect;

export type JobHandler = {
  /** How many jobs of this kind run at a time. */
  atOnce: number;
  /**
   * Does the job. `attempts` counts this run. Answers when the job is to run again, in milliseconds since the epoch, or
   * undefined where it is done. The signal aborts when the job is dropped.
   */
  run(job: Pick<Job, "key" | "attempts" | "payload">, signal: AbortSignal): Promise<number | undefined>;
};

type NewJob = Pick<Job, "kind" | "key"> & { dueAt?: number; payload?: unknown };

type Run = {
  leasedUntil: number;
  controller: AbortController;
  /** It was set while it ran: when it is to run again. */
  againAt: number | undefined;
  outlivedLease: boolean;
};

type Surroundings = {
  db: Database;
  timers: Timers;
  clock: Clock;
  /** Keeps the object alive. */
  waitUntil: (work: Promise<void>) => void;
  /** The name of its object in the deployment's figures. Left out, it is not counted. */
  object?: string;
  /** The object's own id, for the log. */
  whose?: () => { agentId?: string | undefined; spaceId?: string | undefined };
};

const never = Number.POSITIVE_INFINITY;

const named = ({ kind, key }: Pick<Job, "kind" | "key">) => and(eq(jobs.kind, kind), eq(jobs.key, key));

/** The jobs of a kind that are due, the longest due first. */
const dueOf = prepared((db) =>
  db
    .select()
    .from(jobs)
    .where(and(eq(jobs.kind, sql.placeholder("kind")), lte(jobs.dueAt, sql.placeholder("now"))))
    .orderBy(asc(jobs.dueAt), sql`rowid`)
    .limit(sql.placeholder("free")),
);
const firstToCome = prepared((db) =>
  db
    .select({ dueAt: min(jobs.dueAt) })
    .from(jobs)
    .where(and(eq(jobs.kind, sql.placeholder("kind")), gt(jobs.dueAt, sql.placeholder("now")))),
);

export type Jobs = ReturnType<typeof createJobs>;

export const createJobs = ({ db, timers, clock, waitUntil, whose, object }: Surroundings) => {
  /** The handler of each kind, and its runs by key. */
  const kinds = new Map<string, { handler: JobHandler; running: Map<string, Run> }>();
  let willWake = false;
  let isStopped = false;
  let toldDue: number | undefined;
  /** Jobs without room may be many, so they are counted at most once a lease. */
  let countAgainAt = 0;

  const runOf = (kind: string, key: string): Run | undefined => kinds.get(kind)?.running.get(key);

  /** Those that failed and are tried again. A run under way has begun, and is not among them. */
  const tellWaiting = (): void => {
    if (object === undefined) return;
    const running = [...kinds.values()].reduce((sum, kind) => sum + kind.running.size, 0);
    meter.gauge("jobs_waiting", object, Math.max(0, countOf(db, jobs, gt(jobs.attempts, 0)) - running));
  };

  /** Counts the jobs that are due and not done: they have no room, or run longer than a lease. */
  const tellDue = (now: number, hasRoom: boolean): void => {
    if (object === undefined || (!hasRoom && now < countAgainAt)) return;
    if (!hasRoom) countAgainAt = now + jobLeaseMs;
    const runs = [...kinds.values()].flatMap(({ running }) => [...running.values()]);
    const due =
      runs.filter((run) => run.outlivedLease).length + (hasRoom ? 0 : countOf(db, jobs, lte(jobs.dueAt, now)));
    // Told again while there are some: a word counts for a day.
    if (due > 0 || toldDue !== 0) meter.gauge("jobs_due", object, due);
    toldDue = due;
  };

  /** The run has ended. It runs again at the time that its handler answered, or at which it was set meanwhile. */
  const ended = (job: Pick<Job, "kind" | "key">, answered: number | undefined, { againAt }: Run): void => {
    const dueAt = Math.ceil(Math.min(answered ?? never, againAt ?? never));
    if (dueAt === never) db.delete(jobs).where(named(job)).run();
    else db.update(jobs).set({ dueAt, attempts: 0 }).where(named(job)).run();
  };

  const failed = ({ kind, key, attempts }: Omit<Job, "dueAt">, { againAt }: Run, error: unknown): void => {
    const dueAt = Math.ceil(Math.max(againAt ?? 0, clock.now() + backoff(attempts - 1, pauses)));
    db.update(jobs).set({ attempts, dueAt }).where(named({ kind, key })).run();
    const fields = { ...whose?.(), job: kind, key, attempts };
    if (!(error instanceof ColloquyError && error.retryable)) log.error("job.failed", error, fields);
    else log.warn("job.postponed", { ...fields, code: error.code, reason: error.message });
  };

  const begin = async (due: Job, handler: JobHandler, running: Map<string, Run>): Promise<void> => {
    const { kind, key, payload } = due;
    const job = { kind, key, attempts: due.attempts + 1, payload };
    const controller = new AbortController();
    const run: Run = { leasedUntil: clock.now() + jobLeaseMs, controller, againAt: undefined, outlivedLease: false };
    running.set(key, run);
    // Counted before it runs: a run that crashes its object counts too.
    db.update(jobs).set({ attempts: job.attempts, dueAt: run.leasedUntil }).where(named(job)).run();
    let hasFailed = false;
    try {
      const answered = await handler.run(job, controller.signal);
      if (!isStopped) ended(job, answered, run);
    } catch (error) {
      if (isStopped) return;
      hasFailed = true;
      if (!controller.signal.aborted) failed(job, run, error);
      else if (run.againAt !== undefined) ended(job, undefined, run);
    } finally {
      running.delete(key);
      if (hasFailed || job.attempts > 1) tellWaiting();
      wake(kind);
    }
  };

  /**
   * Begins what is due and has room, renews the leases that end, and sets the timer. Where a run of one kind has ended, no
   * other kind has got room.
   */
  const wake = (ended?: string): void => {
    if (isStopped) return;
    const now = clock.now();
    const set = timers.dueAt(jobsTimer);
    let next = never;
    let hasRoom = true;
    const isTime = ended === undefined || set === undefined || set <= now;
    for (const [kind, { handler, running }] of kinds) {
      for (const [key, run] of running) {
        if (run.leasedUntil > now) continue;
        run.leasedUntil = now + jobLeaseMs;
        run.outlivedLease = true;
        db.update(jobs).set({ dueAt: run.leasedUntil }).where(named({ kind, key })).run();
      }
      const free = handler.atOnce - running.size;
      if (free > 0 && (isTime || kind === ended)) {
        for (const job of dueOf(db).all({ kind, now, free })) waitUntil(begin(job, handler, running));
      }
      hasRoom &&= running.size < handler.atOnce;
      // A job that is still due has no room. It begins when a run ends, or when a lease does.
      next = Math.min(next, firstToCome(db).get({ kind, now })?.dueAt ?? next);
    }
    if (next === never) {
      if (set !== undefined) timers.clear(jobsTimer);
    } else if (set === undefined || set > next || set <= now) timers.set(jobsTimer, next);
    tellDue(now, hasRoom);
  };

  /** After the transaction that this turn may be in. */
  const wakeSoon = (): void => {
    if (willWake) return;
    willWake = true;
    const woken = Promise.resolve().then(() => {
      willWake = false;
      wake();
    });
    waitUntil(woken);
  };

  return {
    /** Has `handler` do all jobs of a kind. */
    handle(kind: string, handler: JobHandler): void {
      kinds.set(kind, { handler, running: new Map() });
    },

    /** Has the job run at `dueAt`, or at once. Its attempts begin anew. */
    set({ kind, key, dueAt = clock.now(), payload = null }: NewJob): void {
      const run = runOf(kind, key);
      if (run) run.againAt = dueAt;
      const hadFailed =
        object !== undefined && !run && countOf(db, jobs, and(named({ kind, key }), gt(jobs.attempts, 0))) > 0;
      const values = { kind, key, payload, attempts: 0, dueAt: run ? run.leasedUntil : Math.ceil(dueAt) };
      db.insert(jobs)
        .values(values)
        .onConflictDoUpdate({ target: [jobs.kind, jobs.key], set: values })
        .run();
      if (run) return;
      if (hadFailed) tellWaiting();
      const now = clock.now();
      timers.setNoLater(jobsTimer, dueAt > now ? dueAt : now + jobLeaseMs);
      if (dueAt <= now) wakeSoon();
    },

    /** Has the jobs of a kind that wait for their time run at once. Those that run now are not touched. */
    hurry(kind: string): void {
      const now = clock.now();
      const running = [...(kinds.get(kind)?.running.keys() ?? [])];
      const waits = and(eq(jobs.kind, kind), gt(jobs.dueAt, now), not(among(jobs.key, running)));
      db.update(jobs).set({ dueAt: now }).where(waits).run();
      wakeSoon();
    },

    /** The jobs of a kind that are not done. */
    keys: (kind: string): string[] =>
      db
        .select({ key: jobs.key })
        .from(jobs)
        .where(eq(jobs.kind, kind))
        .all()
        .map(({ key }) => key),

    /** The job is not wanted any more. A run of it is aborted with `reason`. */
    drop(kind: string, key: string, reason: ColloquyError): void {
      const [dropped] = db.delete(jobs).where(named({ kind, key })).returning().all();
      const run = runOf(kind, key);
      if (!run && dropped && dropped.attempts > 0) tellWaiting();
      if (!run) return;
      run.againAt = undefined;
      run.controller.abort(reason);
    },

    /** The object is being deleted, with its tables: nothing is written any more. */
    stop(): void {
      isStopped = true;
      for (const figure of ["jobs_waiting", "jobs_due"] as const) if (object) meter.gauge(figure, object, 0);
    },

    /** The timer `jobs` went off. */
    onTimer: () => wake(),
  };
};
