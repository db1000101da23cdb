import { and, eq, isNotNull, isNull } from "drizzle-orm";
import type { MessageRouting } from "../../protocol/message.ts";
import type { Principal } from "../../protocol/principal.ts";
import { isoTime } from "../../shared/clock.ts";
import { among, type Database, Remembered } from "../../shared/database.ts";
import { ColloquyError } from "../../shared/errors.ts";
import type { Log, LogRow } from "../log/log.ts";
import { type Known, readable } from "../rights.ts";
import { decisions, type StoredDecision } from "../schema.ts";

export type Decisions = ReturnType<typeof createDecisions>;

/**
 * The messages that the space's router was asked about, and its decisions.
 *
 * Invariants
 * 1. A message is held in the transaction that stores it, and decided once: a decision is never changed.
 * 2. `pending` repeats what SQLite says; it is read anew after each change.
 */
export const createDecisions = (db: Database) => {
  const pending = new Remembered<readonly number[]>(db, () => {
    const undecided = db.select().from(decisions).where(isNull(decisions.decision)).orderBy(decisions.seq).all();
    return undecided.map(({ seq }) => seq);
  });
  return {
    /** The messages that are not decided, by `seq`, in order. */
    pending: (): readonly number[] => pending.get(),

    hold(seq: number): void {
      pending.writing().insert(decisions).values({ seq }).run();
    },

    decide(seq: number, decision: StoredDecision): void {
      pending.writing().update(decisions).set({ decision }).where(eq(decisions.seq, seq)).run();
    },

    find: (seq: number): typeof decisions.$inferSelect | undefined =>
      db.select().from(decisions).where(eq(decisions.seq, seq)).get(),

    /** The agents that the router chose, for those of `rows` that it was asked about. */
    chosen(rows: LogRow[]): Map<number, string[]> {
      const asked = rows.filter((row) => row.routing?.asksRouter).map(({ seq }) => seq);
      if (asked.length === 0) return new Map();
      const isDecided = and(among(decisions.seq, asked), isNotNull(decisions.decision));
      const found = db.select().from(decisions).where(isDecided).all();
      return new Map(found.map(({ seq, decision }) => [seq, decision?.agents ?? []]));
    },

    clear(): void {
      pending.writing().delete(decisions).run();
    },
  };
};

/** The router's decision about a message, or `pending`. `not_found` where the router was not asked. */
export const routingOf = (
  services: Known & { log: Log; decisions: Decisions },
  principal: Principal,
  messageId: string,
): MessageRouting => {
  readable(services, principal, false);
  const row = services.log.findMessage(messageId);
  const asked = row && services.decisions.find(row.seq);
  if (!asked) throw new ColloquyError("not_found", `The space's router was not asked about ${messageId}`);
  if (!asked.decision) return { messageId, outcome: "pending", agents: [] };
  const { at, ...decision } = asked.decision;
  return { messageId, ...decision, at: isoTime(at) };
};
