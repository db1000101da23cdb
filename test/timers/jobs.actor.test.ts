import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { histories } from "../../migrations/histories.ts";
import { createSchema, openDatabase } from "../../src/shared/database.ts";
import { ColloquyError } from "../../src/shared/errors.ts";
import { meter } from "../../src/shared/meter.ts";
import { createJobs, type JobHandler, type Jobs, jobLeaseMs, jobsTimer } from "../../src/timers/jobs.ts";
import { createTimers } from "../../src/timers/timers.ts";
import { withStorage } from "../workspace/fixture.ts";

afterEach(() => vi.restoreAllMocks());

const one = { kind: "work", key: "one" };
const over = new ColloquyError("gone", "the job is over");

/** What the object has told of itself since it was asked last. */
const told = (figure: string): number | undefined =>
  meter.take(Date.now(), true)?.gauges.find(([family, object]) => family === figure && object === "jobs")?.[2];

/** Jobs of the kind `work`, in a database of their own. The handler is the test's. */
const withJobs = (atOnce: number, act: (staged: Awaited<ReturnType<typeof stage>>) => Promise<void>): Promise<void> =>
  withStorage(async (storage) => act(await stage(storage, atOnce)));

const stage = async (storage: DurableObjectStorage, atOnce: number) => {
  vi.spyOn(Math, "random").mockReturnValue(0);
  const errors = vi.spyOn(console, "error").mockImplementation(() => undefined);
  const db = openDatabase(storage);
  await createSchema(db, histories.workspace);
  const time = { now: 1_000_000 };
  const clock = { now: () => time.now };
  const run = vi.fn<JobHandler["run"]>().mockResolvedValue(undefined);
  const background: Promise<void>[] = [];
  const timers = createTimers(db, storage, clock);
  /** The object comes up: at first, or again after a crash. */
  const open = (): Jobs => {
    const jobs = createJobs({ db, timers, clock, object: "jobs", waitUntil: (work) => void background.push(work) });
    jobs.handle("work", { atOnce, run });
    return jobs;
  };
  const settled = async (): Promise<void> => {
    while (background.length > 0) await Promise.all(background.splice(0));
  };
  const dueAt = (): number | undefined => timers.dueAt(jobsTimer);
  /** Lets time pass until the timer is due, and has it go off. Answers how long that took. */
  const alarm = async (jobs: Jobs): Promise<number> => {
    const before = time.now;
    time.now = dueAt() ?? Number.NaN;
    await timers.fire(() => jobs.onTimer());
    return time.now - before;
  };
  const stored = (key: string) =>
    storage.sql.exec("SELECT attempts, due_at AS dueAt FROM jobs WHERE key = ?", key).toArray()[0];
  const keys = (): string[] => run.mock.calls.map(([{ key }]) => key);
  return { jobs: open(), open, run, time, timers, dueAt, settled, alarm, keys, stored, db, errors };
};

test("[R6] a job that is set runs at once with its key and payload, and is gone when it is done", () =>
  withJobs(1, async ({ jobs, run, dueAt, settled, stored }) => {
    jobs.set({ kind: "work", key: "one", payload: { to: "Mia" } });
    expect(run).not.toHaveBeenCalled();
    await settled();
    expect(run.mock.calls).toEqual([
      [expect.objectContaining({ key: "one", attempts: 1, payload: { to: "Mia" } }), expect.any(AbortSignal)],
    ]);
    expect([stored("one"), dueAt()]).toEqual([undefined, undefined]);
  }));

test("[R6] a job that is set for later runs when the timer goes off, not earlier", () =>
  withJobs(1, async ({ jobs, run, time, dueAt, settled, alarm }) => {
    jobs.set({ kind: "work", key: "one", dueAt: time.now + 5000 });
    await settled();
    expect([run.mock.calls.length, dueAt()]).toEqual([0, time.now + 5000]);
    await alarm(jobs);
    await settled();
    expect(run).toHaveBeenCalledTimes(1);
  }));

test("[R1] a job that a crash cut runs again when its lease ends; both runs are attempts", () =>
  withJobs(1, async ({ jobs, open, run, alarm, stored }) => {
    run.mockReturnValueOnce(new Promise(() => undefined));
    jobs.set({ kind: "work", key: "one" });
    await vi.waitFor(() => expect(run).toHaveBeenCalledTimes(1));
    const again = open();
    expect(await alarm(again)).toBe(jobLeaseMs);
    await vi.waitFor(() => expect(run).toHaveBeenCalledTimes(2));
    expect(run.mock.lastCall?.[0].attempts).toBe(2);
    expect(stored("one")).toBeUndefined();
  }));

