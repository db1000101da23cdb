import { and, asc, desc, eq, inArray, lte, min, ne } from "drizzle-orm";
import type { Plan, PutPlan } from "../../protocol/plan.ts";
import type { Root } from "../../protocol/rpc.ts";
import { type Clock, isoTime } from "../../shared/clock.ts";
import { among, countOf, type Database, prepared, Remembered } from "../../shared/database.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { log } from "../../shared/log.ts";
import { withoutNulls } from "../../shared/without-nulls.ts";
import type { Timers } from "../../timers/timers.ts";
import { maxDonePlans, maxPlans, planRetryMs } from "../bounds.ts";
import type { Failure } from "../records.ts";
import { plans } from "../schema.ts";
import { firstDueAt, nextCronTime } from "./recurrence.ts";

/**
 * An agent's plans, by ids of the caller's choice. Setting one replaces it.
 *
 * Invariants
 * 1. While a plan is active, the timer `plans` is due no later than the earliest `tryAt`. All plans share one timer, since
 *    each row costs.
 * 2. A due time fires once: its event and the plan's next due time are stored in one transaction, and the next is
 *    after both the due time and now. A clock that goes back fires nothing twice; missed times fire once (R6).
 * 3. Each plan fires in a transaction of its own; one that cannot is tried again later and delays no other (R6).
 * 4. A replay of the call that set a plan changes nothing (R2).
 */
export const plansTimer = "plans";

export type PlanRow = typeof plans.$inferSelect;

/** Who sets a plan. `at` is when the tool was called, which a replay knows too. */
export type Setter = { setBy: "workspace" } | { setBy: "agent"; root: Root; callId: string; at: number };

type Transaction = <T>(work: () => T) => T;

export type Plans = ReturnType<typeof createPlans>;

export const createPlans = (db: Database, clock: Clock, timers: Timers, transaction: Transaction) => {
  const all = prepared(() => db.select().from(plans).orderBy(asc(plans.status), asc(plans.dueAt), asc(plans.id)));
  const listed = new Remembered(db, () => all().all().map(asPlan));

  const setOne = (id: string, plan: PutPlan, setter: Setter): PlanRow => {
    const known = db.select().from(plans).where(eq(plans.id, id)).get();
    const callId = setter.setBy === "agent" ? setter.callId : null;
    if (known && callId !== null && known.callId === callId) return known;
    const now = setter.setBy === "agent" ? setter.at : clock.now();
    const firedFor = known?.firedFor ?? null;
    const dueAt = firstDueAt(plan, plan.cron === undefined ? now : Math.max(now, firedFor ?? now));
    if (known?.status !== "active" && countOf(db, plans, eq(plans.status, "active")) >= maxPlans) {
      throw new ColloquyError("limit_reached", `maxPlans (${maxPlans}) is reached; delete some first`);
    }
    listed.writing().delete(plans).where(eq(plans.id, id)).run();
    const row: typeof plans.$inferInsert = {
      ...{ id, ...plan, setBy: setter.setBy, callId, status: "active", dueAt, tryAt: dueAt, firedFor },
      root: setter.setBy === "agent" && plan.cron === undefined ? setter.root : null,
      updatedAt: clock.now(),
    };
    return db.insert(plans).values(row).returning().get();
  };

  const advance = (plan: PlanRow, now: number): void => {
    const changes = { firedFor: plan.dueAt, lastError: null, updatedAt: now, ...nextOf(plan, now) };
    listed.writing().update(plans).set(changes).where(eq(plans.id, plan.id)).run();
  };

  const postpone = (plan: PlanRow, now: number, error: unknown): void => {
    const expected = error instanceof ColloquyError;
    if (!expected) log.error("plan.failed", error, { plan: plan.id });
    const lastError: Failure = expected
      ? { code: error.code, message: error.message }
      : { code: "internal", message: "the plan could not be fired; it is tried again" };
    listed
      .writing()
      .update(plans)
      .set({ lastError, tryAt: now + planRetryMs })
      .where(eq(plans.id, plan.id))
      .run();
  };

  const forgetDone = (): void => {
    const done = db.select({ id: plans.id }).from(plans).where(ne(plans.status, "active"));
    const old = done.orderBy(desc(plans.updatedAt)).limit(maxPlans).offset(maxDonePlans);
    listed.writing().delete(plans).where(inArray(plans.id, old)).run();
  };

  /** `anew`: the timer has just fired, so that it must be set again even to the same time. */
  const arm = (anew = false): void => {
    const first = db
      .select({ at: min(plans.tryAt) })
      .from(plans)
      .where(eq(plans.status, "active"))
      .get();
    const current = timers.dueAt(plansTimer);
    if (first?.at != null) {
      if (anew || current !== first.at) timers.set(plansTimer, first.at);
    } else if (current !== undefined) timers.clear(plansTimer);
  };

  return {
    /** The active plans in the order of their due times, then the last `maxDonePlans` others. */
    list: (): Plan[] => listed.get(),

    /** All or none. Throws `invalid_time` for a time that cannot be kept, `limit_reached` past `maxPlans`. */
    setAll(all: ({ id: string } & PutPlan)[], setter: Setter): Plan[] {
      return transaction(() => {
        const set = all.map(({ id, ...plan }) => asPlan(setOne(id, plan, setter)));
        arm();
        return set;
      });
    },

    /** A plan that a person sets, by the workspace's right. */
    put(id: string, plan: PutPlan): Plan {
      const [set] = this.setAll([{ id, ...plan }], { setBy: "workspace" });
      if (!set) throw new Error("a plan that was set is there");
      return set;
    },

    /** Answers how many there were. */
    delete(ids: string[]): number {
      return transaction(() => {
        const deleted = listed.writing().delete(plans).where(among(plans.id, ids)).returning({ id: plans.id }).all();
        arm();
        return deleted.length;
      });
    },

    /** Hands every due plan to `enter`, which stores its event. Leaves the timer set for what is due next. */
    fire(enter: (plan: PlanRow, dueAt: number) => void): void {
      const now = clock.now();
      const due = db
        .select()
        .from(plans)
        .where(and(eq(plans.status, "active"), lte(plans.tryAt, now)))
        .orderBy(asc(plans.dueAt), asc(plans.id))
        .all();
      for (const plan of due) {
        try {
          transaction(() => {
            advance(plan, now);
            enter(plan, plan.dueAt);
          });
        } catch (error) {
          postpone(plan, now, error);
        }
      }
      if (due.length > 0) forgetDone();
      arm(true);
    },

    /** Arms the timer for plans that an import wrote. Those whose time has passed are due now. */
    resume: (): void => arm(),
  };
};

/** The state of a plan after it fired. */
const nextOf = (plan: PlanRow, now: number): Partial<PlanRow> => {
  if (plan.cron === null) return { status: "done" };
  try {
    const next = nextCronTime(plan.cron, plan.timezone ?? undefined, Math.max(now, plan.dueAt));
    return { dueAt: next, tryAt: next };
  } catch (error) {
    if (!(error instanceof ColloquyError)) throw error;
    return { status: "failed", lastError: { code: error.code, message: error.message } };
  }
};

const asPlan = ({ id, name, instruction, dueAt, status, setBy, ...row }: PlanRow): Plan => {
  const { runAfter, scheduledAt, cron, timezone, lastError } = row;
  const times = withoutNulls({ runAfter, scheduledAt, cron, timezone });
  const next = status === "active" ? { nextRunAt: isoTime(dueAt) } : {};
  return { id, name, instruction, ...times, ...next, status, setBy, ...withoutNulls({ lastError }) };
};
