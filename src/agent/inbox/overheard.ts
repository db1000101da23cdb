import { and, asc, desc, eq, or, sql } from "drizzle-orm";
import type { Clock } from "../../shared/clock.ts";
import { type Database, prepared } from "../../shared/database.ts";
import { keptOverheardEvents, maxInboxEvents, maxOverheardEvents } from "../bounds.ts";
import { inbox } from "../schema.ts";
import { inSpace, mutedByRoot, ready } from "./waking.ts";

/** `spaceId`: for messages only. */
type OverheardEvent = Pick<typeof inbox.$inferSelect, "seq" | "eventId" | "type"> & { spaceId: string | null };

/**
 * The inbox's events that ask for no run: messages that wake nobody, and events whose root has woken the agent as often
 * as it may.
 *
 * Invariants
 * 1. `#room` events may be added before more than `maxOverheardEvents` of these can wait. It is unknown after any other
 *    change of the inbox and after a rollback, until the next count.
 */
export class Overheard {
  readonly #db: Database;
  readonly #clock: Clock;
  #room: number | undefined;

  readonly #in = prepared(() =>
    this.#db
      .select()
      .from(inbox)
      .where(and(ready, or(eq(inbox.wakes, false), mutedByRoot), inSpace))
      .orderBy(asc(inbox.seq))
      .limit(maxOverheardEvents),
  );
  /** All but the newest `keptOverheardEvents`. Of messages, their space's history holds them too. */
  readonly #beyondKept = prepared(() =>
    this.#db
      .select({
        seq: inbox.seq,
        eventId: inbox.eventId,
        type: inbox.type,
        spaceId: sql<string | null>`json_extract(${inbox.data}, '$.delivered.message.spaceId')`,
      })
      .from(inbox)
      .where(and(ready, or(mutedByRoot, and(eq(inbox.type, "space_message"), eq(inbox.wakes, false)))))
      .orderBy(desc(inbox.seq))
      .limit(maxInboxEvents)
      .offset(keptOverheardEvents),
  );

  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  in(spaceId: string, maxWakes: number): (typeof inbox.$inferSelect)[] {
    return this.#in().all({ spaceId, maxWakes, now: this.#clock.now() });
  }

  /** So many events were added, or so many of these removed (negative). */
  count(events: number): void {
    if (this.#room !== undefined) this.#room -= events;
  }

  /** The next question counts anew. */
  forget(): void {
    this.#room = undefined;
  }

  /** The oldest ones beyond `keptOverheardEvents`, if there are more than `maxOverheardEvents`. Counts only if it must. */
  tooMany(maxWakes: number): OverheardEvent[] {
    if (this.#room !== undefined && this.#room >= 0) return [];
    const beyond = this.#beyondKept().all({ maxWakes, now: this.#clock.now() });
    this.#room = maxOverheardEvents - keptOverheardEvents - beyond.length;
    return this.#room < 0 ? beyond : [];
  }
}