test("[R1] a crash between setting a job and running it is followed by a run", () =>
  withJobs(1, async ({ jobs, open, run, alarm, settled }) => {
    jobs.set({ kind: "work", key: "one" });
    // The timer of the next object goes off before the turn of the one that set the job is over.
    const waited = alarm(open());
    expect(run).toHaveBeenCalledTimes(1);
    expect(await waited).toBe(jobLeaseMs);
    await settled();
    expect(run).toHaveBeenCalledTimes(1);
  }));

test("[R6] a run that outlives its lease is not begun again while the object lives", () =>
  withJobs(1, async ({ jobs, run, dueAt, settled, alarm }) => {
    const held = Promise.withResolvers<undefined>();
    run.mockReturnValueOnce(held.promise);
    jobs.set({ kind: "work", key: "one" });
    await vi.waitFor(() => expect(run).toHaveBeenCalledTimes(1));
    for (let leases = 0; leases < 3; leases += 1) expect(await alarm(jobs)).toBe(jobLeaseMs);
    held.resolve(undefined);
    await settled();
    expect([run.mock.calls.length, dueAt()]).toEqual([1, undefined]);
  }));

test("[R6] at most so many of a kind run at a time, the longest due first, and all run", () =>
  withJobs(2, async ({ jobs, run, time, settled, keys }) => {
    let most = 0;
    let live = 0;
    run.mockImplementation(async () => {
      live += 1;
      most = Math.max(most, live);
      await Promise.resolve();
      live -= 1;
      return undefined;
    });
    jobs.set({ kind: "work", key: "new" });
    for (const key of ["c", "a", "b"]) jobs.set({ kind: "work", key, dueAt: time.now - 1 });
    await settled();
    expect(most).toBe(2);
    expect(keys()).toEqual(["c", "a", "b", "new"]);
  }));

test("[R6] a run that throws is tried again, each time later, and delays no other job", () =>
  withJobs(1, async ({ jobs, run, settled, alarm, keys, stored }) => {
    run.mockImplementation(async ({ key }) => {
      if (key === "bad") throw new Error("broken");
      return undefined;
    });
    jobs.set({ kind: "work", key: "bad" });
    jobs.set({ kind: "work", key: "good" });
    await settled();
    expect(keys()).toEqual(["bad", "good"]);
    const waits: number[] = [];
    while (waits.length < 4) {
      let waitedMs = 0;
      for (const before = run.mock.calls.length; run.mock.calls.length === before; await settled())
        waitedMs += await alarm(jobs);
      waits.push(waitedMs);
    }
    expect(waits).toEqual([1000, 2000, 4000, 8000]);
    expect(stored("bad")?.attempts).toBe(5);
  }));

test("a run that answers a time is followed by another then, and its attempts begin anew", () =>
  withJobs(1, async ({ jobs, run, time, settled, alarm, stored }) => {
    run.mockRejectedValueOnce(new Error("broken")).mockResolvedValueOnce(time.now + 60_000);
    jobs.set({ kind: "work", key: "one" });
    await settled();
    await alarm(jobs);
    await settled();
    expect(stored("one")).toMatchObject({ attempts: 0, dueAt: 1_060_000 });
  }));

test("a job that is set while it runs runs once more, with the newest payload", () =>
  withJobs(1, async ({ jobs, run, dueAt, settled }) => {
    const held = Promise.withResolvers<undefined>();
    run.mockReturnValueOnce(held.promise);
    jobs.set({ kind: "work", key: "one", payload: 1 });
    await vi.waitFor(() => expect(run).toHaveBeenCalledTimes(1));
    jobs.set({ kind: "work", key: "one", payload: 2 });
    jobs.set({ kind: "work", key: "one", payload: 3 });
    held.resolve(undefined);
    await settled();
    expect(run.mock.calls.map(([{ payload }]) => payload)).toEqual([1, 3]);
    expect(dueAt()).toBeUndefined();
  }));

test("[R6] a job that sets itself and fails is tried again after its pause, not at once", () =>
  withJobs(1, async ({ jobs, run, settled, time, stored }) => {
    run.mockImplementation(async ({ key }) => {
      jobs.set({ kind: "work", key });
      throw new Error("broken");
    });
    jobs.set({ kind: "work", key: "one" });
    await settled();
    expect([run.mock.calls.length, stored("one")?.dueAt]).toEqual([1, time.now + 1000]);
  }));

