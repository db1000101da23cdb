import { and, isNotNull, lte, ne, or, sql } from "drizzle-orm";
import { isoTime } from "../../shared/clock.ts";
import { ownCycles } from "../run/summaries.ts";
import { archival, goals, memories, plans, summaries } from "../schema.ts";
import { insertNew, type KindStore, rowsAfter } from "./kind-store.ts";
import { knownNames } from "./schema.ts";

/** The agent's memory state, its summaries and archival entries, and the names that it knew. */
const rowsAtATime = 100;
const textsAtATime = 20;

/** `export.ts` writes the names in its first page: they come from many tables. */
export const nameRows: KindStore<"name"> = {
  read: () => [],
  insert: (db, row) => insertNew(db, knownNames, row),
};

export const memoryRows: KindStore<"memory"> = {
  read: (db, after) =>
    rowsAfter(db, memories, { column: memories.key, after, limit: rowsAtATime }).map((memory) => ({
      row: { ...memory, updatedAt: isoTime(memory.updatedAt) },
      place: memory.key,
    })),
  insert: (db, row) => insertNew(db, memories, { ...row, updatedAt: Date.parse(row.updatedAt) }),
};

export const goalRows: KindStore<"goal"> = {
  read: (db, after) =>
    rowsAfter(db, goals, { column: goals.id, after, limit: rowsAtATime }).map(
      ({ priority, createdAt, updatedAt, ...goal }) => ({
        row: {
          ...goal,
          ...(priority === null ? {} : { priority }),
          createdAt: isoTime(createdAt),
          updatedAt: isoTime(updatedAt),
        },
        place: goal.id,
      }),
    ),
  insert: (db, { createdAt, updatedAt, ...goal }) =>
    insertNew(db, goals, { ...goal, createdAt: Date.parse(createdAt), updatedAt: Date.parse(updatedAt) }),
};

/**
 * A plan's root is not exported: a person's root would let a document wake more than its importer asked for. A plan that
 * the agent set itself begins a root of the agent's own, as its crons do.
 */
export const planRows: KindStore<"plan"> = {
  read: (db, after) =>
    rowsAfter(db, plans, { column: plans.id, after, limit: rowsAtATime }).map((plan) => ({
      row: {
        id: plan.id,
        name: plan.name,
        instruction: plan.instruction,
        runAfter: plan.runAfter ?? undefined,
        scheduledAt: plan.scheduledAt ?? undefined,
        cron: plan.cron ?? undefined,
        timezone: plan.timezone ?? undefined,
        status: plan.status,
        setBy: plan.setBy,
        dueAt: isoTime(plan.dueAt),
        firedFor: plan.firedFor === null ? undefined : isoTime(plan.firedFor),
        lastError: plan.lastError ?? undefined,
        updatedAt: isoTime(plan.updatedAt),
      },
      place: plan.id,
    })),
  insert: (db, { dueAt, firedFor, updatedAt, ...plan }) =>
    insertNew(db, plans, {
      ...plan,
      dueAt: Date.parse(dueAt),
      tryAt: Date.parse(dueAt),
      firedFor: firedFor === undefined ? null : Date.parse(firedFor),
      updatedAt: Date.parse(updatedAt),
    }),
};

/** Summaries that have a text. The next run asks again for what is still to be folded. */
export const summaryRows: KindStore<"summary"> = {
  read: (db, after, bounds) => {
    // A summary that was folded since may tell of runs that are not in the export.
    const isWithin = or(ne(summaries.subject, ownCycles), lte(summaries.upTo, bounds.run));
    const only = and(isNotNull(summaries.text), isWithin);
    return rowsAfter(db, summaries, { column: summaries.subject, after, limit: textsAtATime, only }).map(
      ({ subject, text, base, upTo, updatedAt }) => ({
        row: { subject, text: text ?? "", base, upTo, updatedAt: isoTime(updatedAt) },
        place: subject,
      }),
    );
  },
  insert: (db, row) =>
    insertNew(db, summaries, { ...row, wanted: 0, failures: 0, updatedAt: Date.parse(row.updatedAt) }),
};

export const archivalRows: KindStore<"archival"> = {
  read: (db, after, bounds) =>
    rowsAfter(db, archival, {
      column: archival.ordinal,
      after,
      limit: rowsAtATime,
      only: lte(archival.ordinal, bounds.archival),
    }).map(({ ordinal, createdAt, ...entry }) => ({
      row: { ...entry, createdAt: isoTime(createdAt) },
      place: ordinal,
    })),
  // Raw SQL: there may be a hundred thousand, and building a query costs more than running it.
  insert: (db, { id, content, metadata, source, createdAt }, { ids, agentId }) =>
    db.all(sql`insert into archival (id, content, metadata, source, created_at) values (
      ${ids.deriveOwned("arch", agentId, "import", id)}, ${content}, ${JSON.stringify(metadata)},
      ${JSON.stringify(source)}, ${Date.parse(createdAt)}) on conflict do nothing returning ordinal`).length > 0,
};
