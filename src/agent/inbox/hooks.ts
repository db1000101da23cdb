import { and, asc, eq } from "drizzle-orm";
import type { SQLiteUpdateSetSource } from "drizzle-orm/sqlite-core";
import type { HookRotation, NewHook, SealedHook } from "../../protocol/agent-rpc.ts";
import type { HookSettings, UpdateHook } from "../../protocol/hook.ts";
import { type Clock, isoTime } from "../../shared/clock.ts";
import { countOf, type Database } from "../../shared/database.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { withoutNulls } from "../../shared/without-nulls.ts";
import { maxHooks } from "../bounds.ts";
import { hooks } from "../schema.ts";

/**
 * An agent's hooks for webhook senders, with their sealed secrets.
 *
 * Invariants
 * 1. A hook has one secret, and for a time after a rotation the previous one too. It never has a third.
 * 2. The same creation or rotation again (its `version` tells) changes nothing.
 */
type HookRow = typeof hooks.$inferSelect;

export type Hooks = ReturnType<typeof createHooks>;

export const createHooks = (db: Database, clock: Clock) => {
  const isIt = (id: string) => eq(hooks.id, id);
  const find = (id: string): HookRow | undefined => db.select().from(hooks).where(isIt(id)).get();

  const isInGrace = ({ previousUntil }: HookRow): boolean => previousUntil !== null && previousUntil > clock.now();

  const view = (row: HookRow): HookSettings => {
    const { sealed: _, version, previousSealed, previousUntil, createdAt, updatedAt, ...settings } = row;
    return {
      ...withoutNulls(settings),
      createdAt: isoTime(createdAt),
      updatedAt: isoTime(updatedAt),
      ...(previousUntil !== null && isInGrace(row) ? { previousSecretUntil: isoTime(previousUntil) } : {}),
    };
  };

  const write = (id: string, changes: SQLiteUpdateSetSource<typeof hooks>): HookSettings => {
    const set = { ...changes, updatedAt: clock.now() };
    return view(there(db.update(hooks).set(set).where(isIt(id)).returning().get()));
  };

  /** All but `list` and `create` throw `not_found` if there is no such hook. */
  return {
    /** Oldest first; `maxHooks` of them at most. */
    list: (): HookSettings[] => db.select().from(hooks).orderBy(asc(hooks.createdAt), asc(hooks.id)).all().map(view),

    get: (id: string): HookSettings => view(there(find(id))),

    /** Throws `limit_reached` past `maxHooks`. */
    create(hook: NewHook): HookSettings {
      const known = find(hook.id);
      if (known) return view(known);
      if (countOf(db, hooks) >= maxHooks) {
        throw new ColloquyError("limit_reached", `maxHooks (${maxHooks}) is reached; delete some first`);
      }
      const now = clock.now();
      const row = { ...hook, createdAt: now, updatedAt: now };
      return view(db.insert(hooks).values(row).returning().get());
    },

    update: (id: string, changes: UpdateHook): HookSettings => write(id, changes),

    rotate(id: string, { sealed, version, graceMs }: HookRotation): HookSettings {
      const row = there(find(id));
      if (row.version === version) return view(row);
      const isGraced = graceMs > 0;
      const previousSealed = isGraced ? row.sealed : null;
      return write(id, { sealed, version, previousSealed, previousUntil: isGraced ? clock.now() + graceMs : null });
    },

    delete(id: string): void {
      there(db.delete(hooks).where(isIt(id)).returning().get());
    },

    /** Has all secrets sealed anew. Answers the hooks that could not be; a secret whose grace is over is forgotten. */
    async reseal(anew: (id: string, sealed: string) => Promise<string>): Promise<string[]> {
      const unopened: string[] = [];
      for (const row of db.select().from(hooks).all()) {
        const { id, sealed, previousSealed } = row;
        const previous = isInGrace(row) ? previousSealed : null;
        try {
          const fresh = { sealed: await anew(id, sealed), previousSealed: previous && (await anew(id, previous)) };
          // One that was rotated meanwhile is sealed anew by that.
          db.update(hooks)
            .set(fresh)
            .where(and(isIt(id), eq(hooks.sealed, sealed)))
            .run();
        } catch {
          unopened.push(id);
        }
      }
      return unopened;
    },

    /** The settings and sealed secrets that verify a delivery. */
    sealed(id: string): Pick<SealedHook, "settings" | "sealed"> {
      const row = there(find(id));
      const previous = isInGrace(row) && row.previousSealed !== null ? [row.previousSealed] : [];
      return { settings: view(row), sealed: [row.sealed, ...previous] };
    },
  };
};

const there = (row: HookRow | undefined): HookRow => {
  if (!row) throw new ColloquyError("not_found", "there is no such hook");
  return row;
};
