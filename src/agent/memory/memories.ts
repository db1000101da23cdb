import { asc, eq } from "drizzle-orm";
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
  readonly #list: Remembered<Memory[]>;

  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
    this.#list = new Remembered(db, () => this.#all().all().map(asMemory));
  }

  list(keys?: string[]): Memory[] {
    const all = this.#list.get();
    return keys ? all.filter(({ key }) => keys.includes(key)) : all;
  }

  /** All of them, or, where one is refused, none. */
  setAll(entries: { key: string; value: string }[]): void {
    this.#db.transaction(() => {
      for (const { key, value } of entries) this.set(key, value);
    });
  }

  /** An empty value clears the key. Throws `limit_reached` past `maxMemories`. */
  set(key: string, value: string): Memory {
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
    const others = this.list().filter((memory) => memory.key !== key);
    const characters = others.reduce((sum, memory) => sum + memory.value.length, value.length);
    if (characters > maxMemoriesCharacters) {
      throw new ColloquyError(
        "limit_reached",
        `all memories together hold at most ${maxMemoriesCharacters} characters (maxMemoriesCharacters); delete some first`,
      );
    }
    if (others.length >= maxMemories) {
      throw new ColloquyError("limit_reached", `maxMemories (${maxMemories}) is reached; delete some first`);
    }
    this.#list
      .writing()
      .insert(memories)
      .values({ key, value, updatedAt })
      .onConflictDoUpdate({ target: memories.key, set: { value, updatedAt } })
      .run();
    return { key, value, updatedAt: isoTime(updatedAt) };
  }

  delete(key: string): boolean {
    return this.#list.writing().delete(memories).where(eq(memories.key, key)).returning().all().length > 0;
  }
}

const asMemory = ({ updatedAt, ...row }: typeof memories.$inferSelect): Memory => ({
  ...row,
  updatedAt: isoTime(updatedAt),
});
