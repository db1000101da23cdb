import { count, eq, type Placeholder, type SQL, sql } from "drizzle-orm";
import { type DrizzleSqliteDODatabase, drizzle } from "drizzle-orm/durable-sqlite";
import { migrate } from "drizzle-orm/durable-sqlite/migrator";
import type { SQLiteColumn, SQLiteTable, SQLiteView } from "drizzle-orm/sqlite-core";

export type Database = DrizzleSqliteDODatabase;

/** The journal and the statements that drizzle-kit generates. */
export type Migrations = Parameters<typeof migrate>[1];

/**
 * An actor's database. Nothing is written until `createSchema` has run: a Durable Object that was never created
 * answers `not_found` and stores no byte, so its tables are made by `create`, not by its constructor.
 */
export const openDatabase = (storage: DurableObjectStorage): Database => drizzle(storage);

/** Whether this object was ever created. Costs no write. */
export const hasSchema = (storage: DurableObjectStorage): boolean =>
  storage.sql.exec("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '__drizzle_migrations'").toArray()
    .length > 0;

export const createSchema = (db: Database, migrations: Migrations): Promise<void> => migrate(db, migrations);

/**
 * A query that is asked often: built and prepared when it is first asked, and kept. Building one costs many times what
 * SQLite takes to answer it. What changes from time to time is a `sql.placeholder`.
 */
export const prepared = <Statement>(build: () => { prepare(): Statement }): (() => Statement) => {
  let statement: Statement | undefined;
  return () => (statement ??= build().prepare());
};

/** The values of a prepared insert: for each of these columns a placeholder of its name. */
export const placeholders = <Name extends string>(names: readonly Name[]): Record<Name, Placeholder> =>
  Object.fromEntries(names.map((name: string) => [name, sql.placeholder(name)])) as Record<Name, Placeholder>;

/**
 * Something that is read from the database once, and again after `forget`. Its owner forgets it with every write, and
 * when a transaction is rolled back.
 */
export class Remembered<Value> {
  readonly #read: () => Value;
  #known: { value: Value } | undefined;

  constructor(read: () => Value) {
    this.#read = read;
  }

  get(): Value {
    this.#known ??= { value: this.#read() };
    return this.#known.value;
  }

  forget(): void {
    this.#known = undefined;
  }
}

/** The rows whose `column` has the value of the placeholder `key`. */
export const rowsBy = <Table extends SQLiteTable>(db: Database, table: Table, column: SQLiteColumn) =>
  db
    .select()
    .from(table)
    .where(eq(column, sql.placeholder("key")));

/** How many rows there are, or how many of them meet the condition. */
export const countOf = (db: Database, table: SQLiteTable | SQLiteView, isMeant?: SQL): number =>
  db.select({ rows: count() }).from(table).where(isMeant).get()?.rows ?? 0;

/** `column IN values` as one bound parameter: SQLite in a Durable Object takes a hundred of them at most. */
export const among = (column: SQLiteColumn, values: readonly (string | number)[]): SQL =>
  sql`${column} in (select value from json_each(${JSON.stringify(values)}))`;
