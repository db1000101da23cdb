import { and, asc, gt, isNotNull, lte, ne, or, sql } from "drizzle-orm";
import type { CarriedItem } from "../../protocol/exported-agent.ts";
import { isoTime } from "../../shared/clock.ts";
import { archival } from "../memory/search/schema.ts";
import { ownCycles } from "../run/summaries.ts";
import { goals, memories, plans, summaries } from "../schema.ts";
import { isNew, type ListOf } from "./kind-store.ts";
import { knownNames } from "./schema.ts";

/** What an agent keeps by itself: memories, goals, plans, summaries, archival entries; and the names that it knew. */
const rowsAtATime = 100;
const first = (after: (string | number)[]): string => String(after[0] ?? "");

/** Those of an export come from more than one table, and stand in its head. */
export const carriedNames: ListOf<"names"> = {
  read: () => [],
  writer: (db) => (item) =>
    isNew(db.insert(knownNames).values(item).onConflictDoNothing().returning({ id: knownNames.id }).all()),
};

export const carriedMemories: ListOf<"memories"> = {
  read: (db, after) =>
    db
      .select()
      .from(memories)
      .where(gt(memories.key, first(after)))
      .orderBy(asc(memories.key))
      .limit(rowsAtATime)
      .all()
      .map(({ key, value, updatedAt }) => ({ item: { key, value, updatedAt: isoTime(updatedAt) }, place: [key] })),
  writer:
    (db) =>
    ({ updatedAt, ...memory }) =>
      isNew(
        db
          .insert(memories)
          .values({ ...memory, updatedAt: Date.parse(updatedAt) })
          .onConflictDoNothing()
          .returning({ key: memories.key })
          .all(),
      ),
};

export const carriedGoals: ListOf<"goals"> = {
  read: (db, after) =>
    db
      .select()
      .from(goals)
      .where(gt(goals.id, first(after)))
      .orderBy(asc(goals.id))
      .limit(rowsAtATime)
      .all()
      .map(({ priority, createdAt, updatedAt, ...goal }) => ({
        item: {
          ...goal,
          ...(priority === null ? {} : { priority }),
          createdAt: isoTime(createdAt),
          updatedAt: isoTime(updatedAt),
        },
        place: [goal.id],
      })),
  writer:
    (db) =>
    ({ createdAt, updatedAt, ...goal }) =>
      isNew(
        db
          .insert(goals)
          .values({ ...goal, createdAt: Date.parse(createdAt), updatedAt: Date.parse(updatedAt) })
          .onConflictDoNothing()
          .returning({ id: goals.id })
          .all(),
      ),
};

type PlanRow = typeof plans.$inferSelect;

const asCarriedPlan = (row: PlanRow): CarriedItem<"plans"> => ({
  id: row.id,
  name: row.name,
  instruction: row.instruction,
  ...(row.runAfter === null ? {} : { runAfter: row.runAfter }),
  ...(row.scheduledAt === null ? {} : { scheduledAt: row.scheduledAt }),
  ...(row.cron === null ? {} : { cron: row.cron }),
  ...(row.timezone === null ? {} : { timezone: row.timezone }),
  status: row.status,
  setBy: row.setBy,
  dueAt: isoTime(row.dueAt),
  ...(row.firedFor === null ? {} : { firedFor: isoTime(row.firedFor) }),
  ...(row.lastError === null ? {} : { lastError: row.lastError }),
  updatedAt: isoTime(row.updatedAt),
});

/**
 * The chain of wakes that a plan was set in ended where it was set: a plan that the agent set itself begins a root of
 * the agent's own, as its crons do, and no person's.
 */
export const carriedPlans: ListOf<"plans"> = {
  read: (db, after) =>
    db
      .select()
      .from(plans)
      .where(gt(plans.id, first(after)))
      .orderBy(asc(plans.id))
      .limit(rowsAtATime)
      .all()
      .map((row) => ({ item: asCarriedPlan(row), place: [row.id] })),
  writer:
    (db) =>
    ({ dueAt, firedFor, updatedAt, ...plan }) =>
      isNew(
        db
          .insert(plans)
          .values({
            ...plan,
            dueAt: Date.parse(dueAt),
            tryAt: Date.parse(dueAt),
            firedFor: firedFor === undefined ? null : Date.parse(firedFor),
            updatedAt: Date.parse(updatedAt),
          })
          .onConflictDoNothing()
          .returning({ id: plans.id })
          .all(),
      ),
};

const textsAtATime = 20;

/** Those that were folded at least once; what is still wanted of them is wanted again by the next run. */
export const carriedSummaries: ListOf<"summaries"> = {
  read: (db, after, bounds) =>
    db
      .select()
      .from(summaries)
      .where(
        and(
          gt(summaries.subject, first(after)),
          isNotNull(summaries.text),
          // One that was folded since may tell of runs that are not in the export.
          or(ne(summaries.subject, ownCycles), lte(summaries.upTo, bounds.run)),
        ),
      )
      .orderBy(asc(summaries.subject))
      .limit(textsAtATime)
      .all()
      .map(({ subject, text, base, upTo, updatedAt }) => ({
        item: { subject, text: text ?? "", base, upTo, updatedAt: isoTime(updatedAt) },
        place: [subject],
      })),
  writer:
    (db) =>
    ({ updatedAt, ...summary }) =>
      isNew(
        db
          .insert(summaries)
          .values({ ...summary, wanted: 0, failures: 0, updatedAt: Date.parse(updatedAt) })
          .onConflictDoNothing()
          .returning({ subject: summaries.subject })
          .all(),
      ),
};

export const carriedArchival: ListOf<"archival"> = {
  read: (db, after, bounds) =>
    db
      .select()
      .from(archival)
      .where(sql`${archival.ordinal} > ${after[0] ?? 0} and ${archival.ordinal} <= ${bounds.archival}`)
      .orderBy(asc(archival.ordinal))
      .limit(rowsAtATime)
      .all()
      .map(({ ordinal, createdAt, ...entry }) => ({
        item: { ...entry, createdAt: isoTime(createdAt) },
        place: [ordinal],
      })),
  writer: (db, { ids, agentId }) => {
    // There may be a hundred thousand.
    const insert = db
      .insert(archival)
      .values({
        id: sql.placeholder("id"),
        content: sql.placeholder("content"),
        metadata: sql.placeholder("metadata"),
        source: sql.placeholder("source"),
        createdAt: sql.placeholder("createdAt"),
      })
      .onConflictDoNothing()
      .returning({ ordinal: archival.ordinal })
      .prepare();
    return ({ id, createdAt, ...entry }) =>
      isNew(
        insert.all({
          ...entry,
          id: ids.deriveOwned("arch", agentId, "import", id),
          createdAt: Date.parse(createdAt),
        }),
      );
  },
};
