import { count, eq, type Placeholder, type SQL, sql } from "drizzle-orm";
import { type DrizzleSqliteDODatabase, drizzle } from "drizzle-orm/durable-sqlite";
import { migrate } from "drizzle-orm/durable-sqlite/migrator";
import type { SQLiteColumn, SQLiteTable, SQLiteView } from "drizzle-orm/sqlite-core";

export type Database = DrizzleSqliteDODatabase & {
  $client: DurableObjectStorage;
  /** Changes when what was read may not be what is stored, or may hold words that were taken out: `Remembered` follows it. */
  epoch: number;
  /** Transactions that were rolled back. What holds no words of anybody follows this alone. */
  rollbacks: number;
};

/** The journal and the statements that drizzle-kit generates, and in `newest` the tables that all of them end in. */
export type Migrations = Parameters<typeof migrate>[1] & { newest: string };

/**
 * An actor's database. Nothing is written until `createSchema` has run. A Durable Object that was never created answers
 * `not_found` and stores no byte: `create` makes its tables, not its constructor.
 */
export const openDatabase = (storage: DurableObjectStorage): Database => {
  const db = Object.assign(drizzle(storage), { epoch: 0, rollbacks: 0 });
  const transact: Database["transaction"] = db.transaction.bind(db);
  /** Either all of it is stored, or nothing, and what was read on the way is forgotten. */
  db.transaction = (work) => {
    try {
      return transact(work);
    } catch (error) {
      db.epoch += 1;
      db.rollbacks += 1;
      throw error;
    }
  };
  return db;
};

/** Whether this object was ever created. Costs no write. */
export const hasSchema = ({ sql }: DurableObjectStorage): boolean =>
  sql.exec("SELECT 1 FROM sqlite_master WHERE name = '__drizzle_migrations' LIMIT 1").toArray().length > 0;

/** Whether an object that was created has the newest migration: then it need not wait for its tables. */
export const isMigrated = ({ sql }: DurableObjectStorage, { journal }: Migrations): boolean => {
  const { at } = sql.exec("SELECT max(created_at) AS at FROM __drizzle_migrations").one();
  return Number(at) >= (journal.entries.at(-1)?.when ?? 0);
};

/** A new object gets its tables as they are now: its whole history would take it five times as long. */
export const createSchema = async (db: Database, { newest, ...history }: Migrations): Promise<void> => {
  const { $client: storage } = db;
  if (hasSchema(storage)) await migrate(db, history);
  else storage.transactionSync(() => void storage.sql.exec(newest));
};

/** A database of nobody, to build queries with. */
const nobodys: Database = Object.assign(drizzle(Object.create(null)), { epoch: 0, rollbacks: 0 });

/**
 * A query that is asked often: built when it is first asked, and kept for all objects of the process. Building one costs
 * as much as SQLite takes to answer it, and an object that wakes asks a dozen. What changes from time to time is a
 * `sql.placeholder`.
 */
export const prepared = <Statement extends object>(build: (db: Database) => { prepare(): Statement }) => {
  let built: Statement | undefined;
  const own = new WeakMap<Database, Statement>();
  return (db: Database): Statement => {
    const known = own.get(db);
    if (known) return known;
    built ??= build(nobodys).prepare();
    // Drizzle's statement asks its own `client`.
    const statement: Statement = Object.create(built, { client: { value: db.$client } });
    own.set(db, statement);
    return statement;
  };
};

/** The values of a prepared insert: for each of these columns a placeholder of its name. */
export const placeholders = <Name extends string>(names: readonly Name[]): Record<Name, Placeholder> =>
  Object.fromEntries(names.map((name: string) => [name, sql.placeholder(name)])) as Record<Name, Placeholder>;

/**
 * Something that is read from the database once. It is read again after `forget`, and after a transaction was rolled
 * back. Its owner is the only writer of what it holds, and forgets it, or changes it alike, with every write.
 */
export class Remembered<Value> {
  readonly #db: Database;
  readonly #read: () => Value;
  readonly #follows: "epoch" | "rollbacks";
  #known: { value: Value; epoch: number } | undefined;

  constructor(db: Database, read: () => Value, follows: "epoch" | "rollbacks" = "epoch") {
    this.#db = db;
    this.#read = read;
    this.#follows = follows;
  }

  get(): Value {
    const epoch = this.#db[this.#follows];
    if (this.#known?.epoch !== epoch) this.#known = { value: this.#read(), epoch };
    return this.#known.value;
  }

  /** `value` was written just now. */
  set(value: Value): void {
    this.#known = { value, epoch: this.#db[this.#follows] };
  }

  forget(): void {
    this.#known = undefined;
  }

  /** The database, to write to what is remembered. */
  writing(): Database {
    this.forget();
    return this.#db;
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

/**
 * `column IN values` as one bound parameter: SQLite in a Durable Object takes a hundred of them at most. The text of a JSON
 * array stands for them in a prepared query.
 */
export const among = (column: SQLiteColumn, values: readonly (string | number)[] | Placeholder): SQL =>
  sql`${column} in (select value from json_each(${Array.isArray(values) ? JSON.stringify(values) : values}))`;
