import { asc, count, eq } from "drizzle-orm";
import type { HookSettings, UpdateHook } from "../../protocol/hook.ts";
import type { HookRotation, NewHook, SealedHook } from "../../protocol/rpc.ts";
import { type Clock, isoTime } from "../../shared/clock.ts";
import type { Database } from "../../shared/database.ts";
import { ColloquyError } from "../../shared/errors.ts";
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
  create({ id, scheme, name, sealed, version, ...settings }: NewHook): HookSettings {
    const known = this.#find(id);
    if (known) return this.#view(known);
    const rows = this.#db.select({ rows: count() }).from(hooks).get()?.rows ?? 0;
    if (rows >= maxHooks)
      throw new ColloquyError("limit_reached", `maxHooks (${maxHooks}) is reached; delete some first`);
    const now = this.#clock.now();
    const row = this.#db
      .insert(hooks)
      .values({
        id,
        scheme,
        name,
        header: settings.header ?? null,
        idHeader: settings.idHeader ?? null,
        eventHeader: settings.eventHeader ?? null,
        template: settings.template ?? null,
        events: settings.events ?? null,
        sealed,
        version,
        createdAt: now,
        updatedAt: now,
      })
      .returning()
      .get();
    return this.#view(row);
  }

  /** Throws `not_found`. */
  update(id: string, { name, template, events }: UpdateHook): HookSettings {
    const row = this.#row(id);
    return this.#write(id, {
      name: name ?? row.name,
      template: template === undefined ? row.template : template,
      events: events === undefined ? row.events : events,
    });
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

  #write(id: string, changes: Partial<HookRow>): HookSettings {
    const updatedAt = this.#clock.now();
    return this.#view(
      this.#db
        .update(hooks)
        .set({ ...changes, updatedAt })
        .where(eq(hooks.id, id))
        .returning()
        .get(),
    );
  }

  #view(row: HookRow): HookSettings {
    return {
      id: row.id,
      scheme: row.scheme,
      name: row.name,
      ...(row.header === null ? {} : { header: row.header }),
      ...(row.idHeader === null ? {} : { idHeader: row.idHeader }),
      ...(row.eventHeader === null ? {} : { eventHeader: row.eventHeader }),
      ...(row.template === null ? {} : { template: row.template }),
      ...(row.events === null ? {} : { events: row.events }),
      createdAt: isoTime(row.createdAt),
      updatedAt: isoTime(row.updatedAt),
      ...(row.previousUntil !== null && this.#inGrace(row) ? { previousSecretUntil: isoTime(row.previousUntil) } : {}),
    };
  }
}

const none = { previousSealed: null, previousUntil: null };

const missing = (): ColloquyError => new ColloquyError("not_found", "there is no such hook");
