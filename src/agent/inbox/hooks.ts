import { asc, eq } from "drizzle-orm";
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
  const inGrace = (row: HookRow): boolean => {
    return row.previousUntil !== null && row.previousUntil > clock.now();
  };

  const find = (id: string): HookRow | undefined => {
    return db.select().from(hooks).where(eq(hooks.id, id)).get();
  };

  const row_ = (id: string): HookRow => {
    const row = find(id);
    if (!row) throw missing();
    return row;
  };

  const write = (id: string, changes: SQLiteUpdateSetSource<typeof hooks>): HookSettings => {
    const set = { ...changes, updatedAt: clock.now() };
    const row = db.update(hooks).set(set).where(eq(hooks.id, id)).returning().get();
    if (!row) throw missing();
    return view(row);
  };

  const view = (row: HookRow): HookSettings => {
    const { sealed: _, version, previousSealed, previousUntil, createdAt, updatedAt, ...settings } = row;
    return {
      ...withoutNulls(settings),
      createdAt: isoTime(createdAt),
      updatedAt: isoTime(updatedAt),
      ...(previousUntil !== null && inGrace(row) ? { previousSecretUntil: isoTime(previousUntil) } : {}),
    };
  };

  return {
    /** Oldest first; `maxHooks` of them at most. */
    list(): HookSettings[] {
      const rows = db.select().from(hooks).orderBy(asc(hooks.createdAt), asc(hooks.id)).all();
      return rows.map((row) => view(row));
    },

    /** Throws `not_found`. */
    get: (id: string): HookSettings => view(row_(id)),

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

    /** Throws `not_found`. */
    update: (id: string, changes: UpdateHook): HookSettings => write(id, changes),

    /** Throws `not_found`. */
    rotate(id: string, { sealed, version, graceMs }: HookRotation): HookSettings {
      const row = row_(id);
      if (row.version === version) return view(row);
      const previous = graceMs > 0 ? { previousSealed: row.sealed, previousUntil: clock.now() + graceMs } : none;
      return write(id, { sealed, version, ...previous });
    },

    /** Throws `not_found`. */
    delete(id: string): void {
      const deleted = db.delete(hooks).where(eq(hooks.id, id)).returning({ id: hooks.id }).all();
      if (deleted.length === 0) throw missing();
    },

    /** The settings and sealed secrets that verify a delivery. Throws `not_found`. */
    sealed(id: string): Pick<SealedHook, "settings" | "sealed"> {
      const row = row_(id);
      const previous = inGrace(row) ? row.previousSealed : null;
      return { settings: view(row), sealed: previous === null ? [row.sealed] : [row.sealed, previous] };
    },
  };
};

const none = { previousSealed: null, previousUntil: null };

const missing = (): ColloquyError => new ColloquyError("not_found", "there is no such hook");
