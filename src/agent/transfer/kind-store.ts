import { and, asc, gt, type SQL, sql } from "drizzle-orm";
import type { SQLiteColumn, SQLiteInsertValue, SQLiteTable } from "drizzle-orm/sqlite-core";
import type { RowKind, RowOf } from "../../protocol/exported-agent.ts";
import type { ExportBounds, ExportPlace } from "../../protocol/transfer-rpc.ts";
import type { Database } from "../../shared/database.ts";
import { ColloquyError } from "../../shared/errors.ts";
import type { Ids } from "../../shared/ids.ts";

/** The place of the last row that was read; null before the first. */
export type After = ExportPlace["after"];
export type Read<Kind extends RowKind> = { row: RowOf<Kind>; place: string | number };

/** The agent that an import makes: ids of the old agent's own become ids of this one. */
export type Self = { ids: Ids; agentId: string };

/** The rows of one kind, over the tables that hold them. */
export type KindStore<Kind extends RowKind> = {
  /** The next few rows after a place, in order; none at the end. */
  read(db: Database, after: After, bounds: ExportBounds): Read<Kind>[];
  /** Stores a row, in a transaction. False where it is there already. */
  insert(db: Database, row: RowOf<Kind>, self: Self): boolean;
};

/** The next rows of a table, in the order of a column. */
export const rowsAfter = <Table extends SQLiteTable>(
  db: Database,
  table: Table,
  { column, after, limit, only }: { column: SQLiteColumn; after: After; limit: number; only?: SQL | undefined },
) =>
  db
    .select()
    .from<SQLiteTable>(table)
    .where(and(after === null ? undefined : gt(column, after), only))
    .orderBy(asc(column))
    .limit(limit)
    .all() as Table["$inferSelect"][];

/** Inserts a row, unless there is one with its key. Answers whether it did. */
export const insertNew = <Table extends SQLiteTable>(
  db: Database,
  table: Table,
  values: SQLiteInsertValue<Table>,
): boolean => db.insert(table).values(values).onConflictDoNothing().returning({ isNew: sql`1` }).all().length > 0;

/** The refusal of an import: where in the document, and why. */
export const unfit = (path: string, message: string): ColloquyError =>
  new ColloquyError("invalid_request", `In the body: ${path} ${message}.`, { issues: [{ path, message }] });
