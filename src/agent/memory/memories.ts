import { asc, count, eq, sql } from "drizzle-orm";
import { type Memory, maxMemoryCharacters } from "../../protocol/mind.ts";
import { type Clock, isoTime } from "../../shared/clock.ts";
import { type Database, prepared, Remembered } from "../../shared/database.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { maxMemories, maxMemoriesCharacters } from "../bounds.ts";
import { memories } from "../schema.ts";

/** An agent's key-value facts. Setting one twice is setting it once, so a replay changes nothing (R2). */
export class Memories {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #all = prepared(() => this.#db.select().from(memories).orderBy(asc(memories.key)));
  readonly #list = new Remembered(() => this.#all().all().map(asMemory));

  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  list(keys?: string[]): Memory[] {
    const all = this.#list.get();
    return keys ? all.filter(({ key }) => keys.includes(key)) : all;
  }

  forget(): void {
    this.#list.forget();
  }

  /** All of them, or, where one is refused, none. */
  setAll(entries: { key: string; value: string }[]): void {
    this.#db.transaction(() => {
      for (const { key, value } of entries) this.set(key, value);
    });
  }

  /** An empty value clears the key. Throws `limit_reached` past `maxMemories`. */
  set(key: string, value: string): Memory {
    this.forget();
    const updatedAt = this.#clock.now();
    if (value === "") {
      this.delete(key);
      return { key, value, updatedAt: isoTime(updatedAt) };
    }
    if ([...value].length > maxMemoryCharacters) {
      throw new ColloquyError(
        "text_too_long",
        `a memory holds at most ${maxMemoryCharacters} characters (maxMemoryCharacters); shorten "${key}"`,
      );
    }
    const known = this.#db.select().from(memories).where(eq(memories.key, key)).get();
    const others = this.#characters() - (known ? known.value.length : 0);
    if (others + value.length > maxMemoriesCharacters) {
      throw new ColloquyError(
        "limit_reached",
        `all memories together hold at most ${maxMemoriesCharacters} characters (maxMemoriesCharacters); delete some first`,
      );
    }
    if (!known && (this.#db.select({ rows: count() }).from(memories).get()?.rows ?? 0) >= maxMemories) {
      throw new ColloquyError("limit_reached", `maxMemories (${maxMemories}) is reached; delete some first`);
    }
    this.#db
      .insert(memories)
      .values({ key, value, updatedAt })
      .onConflictDoUpdate({ target: memories.key, set: { value, updatedAt } })
      .run();
    return { key, value, updatedAt: isoTime(updatedAt) };
  }

  #characters(): number {
    return (
      this.#db
        .select({ characters: sql<number>`coalesce(sum(length(${memories.value})), 0)` })
        .from(memories)
        .get()?.characters ?? 0
    );
  }

  delete(key: string): boolean {
    this.forget();
    return this.#db.delete(memories).where(eq(memories.key, key)).returning().all().length > 0;
  }
}

const asMemory = ({ updatedAt, ...row }: typeof memories.$inferSelect): Memory => ({
  ...row,
  updatedAt: isoTime(updatedAt),
});
