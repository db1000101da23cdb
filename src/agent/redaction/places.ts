import { sql } from "drizzle-orm";
import type { Database } from "../../shared/database.ts";
import { replyWaitMs } from "../bounds.ts";
import type { ToldState } from "../records.ts";
import type { Scrub } from "./forms.ts";

/**
 * Where an agent keeps what others said: the columns of its tables that are looked through, in this order. Blocks and
 * archival entries are not among them: they are documents of their own, whose deletion is offered.
 */
export type Place = {
  table: string;
  /** The column that identifies a row. Numbers rise with each new row. A table with another key is small, and read in one go. */
  key: string;
  /** The key is a label of the agent's choice, which may hold words. */
  isLabel?: true;
  /** Columns of JSON, and of plain text. */
  json: string[];
  text: string[];
  /** The content belongs to the agent alone, whether it names the message or not. */
  isNamed?: true;
  /** The place holds names alone. Only the erasure of an entity looks through it. */
  ofErased?: true;
  /** When a row was written last. One that is older than the message holds the same words for a reason of its own. */
  writtenAt?: string;
  /** The columns that this holds for, where others of the row are written later. */
  once?: string[];
};

export const places: Place[] = [
  { table: "journal", key: "seq", json: ["content", "meta"], text: [], writtenAt: "created_at" },
  {
    ...{ table: "runs", key: "ordinal", json: ["trigger", "told", "error"], text: ["reason"] },
    ...{ writtenAt: "started_at", once: ["trigger"] },
  },
  { table: "inbox", key: "seq", json: ["data", "last_error"], text: [], writtenAt: "received_at" },
  { table: "overheard", key: "seq", json: ["data"], text: [], writtenAt: "received_at" },
  {
    ...{ table: "waits", key: "call_id", json: ["awaited"], text: ["text"], isNamed: true },
    writtenAt: `due_at - ${replyWaitMs}`,
  },
  {
    ...{ table: "calls", key: "call_id", json: ["input", "origin", "release", "outcome", "approval"], text: [] },
    ...{ writtenAt: "created_at", once: ["input", "origin", "release"] },
  },
  { table: "windows", key: "id", json: ["blocks"], text: ["summary"], writtenAt: "created_at" },
  { table: "summaries", key: "subject", json: ["last_error"], text: ["text"], writtenAt: "updated_at" },
  { table: "memories", key: "key", isLabel: true, json: [], text: ["value"], writtenAt: "updated_at" },
  { table: "goals", key: "id", isLabel: true, json: [], text: ["description"], writtenAt: "updated_at" },
  {
    ...{ table: "plans", key: "id", isLabel: true, json: ["last_error"], text: ["name", "instruction"] },
    writtenAt: "updated_at",
  },
  { table: "feed", key: "part", json: ["value"], text: [] },
  { table: "mcp_servers", key: "name", json: ["last_error"], text: [] },
  { table: "agent", key: "id", json: ["last_error"], text: [] },
  { table: "calls", key: "call_id", json: ["tool"], text: [], ofErased: true }, // whose block it edits
  { table: "spaces", key: "id", json: ["snapshot"], text: [], ofErased: true },
  { table: "known_names", key: "id", json: [], text: ["id", "name"], ofErased: true }, // each row names whose name it is
  { table: "shared_blocks", key: "rowid", json: [], text: ["owner_name"], isNamed: true, ofErased: true },
];

type Row = Record<string, string | number | null>;

/** A row that was looked at. `changed`: it held old words; `named`: it names the message. */
export type Seen = { key: string | number; row: Row; changed: boolean; named: boolean };

const numbered = new Set(["journal", "runs", "inbox", "overheard", "windows"]);

/** Rows of a place after one, as many as are looked at in one go: by their number and their length. */
const rowsAtOnce = 200;
const lengthAtOnce = 128 * 1024;

const parsed = (json: string): unknown => {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
};