test("a job that is dropped runs no more: what runs is aborted, and may be set anew", () =>
  withJobs(1, async ({ jobs, run, dueAt, settled }) => {
    const aborted: unknown[] = [];
    run.mockImplementationOnce(async (_, signal) => {
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      aborted.push(signal.reason);
      throw signal.reason;
    });
    jobs.set({ kind: "work", key: "one" });
    await vi.waitFor(() => expect(run).toHaveBeenCalledTimes(1));
    jobs.drop("work", "one", over);
    jobs.set({ kind: "work", key: "one" });
    await settled();
    expect([aborted, run.mock.calls.length, dueAt()]).toEqual([[over], 2, undefined]);
  }));

test("a job that is set or dropped in a transaction that is rolled back stays as it was", () =>
  withJobs(1, async ({ jobs, run, db, time, settled, stored }) => {
    const undone = (work: () => void): void => {
      const failing = (): void => {
        work();
        throw new Error("undone");
      };
      expect(() => db.transaction(failing)).toThrow("undone");
    };
    undone(() => jobs.set({ kind: "work", key: "one" }));
    await settled();
    expect(run).not.toHaveBeenCalled();
    jobs.set({ kind: "work", key: "two", dueAt: time.now + 1000 });
    undone(() => jobs.drop("work", "two", over));
    expect(stored("two")?.dueAt).toBe(time.now + 1000);
  }));

test("a failed run is logged with its kind, key and attempts: a retryable refusal as a warning", () =>
  withJobs(1, async ({ jobs, run, settled, errors }) => {
    const warned = vi.spyOn(console, "warn").mockImplementation(() => undefined);
    onTestFinished(() => warned.mockRestore());
    run.mockRejectedValueOnce(new ColloquyError("unavailable", "later")).mockRejectedValueOnce(new Error("broken"));
    jobs.set({ kind: "work", key: "one" });
    await settled();
    jobs.set({ kind: "work", key: "two" });
    await settled();
    const [warning] = warned.mock.calls.map(([line]) => JSON.parse(String(line)));
    const [error] = errors.mock.calls.map(([line]) => JSON.parse(String(line)));
    expect(warning).toMatchObject({
      event: "job.postponed",
      job: "work",
      key: "one",
      attempts: 1,
      code: "unavailable",
    });
    expect(error).toMatchObject({ event: "job.failed", job: "work", key: "two", attempts: 1, error: "broken" });
  }));

test("[L11] a job that failed waits no more once it is set anew, dropped or over", () =>
  withJobs(1, async ({ open, run, settled }) => {
    const ways = [
      (jobs: Jobs) => jobs.set(one),
      (jobs: Jobs) => jobs.drop("work", "one", over),
      (jobs: Jobs) => jobs.stop(),
    ];
    for (const end of ways) {
      run.mockRejectedValueOnce(new Error("no"));
      open().set(one);
      await settled();
      expect(told("jobs_waiting")).toBe(1);
      end(open());
      await settled();
      expect(told("jobs_waiting")).toBe(0);
    }
  }));

test("[L11] jobs are told as due while they have no room or outlive their lease", () =>
  withJobs(1, async ({ jobs, run, settled, alarm }) => {
    const held = Promise.withResolvers<undefined>();
    run.mockReturnValueOnce(held.promise);
    for (const key of ["one", "two", "three"]) jobs.set({ kind: "work", key });
    await vi.waitFor(() => expect(run).toHaveBeenCalledTimes(1));
    expect(told("jobs_due")).toBe(2);
    for (let leases = 0; leases < 2; leases += 1) {
      await alarm(jobs);
      expect(told("jobs_due")).toBe(3);
    }
    held.resolve(undefined);
    await settled();
    expect(told("jobs_due")).toBe(0);
  }));

test("[L11] an object that comes up again, or is deleted, takes back what it told as due", () =>
  withJobs(1, async ({ jobs, open, run, alarm }) => {
    run.mockReturnValueOnce(new Promise(() => undefined));
    for (const key of ["one", "two"]) jobs.set({ kind: "work", key });
    await vi.waitFor(() => expect(run).toHaveBeenCalledTimes(1));
    expect(told("jobs_due")).toBe(1);
    jobs.stop();
    expect(told("jobs_due")).toBe(0);
    await alarm(open());
    await vi.waitFor(() => expect(run).toHaveBeenCalledTimes(3));
    expect(told("jobs_due")).toBe(0);
  }));
