import { and, asc, count, eq, gt, isNull, or, type SQL, sql } from "drizzle-orm";
import type { Budget } from "../../protocol/events.ts";
import type { Clock } from "../../shared/clock.ts";
import { among, countOf, type Database } from "../../shared/database.ts";
import { maxHeldEvents, maxHeldEventsOfPerson } from "../bounds.ts";
import type { InboxData } from "../records.ts";
import { type InboxRow, inbox, overheard } from "../schema.ts";
import { personOf } from "./event-conditions.ts";
import { everybody, type OutOfBudget } from "./out-of-budget.ts";

/**
 * The inbox's events that wait for tokens, or for runs of an hour. An event that its person's share has no room for is
 * held. Its `retryAt` is the share's end, and its wake was counted as it was held. It is in no batch before, so that
 * others' go on (C10, C11). A person has few held, so that others' have room beside them (C12).
 */
type Around = {
  clock: Clock;
  outOfBudget: OutOfBudget;
  /** Counts a wake of each of these roots (B1). */
  countWakes(rootIds: string[]): void;
  /** These events are only heard from now on. */
  overhear(which: SQL | undefined): void;
};

/** Whether an event may be heard without a run: no result, and no answer that the agent waits for. */
const isChatter = ({ data }: InboxRow): boolean => data.type !== "tool_result" && !("answers" in data);

const isPending = eq(inbox.status, "pending");

export const createHeldEvents = (db: Database, { clock, outOfBudget, countWakes, overhear }: Around) => {
  /** The space is told, where a person who gets no answer today said this there themselves. In a transaction. */
  const noteWaiting = (data: InboxData): void => {
    if (data.type !== "space_message") return;
    const { spaceId, sender } = data.delivered.message;
    if (sender.type !== "human") return;
    for (const person of [everybody, sender.id]) outOfBudget.waitsIn(person, spaceId);
  };

  /** How many events of each person are held. Those of failed runs, which pause for under a minute, count too. */
  const heldByPerson = (): Map<string | null, number> => {
    const person = sql<string | null>`${personOf}`;
    const isHeld = and(isPending, gt(inbox.retryAt, clock.now()));
    const rows = db.select({ person, held: count() }).from(inbox).where(isHeld).groupBy(person).all();
    return new Map(rows.map((row) => [row.person, row.held]));
  };

  /** How many more of this person's events have room. */
  const roomOf = (person: string, held: Map<string | null, number>): number => {
    const all = [...held.values()].reduce((sum, each) => sum + each, 0);
    return Math.min(maxHeldEventsOfPerson - (held.get(person) ?? 0), maxHeldEvents - all);
  };

  /** Whether so many of a person's events wait that soon nobody else's have room (C12). */
  const isCrowded = (person: string): boolean =>
    countOf(db, inbox) >= maxHeldEvents &&
    countOf(db, inbox, and(isPending, sql`${personOf} = ${person}`)) >= maxHeldEvents;

  return {
    /**
     * How new events that ask for a run wait: until when they are held; `heard`, where that is one too many; undefined where
     * the person's share has room, and the inbox has some for them. In a transaction.
     */
    admission(): (data: InboxData, person: string | undefined) => number | "heard" | undefined {
      let held: Map<string | null, number> | undefined;
      return (data, person) => {
        noteWaiting(data);
        if (person === undefined) return undefined;
        const [until, isChat] = [outOfBudget.until(person), data.type === "space_message" && !data.answers];
        if (until === undefined) return isChat && isCrowded(person) ? "heard" : until;
        held ??= heldByPerson();
        if (roomOf(person, held) <= 0) return "heard";
        held.set(person, (held.get(person) ?? 0) + 1);
        return until;
      };
    },

    /**
     * A run with these events found that a person, or everybody, is out of budget until then. Notes where people wait for
     * that. A person's waiting events are held, as many as have room; other people's go on. In a transaction.
     */
    spend(person: string, until: number, seqs: number[], budget: Budget = "tokens"): void {
      outOfBudget.begin(person, until, budget);
      const isTheirs = person === everybody ? undefined : sql`${personOf} = ${person}`;
      const meant = and(or(and(isPending, inbox.wakes), among(inbox.seq, seqs)), isTheirs);
      const rows = db.select().from(inbox).where(meant).orderBy(asc(inbox.seq)).all();
      for (const { data } of rows) noteWaiting(data);
      if (person === everybody) return;
      const waiting = rows.filter(({ status, retryAt }) => status === "pending" && (retryAt ?? 0) < until);
      const those = (some: InboxRow[]): SQL =>
        among(
          inbox.seq,
          some.map(({ seq }) => seq),
        );
      const chatter = waiting.filter(isChatter).slice(Math.max(0, roomOf(person, heldByPerson())));
      if (chatter.length > 0) overhear(those(chatter));
      const held = waiting.filter((row) => !chatter.includes(row));
      db.update(inbox).set({ retryAt: until }).where(those(held)).run();
      countWakes(held.flatMap(({ retryAt, rootId }) => (retryAt === null ? rootId : [])));
    },

    /**
     * Makes the events pending again without an attempt: the run did not fail because of them (a spent budget). Those of
     * persons who are out of budget are held; their wakes were counted before.
     */
    requeue(seqs: number[]): void {
      const again = (retryAt: number, person?: string): void => {
        const isMeant = and(among(inbox.seq, seqs), person === undefined ? undefined : sql`${personOf} = ${person}`);
        db.update(inbox).set({ status: "pending", retryAt }).where(isMeant).run();
      };
      again(clock.now());
      for (const [person, until] of outOfBudget.persons()) again(until, person);
    },

    /** The message of an event was edited, or deleted: then the event goes. What is remembered of it is read anew after. */
    become({ seq }: Pick<InboxRow, "seq">, data: InboxData | null): void {
      for (const table of [inbox, overheard]) {
        const isIt = eq(table.seq, seq);
        if (data) db.update(table).set({ data }).where(isIt).run();
        else db.delete(table).where(isIt).run();
      }
    },

    /** How many events of services, or of one root alone, wait for their first run. The wakes of others have been counted. */
    waitingOfServices(rootId?: string): number {
      const isOfRoot = rootId === undefined ? undefined : eq(inbox.rootId, rootId);
      const isWaiting = and(eq(inbox.type, "service"), isPending, inbox.wakes, isNull(inbox.retryAt));
      return countOf(db, inbox, and(isWaiting, isOfRoot));
    },

    /** Events that are held, or wait for the day to end, may be taken now. */
    free(): void {
      for (const until of outOfBudget.clear()) {
        db.update(inbox)
          .set({ retryAt: clock.now() })
          .where(and(isPending, eq(inbox.retryAt, until)))
          .run();
      }
    },
  };
};