/** Takes old words, said at `since`, out of the next rows of a place. In a transaction. `more`: others may follow. */
export const scrubRows = (
  db: Database,
  place: Place,
  { after, since }: { after: number; since: number },
  scrub: Scrub,
): { seen: Seen[]; more: boolean } => {
  const { table, key: keyColumn, json, text, isNamed = false, writtenAt, once, isLabel = false } = place;
  const also = table === "journal" ? ", run_ordinal" : table === "windows" ? ", instructions" : "";
  const columns = [...json, ...text].map((column) => `"${column}"`).join(", ");
  const isMeant = writtenAt === undefined || once ? sql`1` : sql`${sql.raw(writtenAt)} >= ${since}`;
  const next = numbered.has(table) ? sql`and ${sql.raw(keyColumn)} > ${after} order by 1 limit ${rowsAtOnce}` : sql``;
  const rows = db.all<Row & { at: string | number; written: number | null }>(
    sql`select ${sql.raw(`"${keyColumn}"`)} as at, ${sql.raw(writtenAt ?? "null")} as written, ${sql.raw(columns + also)} from ${sql.raw(table)}
      where ${isMeant} ${next}`,
  );
  const seen: Seen[] = [];
  let length = 0;
  for (const { at: key, written, ...row } of rows) {
    const writtenLast = (name: string): number =>
      written === null || (once && !once.includes(name)) ? Number.POSITIVE_INFINITY : written;
    const names = [...json, ...text].filter((name) => writtenLast(name) >= since);
    const held = names.map((name) => row[name]).filter((value) => typeof value === "string");
    length += held.reduce((sum, value) => sum + value.length, 0);
    const named = held.some((value) => scrub.names(value));
    const changes = new Map<string, string>();
    for (const name of names) {
      const value = row[name];
      if (typeof value !== "string" || name === keyColumn || !(named || isNamed || scrub.mayHold(value))) continue;
      const at = writtenLast(name);
      const left = json.includes(name)
        ? leftOf(value, `${table} ${name}`, scrub, named, at)
        : scrub.value(value, named || isNamed, at);
      if (left !== value) changes.set(name, left);
    }
    if (table === "windows" && changes.has("blocks")) {
      const left = (block: object): object => scrub.value(block, named, writtenLast("blocks"));
      changes.set("instructions", instructionsWithout(String(row.instructions), String(row.blocks), left));
    }
    const { [keyColumn]: label = key } = isLabel ? scrub.value({ [keyColumn]: key }, named, written ?? undefined) : {};
    if (label !== key) changes.set(keyColumn, asLabel(String(label)));
    for (const [name, value] of changes) {
      db.run(
        sql`update ${sql.raw(table)} set ${sql.raw(`"${name}"`)} = ${value} where ${sql.raw(`"${keyColumn}"`)} = ${key}`,
      );
    }
    seen.push({ key, row, changed: changes.size > 0, named });
    if (length > lengthAtOnce && numbered.has(table)) return { seen, more: true };
  }
  return { seen, more: numbered.has(table) && rows.length === rowsAtOnce };
};

/** Makes what is left of a label unique: another row may have lost the same words. */
export const asLabel = (left: string): string => `${left}_${crypto.randomUUID().slice(0, 8)}`.replace(/[^\w-]/g, "");

/** A part of `feed` without old words. Items of its lists say when each was written. A space was called so before, unless it is named. */
export const partWithout = <Value>(part: Value, scrub: Scrub, named: boolean): Value => {
  const left = (item: unknown): unknown => {
    const at = typeof item === "object" && item !== null && "updatedAt" in item ? String(item.updatedAt) : "";
    return scrub.value(item, named, Date.parse(at) || undefined);
  };
  if (Array.isArray(part)) return part.map(left) as Value;
  return scrub.value(part, named, named ? undefined : 0);
};

/** Takes old words out of what a run was told of its state. An item goes if its key held some: it is told anew. */
export const toldWithout = (told: ToldState, scrub: Scrub, named: boolean): ToldState => {
  const left = ([key, said]: [string, string]) => {
    const { id, line } = scrub.value({ id: key, line: said }, named);
    return id === key ? [[id, line]] : [];
  };
  const withLabels = (lines: Record<string, string>) => Object.fromEntries(Object.entries(lines).flatMap(left));
  return Object.fromEntries(Object.entries(told).map(([section, lines]) => [section, withLabels(lines)]));
};

const leftOf = (json: string, place: string, scrub: Scrub, named: boolean, writtenAt: number): string => {
  const value = parsed(json);
  if (place === "runs told") return JSON.stringify(toldWithout(value as ToldState, scrub, named));
  const left = place === "feed value" ? partWithout(value, scrub, named) : scrub.value(value, named, writtenAt);
  return left === value ? json : JSON.stringify(left);
};

/** A window's instructions hold its core blocks as they were: the same words go from both, so that they stay in step. */
const instructionsWithout = (instructions: string, blocks: string, left: (block: object) => object): string =>
  Object.entries(parsed(blocks) as Record<string, string>).reduce((text, [key, block]) => {
    // A key may have lost words too.
    const [now = block] = Object.values(left({ [key]: block }));
    return text.replace(block, () => now);
  }, instructions);
