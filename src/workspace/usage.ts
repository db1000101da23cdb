import { and, between, eq, inArray, lt, min, ne, or, type SQL, sql, sum } from "drizzle-orm";
import type { SQLiteColumn } from "drizzle-orm/sqlite-core";
import {
  type UsageBy,
  type UsageEntry,
  type UsagePage,
  type UsageReport,
  type UsageRequest,
  type UsageRow,
  usageDays,
} from "../protocol/usage.ts";
import { type Clock, dayMs } from "../shared/clock.ts";
import { among, countOf, type Database, Remembered } from "../shared/database.ts";
import { pageOf } from "../shared/page.ts";
import { maxUsageDetails } from "./bounds.ts";
import { usage } from "./schema.ts";
import { dayOf } from "./token-leases.ts";

/** Rows that are stored before those that are too many, or too old, are looked for. */
const pruneEvery = 1000;
/** The day of the row that says how far a reporter has come. */
const noDay = "";

const isPlaceOfAny = eq(usage.day, noDay);
const isOfSpace = eq(usage.subject, "");
/** Where the figures of each kind stand, and whose they are. */
const places: Record<UsageBy, { of: SQL; where: SQL | undefined }> = {
  day: { of: sql`${usage.day}`, where: eq(usage.kind, "all") },
  agent: {
    of: sql`${usage.subject}`,
    where: or(eq(usage.kind, "agent"), and(eq(usage.kind, "all"), ne(usage.subject, ""))),
  },
  person: { of: sql`${usage.subject}`, where: eq(usage.kind, "person") },
  space: {
    of: sql`case ${usage.kind} when 'all' then ${usage.reporter} else ${usage.subject} end`,
    where: or(eq(usage.kind, "space"), and(eq(usage.kind, "all"), isOfSpace)),
  },
};

const key = [usage.day, usage.reporter, usage.kind, usage.subject];
/** Without the runs and messages of some reporters. */
const figuresWithout = (hidden: string[]) => {
  const shown = (column: SQLiteColumn) => sum(sql`iif(${among(usage.reporter, hidden)}, 0, ${column})`);
  return {
    tokens: sum(usage.tokens).mapWith(Number),
    runs: shown(usage.runs).mapWith(Number),
    messages: shown(usage.messages).mapWith(Number),
  };
};

/**
 * L15: what was used in the workspace, as its agents and spaces tell it about once a minute.
 *
 * Invariants
 * 1. Each reporter has its own rows. Its tokens replace those that it told before; runs and messages are added only
 *    where they follow on what it told before. So nothing counts twice, whatever is told again or late.
 * 2. The row of the day "" says up to which row its reporter has told, and, as its tokens, how many bytes it stores.
 * 3. Days longer ago than `usageDays` leave. Where there are too many rows of persons, agents in spaces and spaces, those of the
 *    oldest day leave first; the totals stay.
 */
