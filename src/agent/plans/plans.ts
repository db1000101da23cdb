import { asc, eq } from "drizzle-orm";
import type { Plan, PutPlan } from "../../protocol/plan.ts";
import type { Root } from "../../protocol/rpc.ts";
import { type Clock, isoTime } from "../../shared/clock.ts";
import { among, type Database, prepared, Remembered } from "../../shared/database.ts";
import { atPath, ColloquyError } from "../../shared/errors.ts";
import { log } from "../../shared/log.ts";
import { withoutNulls } from "../../shared/without-nulls.ts";
import type { Timers } from "../../timers/timers.ts";
import { maxDonePlans, maxPlans, planRetryMs } from "../bounds.ts";
import type { Failure, OpenItems } from "../records.ts";
import { plans } from "../schema.ts";
import { firstDueAt, nextCronTime } from "./recurrence.ts";

/**
 * An agent's plans, by ids of the caller's choice. Setting one replaces it.
 *
 * Invariants
 * 1. While a plan is active, the timer `plans` is due no later than the earliest `tryAt`. All plans share one timer, since
 *    each row costs.
 * 2. A due time fires once: its event and the plan's next due time are stored in one transaction. The next is after
 *    both the due time and now. A clock that goes back fires nothing twice; missed times fire once (R6).
 * 3. Each plan fires in a transaction of its own; one that cannot is tried again later and delays no other (R6).
 * 4. A replay of the call that set a plan changes nothing (R2).
 */
export const plansTimer = "plans";

export type PlanRow = typeof plans.$inferSelect;

/** The one who sets a plan, and the root that they do it in. `at` is when the tool was called, which a replay knows too. */
export type Setter =
  | { setBy: "workspace"; root: Root | undefined }
  | { setBy: "agent"; root: Root; callId: string; at: number };

export type Plans = ReturnType<typeof createPlans>;

const all = prepared((db) => db.select().from(plans).orderBy(asc(plans.status), asc(plans.dueAt), asc(plans.id)));

export const createPlans = (db: Database, clock: Clock, timers: Timers, open: OpenItems<Plan>) => {
  const rows = new Remembered(db, () => all(db).all());
  const active = (): PlanRow[] => rows.get().filter(({ status }) => status === "active");
  const update = (id: string, changes: Partial<PlanRow>): void => {
    rows.writing().update(plans).set(changes).where(eq(plans.id, id)).run();
  };

  const setOne = ({ id, ...plan }: { id: string } & PutPlan, setter: Setter): Plan => {
    open.requireOwn(id, rows.get().map(asPlan));
    const known = rows.get().find((row) => row.id === id);
    const callId = setter.setBy === "agent" ? setter.callId : null;
    if (known && callId !== null && known.callId === callId) return asPlan(known);
    const now = setter.setBy === "agent" ? setter.at : clock.now();
    const firedFor = known?.firedFor ?? null;
    const dueAt = firstDueAt(plan, plan.cron === undefined ? now : Math.max(now, firedFor ?? now));
    if (known?.status !== "active" && active().length >= maxPlans) {
      throw new ColloquyError("limit_reached", `maxPlans (${maxPlans}) is reached; delete some first`);
    }
    rows.writing().delete(plans).where(eq(plans.id, id)).run();
    const row: typeof plans.$inferInsert = {
      ...{ id, ...plan, setBy: setter.setBy, callId, status: "active", dueAt, tryAt: dueAt, firedFor },
      root: setter.root ?? null,
      updatedAt: clock.now(),
    };
    return asPlan(db.insert(plans).values(row).returning().get());
  };

  const deleteAll = (ids: string[]): number =>
    rows.writing().delete(plans).where(among(plans.id, ids)).returning({ id: plans.id }).all().length;

  /** `anew`: the timer has just fired, so that it must be set again even to the same time. */
  const arm = (anew = false): void => {
    const current = timers.dueAt(plansTimer);
    const first = Math.min(...active().map(({ tryAt }) => tryAt));
    if (first < Number.POSITIVE_INFINITY) {
      if (anew || current !== first) timers.set(plansTimer, first);
    } else if (current !== undefined) timers.clear(plansTimer);
  };

  const change = <T>(write: () => T): T =>
    db.transaction(() => {
      const changed = write();
      arm();
      return changed;
    });

  return {
    /** The active plans in the order of their due times, then the last `maxDonePlans` others. */
    list: (): Plan[] => rows.get().map(asPlan),

    /** As the model knows them: with those of the open mind, in a compartment, which fire there. */
    all: () => open.withOpen(rows.get().map(asPlan)),

    /** All or none. Throws `invalid_time` for a time that cannot be kept, `limit_reached` past `maxPlans`. */
    setAll: (all: ({ id: string } & PutPlan)[], setter: Setter): Plan[] =>
      change(() => all.map((plan, index) => atPath(`plans.${index}`, () => setOne(plan, setter), "plans"))),

    /** A plan that a person sets, by the workspace's right. */
    put: (id: string, plan: PutPlan, root?: Root): Plan =>
      change(() => setOne({ id, ...plan }, { setBy: "workspace", root })),

    /** Answers how many there were. */
    delete: (ids: string[]): number =>
      change(() => {
        for (const id of ids) open.requireOwn(id, rows.get().map(asPlan));
        return deleteAll(ids);
      }),

    /** Hands every due plan to `enter`, which stores its event. Leaves the timer set for what is due next. */
    fire(enter: (plan: PlanRow, dueAt: number) => void): void {
      const now = clock.now();
      const due = active().filter(({ tryAt }) => tryAt <= now);
      for (const plan of due) {
        try {
          db.transaction(() => {
            update(plan.id, { firedFor: plan.dueAt, lastError: null, ...nextOf(plan, now) });
            enter(plan, plan.dueAt);
          });
        } catch (error) {
          if (!(error instanceof ColloquyError)) log.error("plan.failed", error, { plan: plan.id });
          update(plan.id, { lastError: failureOf(error), tryAt: now + planRetryMs });
        }
      }
      const done = rows.get().filter(({ status }) => status !== "active");
      const newestFirst = done.sort((one, other) => other.dueAt - one.dueAt);
      if (done.length > maxDonePlans) deleteAll(newestFirst.slice(maxDonePlans).map(({ id }) => id));
      arm(true);
    },

    /** Arms the timer for plans that an import wrote. Those whose time has passed are due now. */
    resume: (): void => arm(),
  };
};

const failureOf = (error: unknown): Failure =>
  error instanceof ColloquyError
    ? { code: error.code, message: error.message }
    : { code: "internal", message: "the plan could not be fired; it is tried again" };

const nextOf = (plan: PlanRow, now: number): Partial<PlanRow> => {
  if (plan.cron === null) return { status: "done" };
  try {
    const next = nextCronTime(plan.cron, plan.timezone ?? undefined, Math.max(now, plan.dueAt));
    return { dueAt: next, tryAt: next };
  } catch (error) {
    if (!(error instanceof ColloquyError)) throw error;
    return { status: "failed", lastError: failureOf(error) };
  }
};

const asPlan = ({ id, name, instruction, dueAt, status, setBy, ...row }: PlanRow): Plan => {
  const { runAfter, scheduledAt, cron, timezone, lastError } = row;
  const times = withoutNulls({ runAfter, scheduledAt, cron, timezone });
  const next = status === "active" ? { nextRunAt: isoTime(dueAt) } : {};
  const updatedAt = isoTime(row.updatedAt);
  return { id, name, instruction, ...times, ...next, status, setBy, ...withoutNulls({ lastError }), updatedAt };
};
