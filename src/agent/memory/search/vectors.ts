import { asc, desc, eq, gt, lte, sql } from "drizzle-orm";
import { SearchRole, SearchType } from "../../../protocol/search.ts";
import { type Database, prepared } from "../../../shared/database.ts";
import { maxVectorRowBytes } from "../../bounds.ts";
import { searchVectors } from "./schema.ts";
import type { EntryRow } from "./sources.ts";

/**
 * The vectors of passages, with the facts that narrow a query; many in one row.
 *
 * Invariants
 * 1. A query reads row after row and holds one of them at a time, however many vectors there are.
 * 2. Rows and their vectors are in the order of the passages' ids, so that a passage's row is found by its id.
 * 3. A vector that is taken out is gone from its row in the same transaction.
 */
type Vector = Int8Vector & {
  id: number;
  at: number;
  /** Kind and role of the passage as one number. */
  traits: number;
};

/** What a query is narrowed to. Times in milliseconds since the epoch, both ends included. */
export type Filter = { types: readonly SearchType[]; role: SearchRole | null; from: number; to: number };

/**
 * Vectors as bytes: a quarter of their size, and likeness hardly changes. `norm` is that of the bytes, so that the
 * cosine of two needs neither of what they were made of.
 */
export type Int8Vector = { bytes: Int8Array; norm: number };

const largest = 127;

export const quantised = (vector: ArrayLike<number>): Int8Vector => {
  let extent = 0;
  for (let index = 0; index < vector.length; index += 1) extent = Math.max(extent, Math.abs(vector[index] ?? 0));
  const bytes = Int8Array.from(vector, (value) => (extent === 0 ? 0 : Math.round((value / extent) * largest)));
  return { bytes, norm: Math.sqrt(dotAt(bytes, bytes, 0)) };
};

/** The dot product of `vector` with the one that begins at `at` in `all`. */
export const dotAt = (vector: Int8Array, all: Int8Array, at: number): number => {
  let sum = 0;
  for (let index = 0; index < vector.length; index += 1) {
    sum += (vector[index] ?? 0) * (all[at + index] ?? 0);
  }
  return sum;
};

const roles: (SearchRole | null)[] = [null, ...SearchRole.options];
const types = SearchType.options;

/** A message of the agent's own life is a kind of its own, after the types. */
const kinds: SearchType[][] = [...types.map((type) => [type]), ["message", "consciousness"]];

const traitsOf = ({ type, lived, role }: EntryRow): number =>
  (lived === null ? types.indexOf(type) : types.length) * roles.length + roles.indexOf(role);

/** The vector of a passage, as it is stored. */
export const vectorOf = (row: EntryRow, vector: ArrayLike<number>): Vector => ({
  ...{ id: row.id, at: row.at, traits: traitsOf(row) },
  ...quantised(vector),
});

/** The bytes of a vector's numbers, beside its own. */
const headBytes = 8 + 4 + 4 + 1;

/** The columns of a row with `count` vectors, in this order. */
const columns = (buffer: ArrayBuffer, count: number) => ({
  at: new Float64Array(buffer, 0, count),
  id: new Uint32Array(buffer, 8 * count, count),
  norm: new Float32Array(buffer, 12 * count, count),
  traits: new Uint8Array(buffer, 16 * count, count),
  bytes: new Int8Array(buffer, headBytes * count),
  dimensions: (buffer.byteLength - headBytes * count) / count,
});

type VectorRow = typeof searchVectors.$inferSelect;

/** Copies first: the driver's bytes may begin anywhere in a larger buffer. */
const unpack = ({ packed, passages }: VectorRow) => columns(new Uint8Array(packed).slice().buffer, passages);

const pack = (vectors: Vector[], dimensions: number): Buffer => {
  const buffer = new ArrayBuffer(vectors.length * (headBytes + dimensions));
  const packed = columns(buffer, vectors.length);
  for (const [index, vector] of vectors.entries()) {
    for (const name of ["at", "id", "norm", "traits"] as const) packed[name][index] = vector[name];
    packed.bytes.set(vector.bytes, index * dimensions);
  }
  return Buffer.from(buffer);
};

const vectorsIn = (row: VectorRow): Vector[] => {
  const { at, id, norm, traits, bytes, dimensions } = unpack(row);
  return Array.from(id, (each, index) => ({
    id: each,
    at: at[index] ?? 0,
    norm: norm[index] ?? 0,
    traits: traits[index] ?? 0,
    bytes: bytes.subarray(index * dimensions, (index + 1) * dimensions),
  }));
};