export const createUsage = (db: Database, clock: Clock, ownBytes: () => number, mostDetails = maxUsageDetails) => {
  let stored = pruneEvery;
  /** The bytes that all reporters store: the rows that say how far each has come hold them as tokens. */
  const storing = new Remembered(db, () => {
    const { tokens: bytes } = figuresWithout([]);
    return db.select({ bytes }).from(usage).where(isPlaceOfAny).get()?.bytes ?? 0;
  });

  const oldestDay = (): string => dayOf(clock.now() - usageDays * dayMs);

  const prune = (): void => {
    db.delete(usage)
      .where(and(ne(usage.day, noDay), lt(usage.day, oldestDay())))
      .run();
    const isDetail = and(ne(usage.day, noDay), ne(usage.kind, "all"));
    for (let left = countOf(db, usage, isDetail); left > mostDetails; left = countOf(db, usage, isDetail)) {
      const oldest = db
        .select({ day: min(usage.day) })
        .from(usage)
        .where(isDetail);
      db.delete(usage)
        .where(and(isDetail, eq(usage.day, sql`(${oldest})`)))
        .run();
    }
  };

  return {
    /** Answers up to which of its rows the reporter has told. Belongs in a transaction. */
    note({ reporter, tokens, counted, bytes }: UsageReport): { upTo: number } {
      const oldest = oldestDay();
      const store = (rows: UsageRow[], column: "tokens" | "runs" | "messages"): void => {
        for (const [day, kind, subject, figure] of rows) {
          if (day < oldest) continue;
          stored += 1;
          const before = column === "tokens" ? 0 : usage[column];
          db.insert(usage)
            .values({ day, reporter, kind, subject, [column]: figure })
            .onConflictDoUpdate({ target: key, set: { [column]: sql`${before} + ${figure}` } })
            .run();
        }
      };
      store(tokens, "tokens");
      const isPlace = and(eq(usage.day, noDay), eq(usage.reporter, reporter));
      const place = db.select().from(usage).where(isPlace).get() ?? { runs: 0, tokens: 0 };
      const isNext = counted !== undefined && counted.after === place.runs;
      if (isNext) store(counted.rows, reporter.startsWith("spc_") ? "messages" : "runs");
      const now = { runs: isNext ? counted.upTo : place.runs, tokens: bytes ?? place.tokens };
      if (now.runs !== place.runs || now.tokens !== place.tokens) {
        const before = storing.get();
        db.insert(usage)
          .values({ day: noDay, reporter, kind: "all", subject: "", ...now })
          .onConflictDoUpdate({ target: key, set: now })
          .run();
        storing.set(before - place.tokens + now.tokens);
      }
      if (stored >= pruneEvery) {
        stored = 0;
        prune();
      }
      return { upTo: now.runs };
    },

    /** The bytes that are stored, as told last. */
    bytes: (): number => storing.get() + ownBytes(),

    /** The agent is gone, and its compartments: they store nothing, whether or not they could say so. */
    forgetStorage(agentId: string): void {
      const isIts = and(eq(usage.kind, "all"), eq(usage.subject, agentId));
      const minds = db.select({ id: usage.reporter }).from(usage).where(isIts);
      const isMind = or(eq(usage.reporter, agentId), inArray(usage.reporter, minds));
      db.update(usage).set({ tokens: 0 }).where(and(isPlaceOfAny, isMind)).run();
      storing.forget();
    },

    /** The ids of the spaces and agents that have told how much they store. */
    reporters(): string[] {
      const told = db.select({ id: usage.reporter }).from(usage).where(isPlaceOfAny);
      return told.all().map(({ id }) => id);
    },

    /** By day the newest first, else who used the most tokens first. Without the runs and messages of hidden reporters. */
    page({ by, from, to, ...request }: UsageRequest, hidden: string[] = []): UsagePage {
      const figures = figuresWithout(hidden);
      const isWithin = between(usage.day, from, to);
      const { of, where } = places[by];
      const name = sql<string>`${of}`.as("name");
      const read = ({ from: place = 0, limit }: { from: number | undefined; limit: number }) =>
        db
          .select({ name, ...figures })
          .from(usage)
          .where(and(isWithin, where))
          .groupBy(sql`name`)
          .having(sql`${figures.tokens} + ${figures.runs} + ${figures.messages} > 0`)
          .orderBy(by === "day" ? sql`name desc` : sql`${figures.tokens} desc, ${figures.messages} desc, name`)
          .limit(limit)
          .offset(place)
          .all()
          .map((row, index) => ({ ...row, position: place + index + 1 }));
      const entryOf = ({ name: named, tokens, runs, messages }: ReturnType<typeof read>[number]): UsageEntry => ({
        ...(by === "day" ? { day: named } : { id: named }),
        ...{ tokens, runs, messages },
      });
      const isTotal = and(isWithin, eq(usage.kind, "all"));
      const total = db.select(figures).from(usage).where(isTotal).get();
      const none = { tokens: 0, runs: 0, messages: 0 };
      return { ...pageOf(request, read, entryOf), from, to, total: total?.tokens == null ? none : total };
    },
  };
};
export type Usage = ReturnType<typeof createUsage>;
