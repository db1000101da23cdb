import { asc, eq } from "drizzle-orm";
import { type Goal, type Memory, maxMemoryCharacters, type PutGoal } from "../../protocol/mind.ts";
import { type Clock, isoTime } from "../../shared/clock.ts";
import { type Database, prepared, Remembered } from "../../shared/database.ts";
import { atPath, ColloquyError } from "../../shared/errors.ts";
import { withoutNulls } from "../../shared/without-nulls.ts";
import { maxGoals, maxMemories, maxMemoriesCharacters } from "../bounds.ts";
import type { OpenItems } from "../records.ts";
import { goals, memories } from "../schema.ts";

/** `what` says which bound has been reached. */
const full = (what: string): ColloquyError =>
  new ColloquyError("limit_reached", `${what}. Set less, or delete some first`);

const asMemory = ({ updatedAt, ...row }: typeof memories.$inferSelect): Memory => ({
  ...row,
  updatedAt: isoTime(updatedAt),
});

export type Memories = ReturnType<typeof createMemories>;

const allMemories = prepared((db) => db.select().from(memories).orderBy(asc(memories.key)));
const allGoals = prepared((db) => db.select().from(goals).orderBy(asc(goals.createdAt), asc(goals.id)));

/** An agent's key-value facts. Setting one twice is setting it once, so a replay changes nothing (R2). */
export const createMemories = (db: Database, clock: Clock, open: OpenItems<Memory>) => {
  const known = new Remembered(db, () => allMemories(db).all().map(asMemory));

  const remove = (key: string): boolean => {
    open.requireOwn(key, known.get());
    return known.writing().delete(memories).where(eq(memories.key, key)).returning().all().length > 0;
  };

  /** Throws `limit_reached` where all memories together would be too much with these. */
  const checkTotal = (entries: { key: string; value: string }[]): void => {
    const values = new Map([...known.get(), ...entries].map(({ key, value }) => [key, value]));
    const kept = [...values.values()].filter((value) => value !== "");
    if (kept.length > maxMemories) throw full(`there would be ${kept.length}, more than maxMemories (${maxMemories})`);
    const characters = kept.join("").length;
    if (characters <= maxMemoriesCharacters) return;
    throw full(`there would be ${characters} characters, more than maxMemoriesCharacters (${maxMemoriesCharacters})`);
  };

  /** An empty value clears the key. */
  const put = (key: string, value: string): Memory => {
    open.requireOwn(key, known.get());
    const changes = { value, updatedAt: clock.now() };
    if (value === "") {
      remove(key);
      return asMemory({ key, ...changes });
    }
    if ([...value].length > maxMemoryCharacters) {
      const detail = `a memory holds at most ${maxMemoryCharacters} characters (maxMemoryCharacters); shorten "${key}"`;
      throw new ColloquyError("text_too_long", detail);
    }
    const insert = known
      .writing()
      .insert(memories)
      .values({ key, ...changes });
    return asMemory(insert.onConflictDoUpdate({ target: memories.key, set: changes }).returning().get());
  };

  return {
    set(key: string, value: string): Memory {
      checkTotal([{ key, value }]);
      return put(key, value);
    },
    delete: remove,
    list: (): Memory[] => known.get(),
    /** As the model knows them: with those of the open mind, in a compartment. */
    all: (keys?: string[]) => open.withOpen(known.get()).filter(({ key }) => keys?.includes(key) ?? true),
    /** All of them, or, where one is refused, none. */
    setAll: (entries: { key: string; value: string }[]): Memory[] =>
      db.transaction(() => {
        atPath("memories", () => checkTotal(entries));
        return entries.map(({ key, value }, index) => atPath(`memories.${index}.value`, () => put(key, value)));
      }),
  };
};

const asGoal = ({ createdAt: _, ...row }: typeof goals.$inferSelect): Goal =>
  withoutNulls({ ...row, updatedAt: isoTime(row.updatedAt) });

export type Goals = ReturnType<typeof createGoals>;

/** An agent's aims, by ids of the caller's choice. Setting one is an upsert: what is left out stays as it was. */
export const createGoals = (db: Database, clock: Clock, open: OpenItems<Goal>) => {
  const known = new Remembered(db, () => allGoals(db).all().map(asGoal));

  /** Throws `invalid_request` for a new goal without description, `limit_reached` past `maxGoals`. */
  const set = (id: string, changes: PutGoal): Goal => {
    open.requireOwn(id, known.get());
    const old = known.get().find((goal) => goal.id === id);
    const description = changes.description ?? old?.description;
    if (description === undefined) {
      throw new ColloquyError("invalid_request", `goal "${id}" is new: give it a description`);
    }
    if (!old && known.get().length >= maxGoals) throw full(`maxGoals (${maxGoals}) is reached`);
    const now = clock.now();
    const next = {
      description,
      status: changes.status ?? old?.status ?? "active",
      priority: changes.priority ?? old?.priority ?? null,
      longTerm: changes.longTerm ?? old?.longTerm ?? false,
      updatedAt: now,
    };
    const insert = known
      .writing()
      .insert(goals)
      .values({ id, ...next, createdAt: now });
    return asGoal(insert.onConflictDoUpdate({ target: goals.id, set: next }).returning().get());
  };

  return {
    set,
    delete: (id: string): boolean => {
      open.requireOwn(id, known.get());
      return known.writing().delete(goals).where(eq(goals.id, id)).returning().all().length > 0;
    },
    list: (): Goal[] => known.get(),
    /** As the model knows them: with those of the open mind, in a compartment. */
    all: () => open.withOpen(known.get()),
    /** All of them, or, where one is refused, none. */
    setAll: (entries: ({ id: string } & PutGoal)[]): Goal[] =>
      db.transaction(() =>
        entries.map(({ id, ...changes }, index) => atPath(`goals.${index}`, () => set(id, changes), "goals")),
      ),
  };
};
