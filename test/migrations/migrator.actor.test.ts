import { migrate } from "drizzle-orm/durable-sqlite/migrator";
import { expect, test } from "vitest";
import { histories } from "../../migrations/histories.ts";
import { createSchema, type Migrations, openDatabase } from "../../src/shared/database.ts";
import { withStorage } from "../workspace/fixture.ts";
import { countsOf, dump } from "./database.ts";

/** Surprising behaviour of drizzle's migrator: whoever upgrades it learns here what has changed. */
const history = (...entries: [when: number, sql: string][]): Migrations => ({
  journal: { entries: entries.map(([when], idx) => ({ idx, when, tag: `t${idx}`, breakpoints: true })) },
  migrations: Object.fromEntries(entries.map(([, sql], idx) => [`m${String(idx).padStart(4, "0")}`, sql])),
  newest: [
    "CREATE TABLE __drizzle_migrations (id SERIAL PRIMARY KEY, hash text NOT NULL, created_at numeric);",
    `INSERT INTO __drizzle_migrations (hash, created_at) VALUES ('', ${entries.at(-1)?.[0]});`,
    ...entries.map(([, sql]) => sql),
  ].join("\n"),
});

/** With how full-text tables are set, without which migrations ran: a new object has run none. */
const tablesOf = (storage: DurableObjectStorage): unknown[] => {
  const made = dump(storage).split(/;\n/);
  const settings = [...storage.sql.exec("SELECT name FROM sqlite_master WHERE name GLOB '*_config'")];
  return [
    ...made.filter((statement) => !statement.includes("__drizzle_migrations")),
    ...settings.map(({ name }) => [name, [...storage.sql.exec(`SELECT * FROM "${name}"`)]]),
  ];
};

test.each(Object.entries(histories))(
  "a new object of kind %s has the tables that its whole history ends in",
  async (_, whole) => {
    const migrated = await withStorage(async (storage) => {
      await migrate(openDatabase(storage), whole);
      return tablesOf(storage);
    });
    await withStorage(async (storage) => {
      await createSchema(openDatabase(storage), whole);
      expect(tablesOf(storage)).toEqual(migrated);
      const before = dump(storage);
      await createSchema(openDatabase(storage), whole);
      expect(dump(storage)).toBe(before);
    });
  },
);

const one: [number, string] = [1000, "CREATE TABLE one (id integer);"];

test("a migration that fails midway leaves nothing, and says only that it was rolled back", () =>
  withStorage(async (storage) => {
    const db = openDatabase(storage);
    await createSchema(db, history(one));
    const broken = history(one, [
      2000,
      "CREATE TABLE two (id integer);--> statement-breakpoint\nINSERT INTO nowhere VALUES (1);",
    ]);
    await expect(createSchema(db, broken)).rejects.toThrow(/rollback/i);
    expect(Object.keys(countsOf(storage))).not.toContain("two");
    await createSchema(db, history(one, [2000, "CREATE TABLE two (id integer);"]));
    expect(Object.keys(countsOf(storage))).toContain("two");
  }));

test("a migration older than the last is skipped silently: npm run check refuses such a history", () =>
  withStorage(async (storage) => {
    const db = openDatabase(storage);
    await createSchema(db, history(one));
    await createSchema(db, history(one, [999, "CREATE TABLE late (id integer);"]));
    expect(Object.keys(countsOf(storage))).not.toContain("late");
  }));

test("a schema that is up to date is opened without a write", () =>
  withStorage(async (storage) => {
    const db = openDatabase(storage);
    await createSchema(db, history(one));
    const before = countsOf(storage);
    await createSchema(db, history(one));
    expect(countsOf(storage)).toEqual(before);
  }));

test("a transaction whose work is asynchronous is not rolled back: none here is", () =>
  withStorage(async (storage) => {
    const db = openDatabase(storage);
    await createSchema(db, history(one));
    const asynchronous = async (): Promise<void> => {
      storage.sql.exec("INSERT INTO one VALUES (1)");
      await Promise.resolve();
      throw new Error("too late");
    };
    await expect(storage.transactionSync(asynchronous)).rejects.toThrow("too late");
    expect(countsOf(storage).one).toBe(1);
    expect(() =>
      storage.transactionSync(() => {
        storage.sql.exec("INSERT INTO one VALUES (2)");
        throw new Error("in time");
      }),
    ).toThrow("in time");
    expect(countsOf(storage).one).toBe(1);
    const sources = import.meta.glob<string>("../../src/**/*.ts", { query: "?raw", import: "default", eager: true });
    const asynchronously = Object.entries(sources).filter(([, source]) => /transaction(Sync)?\(\s*async/.test(source));
    expect(asynchronously.map(([name]) => name)).toEqual([]);
  }));