export type Alike = { id: number; likeness: number };

const isAfter = gt(searchVectors.id, sql.placeholder("after"));
const next = prepared((db) => db.select().from(searchVectors).where(isAfter).orderBy(asc(searchVectors.id)).limit(1));

export const createVectors = (db: Database) => {
  const rows = () => db.select().from(searchVectors);

  const lastUpTo = (id: number): VectorRow | undefined =>
    rows().where(lte(searchVectors.id, id)).orderBy(desc(searchVectors.id)).limit(1).get();

  const write = (id: number, vectors: Vector[]): void => {
    const values = { passages: vectors.length, packed: pack(vectors, vectors[0]?.bytes.length ?? 0) };
    const insert = db.insert(searchVectors).values({ id, ...values });
    insert.onConflictDoUpdate({ target: searchVectors.id, set: values }).run();
  };

  /** Changes the vectors of these passages, if they have any; undefined takes one out. In a transaction. */
  const rewrite = (ids: number[], changed: (vector: Vector) => Vector | undefined): void => {
    const asked = new Set(ids);
    let done = 0;
    for (const id of ids.toSorted((one, other) => one - other)) {
      const row = id <= done ? undefined : lastUpTo(id);
      if (!row) continue;
      const all = vectorsIn(row);
      done = all.at(-1)?.id ?? 0;
      if (!all.some((vector) => asked.has(vector.id))) continue;
      const kept = all.flatMap((vector) => (asked.has(vector.id) ? (changed(vector) ?? []) : vector));
      if (kept.length === 0) db.delete(searchVectors).where(eq(searchVectors.id, row.id)).run();
      else write(row.id, kept);
    }
  };

  return {
    /** Adds vectors of passages that are newer than all that have one, in order. In a transaction. */
    append(vectors: Vector[]): void {
      const capacity = Math.max(1, Math.floor(maxVectorRowBytes / (headBytes + (vectors[0]?.bytes.length ?? 0))));
      const last = lastUpTo(Number.MAX_SAFE_INTEGER);
      const room = last ? Math.max(0, capacity - last.passages) : 0;
      if (last && room > 0) write(last.id, [...vectorsIn(last), ...vectors.slice(0, room)]);
      for (let from = room; from < vectors.length; from += capacity) {
        const some = vectors.slice(from, from + capacity);
        write(some[0]?.id ?? 0, some);
      }
    },

    /** Takes out the vectors of these passages, if they have any. In a transaction. */
    remove: (ids: number[]): void => rewrite(ids, () => undefined),

    /** These passages are of another kind now. In a transaction. */
    relabel(rows: EntryRow[]): void {
      const byId = new Map(rows.map((row) => [row.id, traitsOf(row)]));
      rewrite([...byId.keys()], (vector) => ({ ...vector, traits: byId.get(vector.id) ?? vector.traits }));
    },

    clear(): void {
      db.delete(searchVectors).run();
    },

    /** The passages most like `query`, best first: their cosines, none below `least`. */
    nearest(query: Int8Vector, filter: Filter, least: number, most: number): Alike[] {
      const wanted = kinds.flatMap((kind) => {
        const isKind = kind.some((type) => filter.types.includes(type));
        return roles.map((role) => isKind && (filter.role === null || filter.role === role));
      });
      let best: Alike[] = [];
      if (query.norm === 0) return best;
      for (let row = next(db).get({ after: 0 }); row; row = next(db).get({ after: row.id })) {
        const { at, id, norm, traits, bytes, dimensions } = unpack(row);
        if (dimensions !== query.bytes.length) continue;
        const floor = best.length < most ? least : (best.at(-1)?.likeness ?? least);
        for (let index = 0; index < row.passages; index += 1) {
          const time = at[index] ?? 0;
          if (!wanted[traits[index] ?? 0] || time < filter.from || time > filter.to) continue;
          const likeness = dotAt(query.bytes, bytes, index * dimensions) / (query.norm * (norm[index] || 1));
          if (likeness > floor) best.push({ id: id[index] ?? 0, likeness });
        }
        best = best.sort((one, other) => other.likeness - one.likeness).slice(0, most);
      }
      return best;
    },
  };
};
