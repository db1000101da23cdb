import { and, asc, eq, getTableColumns, gt, isNotNull, lte, ne, or, type SQL, sql } from "drizzle-orm";
import type { SQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core";
import * as z from "zod";
import type { ExportBounds, ExportPlace } from "../../protocol/agent-rpc.ts";
import { exportedRows, type RowKind, type RowOf } from "../../protocol/exported-agent.ts";
import { isoTime } from "../../shared/clock.ts";
import type { Database } from "../../shared/database.ts";
import type { Ids } from "../../shared/ids.ts";
import { blockSnapshots, blocks, blockVersions, sharedBlocks, shares } from "../memory/blocks/schema.ts";
import { ownCycles } from "../run/summaries.ts";
import type { RunRow } from "../runs.ts";
import { archival, goals, journal, memories, plans, runs, summaries, windows } from "../schema.ts";
import { interruptedCall } from "../tools/outcome.ts";
import { knownNames } from "./schema.ts";

/** The kinds of rows of an exported agent: where each is stored, and how it is read and written. */

/** The place of the last row that was read; null before the first. */
export type After = ExportPlace["after"];
/** The agent that an import makes: ids of the old agent's own become ids of this one. */
type Self = { ids: Ids; agentId: string };

export type KindStore<Kind extends RowKind> = {
  /** The next few rows after a place, in order; none at the end. */
  read(db: Database, after: After, bounds: ExportBounds): { row: RowOf<Kind>; place: string | number }[];
  /** Stores a row, in a transaction. False where it is there already. */
  insert(db: Database, row: RowOf<Kind>, self: Self): boolean;
};

type Values = Record<string, unknown>;

/**
 * A stored row as a row of the document, and back. A column is the field of its name; other columns are not exported. A
 * number whose field is a time is written as a time, and bytes as base64. Null stands for an optional field left out.
 */
const rowCodec = (table: SQLiteTable, { shape }: z.ZodObject) => {
  const columns: Record<string, SQLiteColumn> = getTableColumns(table);
  const fields = Object.entries<z.ZodType>(shape).flatMap(([name, schema]) => {
    const type = columns[name]?.dataType;
    const isOptional = schema instanceof z.ZodOptional;
    const isTime = type === "number" && (isOptional ? schema.unwrap() : schema) instanceof z.ZodISODateTime;
    return type ? [{ name, isOptional, isTime, isBytes: type === "buffer" }] : [];
  });
  const each = (row: Values, codec: (value: unknown, field: (typeof fields)[number]) => unknown): Values =>
    Object.fromEntries(fields.map((field) => [field.name, codec(row[field.name], field)]));
  return {
    encode: (stored: Values): Values =>
      each(stored, (value, { isOptional, isTime }) => {
        if (value === null && isOptional) return undefined;
        if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
        return isTime && typeof value === "number" ? isoTime(value) : value;
      }),
    decode: (row: Values): Values =>
      each(row, (value, { isTime, isBytes }) => {
        if (typeof value !== "string") return value;
        if (isBytes) return Buffer.from(value, "base64");
        return isTime ? Date.parse(value) : value;
      }),
  };
};

/** Inserts a row, unless there is one with its key. Answers whether it did. */
const insertNew = (db: Database, table: SQLiteTable, values: Values): boolean =>
  db.insert(table).values(values).onConflictDoNothing().returning({ isNew: sql`1` }).all().length > 0;

type Stored<Table extends SQLiteTable> = Table["$inferSelect"];
type TableKind<Kind extends RowKind, Table extends SQLiteTable> = {
  table: Table;
  /** The column that tells the rows apart and orders them. */
  key: keyof Stored<Table> & string;
  /** How many rows are read at a time; fewer where they may be large. */
  atATime?: number;
  only?(bounds: ExportBounds): SQL | undefined;
  /** Fields that are no columns of their own. */
  fields?(stored: Stored<Table>, bounds: ExportBounds, db: Database): Partial<RowOf<Kind>>;
  /** Columns that are no fields of their own. */
  columns?(row: RowOf<Kind>, self: Self): Partial<Stored<Table>>;
};

/** A kind whose rows are those of a table. */
const inTable = <Kind extends RowKind, Table extends SQLiteTable>(
  kind: Kind,
  { table, key, atATime = 100, only, fields, columns }: TableKind<Kind, Table>,
): KindStore<Kind> => {
  const schema = exportedRows[kind];
  const codec = rowCodec(table, "shape" in schema ? schema : schema.options[0]);
  const column: SQLiteColumn | undefined = getTableColumns(table)[key];
  if (!column) throw new Error(`${kind} has no column ${key}`);
  return {
    read: (db, after, bounds) => {
      const isNext = and(after === null ? undefined : gt(column, after), only?.(bounds));
      const rows = db.select().from<SQLiteTable>(table).where(isNext).orderBy(asc(column)).limit(atATime).all();
      return (rows as Stored<Table>[]).map((stored) => ({
        // The runtime writes only rows that fit their schema.
        row: { ...codec.encode(stored), ...fields?.(stored, bounds, db) } as RowOf<Kind>,
        place: stored[key],
      }));
    },
    insert: (db, row, self) => insertNew(db, table, { ...codec.decode(row), ...columns?.(row, self) }),
  };
};

/** The end of a run. A run that had not ended when the export began is exported as canceled, with what it had done. */
const endOf = (
  { ordinal, journalFrom, journalTo, completedAt }: RunRow,
  { at, journal: upTo, cut }: ExportBounds,
): Partial<RowOf<"run">> => {
  const hadEnded = journalTo !== null && journalTo <= Math.max(upTo, journalFrom) && completedAt !== null;
  if (hadEnded && completedAt <= at) return {};
  const kept = ordinal === cut?.run;
  return {
    status: "canceled",
    kept,
    journalTo: Math.max(journalFrom, upTo) + (kept ? cut.open.length : 0),
    completedAt: isoTime(at),
    reason: "it was under way when the agent was exported",
  };
};

const run = inTable("run", {
  table: runs,
  key: "ordinal",
  only: ({ run: last }) => lte(runs.ordinal, last),
  fields: (stored, bounds, db) => {
    const { endedBy, rests } = stored;
    const by = endedBy && db.select({ ordinal: runs.ordinal }).from(runs).where(eq(runs.id, endedBy)).get();
    return {
      endedBy: by ? by.ordinal : undefined,
      events: stored.events.length,
      rests: rests?.map(({ from, to }) => ({ from, to: to ?? Math.max(from, bounds.journal) })),
      ...endOf(stored, bounds),
    };
  },
  columns: ({ ordinal, endedBy, events }, { ids, agentId }) => {
    const idOf = (number: number): string => ids.deriveOwned("run", agentId, number);
    return {
      id: idOf(ordinal),
      endedBy: endedBy === undefined ? null : idOf(endedBy),
      // The events stay behind, but their number counts.
      events: Array.from({ length: events }, (_, index) => -1 - index),
      told: {},
      // `linkRuns` sets them once all runs are there.
      keptBefore: 0,
      silentBefore: 0,
    };
  },
});

const unexecuted = { code: "run_canceled", message: "the agent was exported before this call was executed" };
/** The imported agent never hears of the outcome. */
const interrupted = { code: "outcome_unknown", message: interruptedCall };

/** Results for the calls that were open: a provider refuses a call without one. */
const closingRows = ({ at, journal: upTo, cut }: ExportBounds): RowOf<"journal">[] =>
  (cut?.open ?? []).map(({ step, callId, toolName, undone }, index) => {
    const value = { success: false, error: undone ? unexecuted : interrupted };
    return {
      seq: upTo + 1 + index,
      run: cut?.run ?? 0,
      step,
      kind: "result",
      content: {
        role: "tool",
        content: [{ type: "tool-result", toolCallId: callId, toolName, output: { type: "json", value } }],
      },
      meta: { kind: "result", callId, toolName, error: true },
      createdAt: isoTime(at),
    };
  });

const written = inTable("journal", {
  table: journal,
  key: "seq",
  atATime: 20,
  only: ({ journal: last }) => lte(journal.seq, last),
  fields: ({ runOrdinal }) => ({ run: runOrdinal }),
  columns: ({ run: runOrdinal }) => ({ runOrdinal }),
});

const versions = rowCodec(blockVersions, exportedRows.block.shape.versions.element);

/** Rows and bytes are exported as they are stored: no document is opened. */
const block = inTable("block", {
  table: blocks,
  key: "id",
  // A block is read in one turn: an edit during the export is in it whole or not at all.
  atATime: 1,
  fields: ({ id }, _, db) => ({
    snapshot: db
      .select({ bytes: blockSnapshots.bytes })
      .from(blockSnapshots)
      .where(eq(blockSnapshots.blockId, id))
      .orderBy(asc(blockSnapshots.part))
      .all()
      .map(({ bytes }) => bytes.toString("base64")),
    versions: db
      .select()
      .from(blockVersions)
      .where(eq(blockVersions.blockId, id))
      .orderBy(asc(blockVersions.version))
      .all()
      .map((version) => versions.encode(version) as RowOf<"block">["versions"][number]),
  }),
  // `checkBlocks` renders it from the document, once all is there.
  columns: () => ({ rendered: "" }),
});

const sharesAtATime = 200;

/** The kinds of rows, each with its store. */
export const kindStores: { [Kind in RowKind]: KindStore<Kind> } = {
  /** `export.ts` writes the names in its first page: they come from many tables. */
  name: inTable("name", { table: knownNames, key: "id" }),
  memory: inTable("memory", { table: memories, key: "key" }),
  goal: inTable("goal", { table: goals, key: "id" }),
  /**
   * A plan's root is not exported: a person's root would let a document wake more than its importer asked for. A plan
   * that the agent set itself begins a root of the agent's own, as its crons do.
   */
  plan: inTable("plan", { table: plans, key: "id", columns: ({ dueAt }) => ({ tryAt: Date.parse(dueAt) }) }),
  window: inTable("window", {
    table: windows,
    key: "id",
    atATime: 10,
    only: ({ window }) => lte(windows.id, window),
    // The next run begins a window of its own, and nobody reads the tools of a past one.
    columns: () => ({ toolset: { messaging: "simple" as const, tools: [], toolRules: [], mcpListId: null } }),
  }),
  run,
  journal: {
    ...written,
    read: (db, after, bounds) => {
      const rows = written.read(db, after, bounds);
      if (rows.length > 0) return rows;
      const closing = closingRows(bounds).filter(({ seq }) => seq > Number(after ?? 0));
      return closing.map((row) => ({ row, place: row.seq }));
    },
  },
  /** Summaries that have a text. The next run asks again for what is still to be folded. */
  summary: inTable("summary", {
    table: summaries,
    key: "subject",
    atATime: 20,
    // A summary that was folded since may tell of runs that are not in the export.
    only: ({ run: last }) =>
      and(isNotNull(summaries.text), or(ne(summaries.subject, ownCycles), lte(summaries.upTo, last))),
    columns: () => ({ wanted: 0, failures: 0 }),
  }),
  block: {
    ...block,
    insert: (db, row, self) => {
      if (!block.insert(db, row, self)) return false;
      const { id: blockId } = db
        .select({ id: sql<number>`max(${blocks.id})` })
        .from(blocks)
        .get() ?? { id: 0 };
      for (const [part, bytes] of row.snapshot.entries()) {
        insertNew(db, blockSnapshots, { blockId, part, bytes: Buffer.from(bytes, "base64") });
      }
      return row.versions.every((version) => insertNew(db, blockVersions, { ...versions.decode(version), blockId }));
    },
  },
  /** An import only counts shares: people of the new workspace decide who may read what. */
  share: {
    read: (db, after) =>
      db
        .all<RowOf<"share"> & { at: number }>(sql`
          select 'given' as direction, label, grantee_id as "with", ${shares.permission}, ${shares.createdAt} as at
            from ${shares} join ${blocks} on ${blocks.id} = block_id
          union all select 'taken', label, owner_id, permission, created_at from ${sharedBlocks}
          order by 1, 2, 3 limit ${sharesAtATime} offset ${Number(after ?? 0)}`)
        .map(({ at, ...share }, index) => ({
          row: { ...share, createdAt: isoTime(at) },
          place: Number(after ?? 0) + index + 1,
        })),
    insert: () => true,
  },
  archival: inTable("archival", {
    table: archival,
    key: "ordinal",
    only: (bounds) => lte(archival.ordinal, bounds.archival),
    columns: ({ id }, { ids, agentId }) => ({ id: ids.deriveOwned("arch", agentId, "import", id) }),
  }),
};
