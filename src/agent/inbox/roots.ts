import { lt, sql } from "drizzle-orm";
import type { Root } from "../../protocol/rpc.ts";
import type { Clock } from "../../shared/clock.ts";
import { among, type Database, prepared } from "../../shared/database.ts";
import { agentRootEveryMs, rootMemoryMs } from "../bounds.ts";
import type { OwnRoot } from "../records.ts";
import { roots } from "./schema.ts";

/**
 * The wakes of each root: one wakes this agent at most `maxWakesPerRoot` times (B1). A batch counts once for each root
 * in it. A retry of the same events does not count.
 */
export type Roots = ReturnType<typeof createRoots>;

const known = prepared((db) =>
  db
    .select()
    .from(roots)
    .where(among(roots.id, sql.placeholder("ids"))),
);
const counting = prepared((db) => {
  const updatedAt = sql.placeholder("updatedAt");
  return db
    .insert(roots)
    .values({ id: sql.placeholder("id"), wakes: 1, updatedAt })
    .onConflictDoUpdate({
      target: roots.id,
      set: { wakes: sql`${roots.wakes} + 1`, updatedAt: sql`excluded.updated_at` },
    })
    .returning({ wakes: roots.wakes });
});

export const createRoots = (db: Database, clock: Clock) => {
  return {
    wakes(ids: string[]): Map<string, number> {
      if (ids.length === 0) return new Map();
      const rows = known(db).all({ ids: JSON.stringify(ids) });
      return new Map(rows.map((row) => [row.id, row.wakes]));
    },

    /** Answers those that have woken the agent `maxWakes` times by now. */
    count(ids: string[], maxWakes: number): string[] {
      const updatedAt = clock.now();
      return ids.filter((id) => counting(db).get({ id, updatedAt }).wakes >= maxWakes);
    },

    forgetOld(): void {
      db.delete(roots)
        .where(lt(roots.updatedAt, clock.now() - rootMemoryMs))
        .run();
    },
  };
};

/** The root of a recurring plan that the agent set itself. A new one begins every `agentRootEveryMs` at most. */
export const ownRoot = (last: OwnRoot | null, eventId: string, now: number): OwnRoot =>
  last !== null && Math.abs(now - last.beganAt) < agentRootEveryMs ? last : { id: eventId, beganAt: now };

/**
 * The root of a run's messages: the newest event's that is not an agent's own, else the one that has woken this agent
 * least. `events` are oldest first.
 */
export const rootOfAnswer = (events: Root[], wakes: Map<string, number>): Root | undefined => {
  const personal = events.findLast((root) => root.kind !== "agent");
  if (personal) return personal;
  return [...events].sort((one, other) => (wakes.get(one.id) ?? 0) - (wakes.get(other.id) ?? 0))[0];
};
