import { asc, eq } from "drizzle-orm";
import type { SQLiteUpdateSetSource } from "drizzle-orm/sqlite-core";
import type { HookSettings, UpdateHook } from "../../protocol/hook.ts";
import type { HookRotation, NewHook, SealedHook } from "../../protocol/rpc.ts";
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

export class Hooks {
  readonly #db: Database;
  readonly #clock: Clock;

  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  /** Oldest first; `maxHooks` of them at most. */
  list(): HookSettings[] {
    const rows = this.#db.select().from(hooks).orderBy(asc(hooks.createdAt), asc(hooks.id)).all();
    return rows.map((row) => this.#view(row));
  }

  /** Throws `not_found`. */
  get(id: string): HookSettings {
    return this.#view(this.#row(id));
  }

  /** Throws `limit_reached` past `maxHooks`. */
  create(hook: NewHook): HookSettings {
    const known = this.#find(hook.id);
    if (known) return this.#view(known);
    if (countOf(this.#db, hooks) >= maxHooks) {
      throw new ColloquyError("limit_reached", `maxHooks (${maxHooks}) is reached; delete some first`);
    }
    const now = this.#clock.now();
    const row = { ...hook, createdAt: now, updatedAt: now };
    return this.#view(this.#db.insert(hooks).values(row).returning().get());
  }

  /** Throws `not_found`. */
  update(id: string, changes: UpdateHook): HookSettings {
    return this.#write(id, changes);
  }

  /** Throws `not_found`. */
  rotate(id: string, { sealed, version, graceMs }: HookRotation): HookSettings {
    const row = this.#row(id);
    if (row.version === version) return this.#view(row);
    const previous = graceMs > 0 ? { previousSealed: row.sealed, previousUntil: this.#clock.now() + graceMs } : none;
    return this.#write(id, { sealed, version, ...previous });
  }

  /** Throws `not_found`. */
  delete(id: string): void {
    const deleted = this.#db.delete(hooks).where(eq(hooks.id, id)).returning({ id: hooks.id }).all();
    if (deleted.length === 0) throw missing();
  }

  /** The settings and sealed secrets that verify a delivery. Throws `not_found`. */
  sealed(id: string): Pick<SealedHook, "settings" | "sealed"> {
    const row = this.#row(id);
    const previous = this.#inGrace(row) ? row.previousSealed : null;
    return { settings: this.#view(row), sealed: previous === null ? [row.sealed] : [row.sealed, previous] };
  }

  #inGrace(row: HookRow): boolean {
    return row.previousUntil !== null && row.previousUntil > this.#clock.now();
  }

  #find(id: string): HookRow | undefined {
    return this.#db.select().from(hooks).where(eq(hooks.id, id)).get();
  }

  #row(id: string): HookRow {
    const row = this.#find(id);
    if (!row) throw missing();
    return row;
  }

  #write(id: string, changes: SQLiteUpdateSetSource<typeof hooks>): HookSettings {
    const set = { ...changes, updatedAt: this.#clock.now() };
    const row = this.#db.update(hooks).set(set).where(eq(hooks.id, id)).returning().get();
    if (!row) throw missing();
    return this.#view(row);
  }

  #view(row: HookRow): HookSettings {
    const { sealed: _, version, previousSealed, previousUntil, createdAt, updatedAt, ...settings } = row;
    return {
      ...withoutNulls(settings),
      createdAt: isoTime(createdAt),
      updatedAt: isoTime(updatedAt),
      ...(previousUntil !== null && this.#inGrace(row) ? { previousSecretUntil: isoTime(previousUntil) } : {}),
    };
  }
}

const none = { previousSealed: null, previousUntil: null };

const missing = (): ColloquyError => new ColloquyError("not_found", "there is no such hook");
