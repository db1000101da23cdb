import { asc, desc, eq, gt, lte, sql } from "drizzle-orm";
import {
  type SearchRole,
  SearchRole as SearchRoles,
  type SearchType,
  SearchType as SearchTypes,
} from "../../../protocol/search.ts";
import { type Database, prepared } from "../../../shared/database.ts";
import { maxVectorRowBytes } from "../../bounds.ts";
import { searchVectors } from "./schema.ts";

/**
 * The vectors of passages, and what of them a query is narrowed by; many in one row.
 *
 * Invariants
 * 1. A query reads row after row and holds one of them at a time, however many vectors there are.
 * 2. Rows and what is in them are in the order of the passages' ids, so that a passage's row is found by its id.
 * 3. What is taken out is gone from its row in the same transaction.
 */
export type Vector = Int8Vector & {
  id: number;
  type: SearchType;
  role: SearchRole | null;
  at: number;
  /** The number of its space; 0 where it is no message. */
  space: number;
};

/** The filter of a query. `spaces` holds the numbers of the spaces whose messages may be read. */
export type VectorFilter = {
  types: readonly SearchType[];
  role: SearchRole | null;
  from: number;
  to: number;
  spaces: ReadonlySet<number>;
};

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

type VectorRow = typeof searchVectors.$inferSelect;

/** A row's columns, in this order: times, ids, spaces, norms, traits, and the bytes of all vectors. */
type Packed = {
  at: Float64Array;
  id: Uint32Array;
  space: Uint32Array;
  norm: Float32Array;
  traits: Uint8Array;
  bytes: Int8Array;
};

const bytesOfTraits = 8 + 4 + 4 + 4 + 1;
const roles: (SearchRole | null)[] = [null, ...SearchRoles.options];
const types = SearchTypes.options;

const traitsOf = (type: SearchType, role: SearchRole | null): number =>
  types.indexOf(type) * roles.length + roles.indexOf(role);

const columns = (buffer: ArrayBuffer, count: number): Packed => ({
  at: new Float64Array(buffer, 0, count),
  id: new Uint32Array(buffer, 8 * count, count),
  space: new Uint32Array(buffer, 12 * count, count),
  norm: new Float32Array(buffer, 16 * count, count),
  traits: new Uint8Array(buffer, 20 * count, count),
  bytes: new Int8Array(buffer, bytesOfTraits * count),
});

/** Copies first: the driver's bytes may begin anywhere in a larger buffer. */
const unpack = ({ packed, passages }: VectorRow): Packed => columns(new Uint8Array(packed).slice().buffer, passages);

const pack = (vectors: Vector[], dimensions: number): Buffer => {
  const buffer = new ArrayBuffer(vectors.length * (bytesOfTraits + dimensions));
  const packed = columns(buffer, vectors.length);
  for (const [index, vector] of vectors.entries()) {
    packed.at[index] = vector.at;
    packed.id[index] = vector.id;
    packed.space[index] = vector.space;
    packed.norm[index] = vector.norm;
    packed.traits[index] = traitsOf(vector.type, vector.role);
    packed.bytes.set(vector.bytes, index * dimensions);
  }
  return Buffer.from(buffer);
};

const vectorsIn = (row: VectorRow): Vector[] => {
  const { at, id, space, norm, traits, bytes } = unpack(row);
  const dimensions = row.passages === 0 ? 0 : bytes.length / row.passages;
  return Array.from(id, (each, index) => ({
    id: each,
    at: at[index] ?? 0,
    space: space[index] ?? 0,
    norm: norm[index] ?? 0,
    type: types[Math.floor((traits[index] ?? 0) / roles.length)] ?? "message",
    role: roles[(traits[index] ?? 0) % roles.length] ?? null,
    bytes: bytes.slice(index * dimensions, (index + 1) * dimensions),
  }));
};

export type Alike = { id: number; likeness: number };

export class Vectors {
  readonly #db: Database;
  readonly #next = prepared(() =>
    this.#db
      .select()
      .from(searchVectors)
      .where(gt(searchVectors.id, sql.placeholder("after")))
      .orderBy(asc(searchVectors.id))
      .limit(1),
  );

  constructor(db: Database) {
    this.#db = db;
  }

  /** Adds vectors of passages that are newer than all that have one, in order. In a transaction. */
  append(vectors: Vector[]): void {
    const dimensions = vectors[0]?.bytes.length ?? 0;
    const capacity = Math.max(1, Math.floor(maxVectorRowBytes / (bytesOfTraits + dimensions)));
    const last = this.#db.select().from(searchVectors).orderBy(desc(searchVectors.id)).limit(1).get();
    const room = last ? Math.max(0, capacity - last.passages) : 0;
    if (last && room > 0) {
      this.#write(last.id, [...vectorsIn(last), ...vectors.slice(0, room)], dimensions);
    }
    for (let from = room; from < vectors.length; from += capacity) {
      const some = vectors.slice(from, from + capacity);
      if (some[0]) this.#write(some[0].id, some, dimensions);
    }
  }

  /** Takes out the vectors of these passages, if they have any. In a transaction. */
  remove(ids: number[]): void {
    const gone = new Set(ids);
    let done = 0;
    for (const id of ids.toSorted((one, other) => one - other)) {
      if (id <= done) continue;
      const isUpTo = lte(searchVectors.id, id);
      const row = this.#db.select().from(searchVectors).where(isUpTo).orderBy(desc(searchVectors.id)).limit(1).get();
      if (!row) continue;
      const all = vectorsIn(row);
      const kept = all.filter((vector) => !gone.has(vector.id));
      done = all.at(-1)?.id ?? 0;
      if (kept.length === all.length) continue;
      if (kept.length === 0) this.#db.delete(searchVectors).where(eq(searchVectors.id, row.id)).run();
      else this.#write(row.id, kept, kept[0]?.bytes.length ?? 0);
    }
  }

  clear(): void {
    this.#db.delete(searchVectors).run();
  }

  /** The passages most like `query`, best first: their cosines, none below `least`. */
  nearest(query: Int8Vector, filter: VectorFilter, least: number, most: number): Alike[] {
    const wanted = types.flatMap((type) =>
      roles.map((role) => filter.types.includes(type) && (filter.role === null || filter.role === role)),
    );
    let best: Alike[] = [];
    if (query.norm === 0) return best;
    for (let row = this.#next().get({ after: 0 }); row; row = this.#next().get({ after: row.id })) {
      const floor = best.length < most ? least : (best.at(-1)?.likeness ?? least);
      const found = [...best, ...alikeIn(row, query, filter, wanted, floor)];
      best = found.sort((one, other) => other.likeness - one.likeness).slice(0, most);
    }
    return best;
  }

  #write(id: number, vectors: Vector[], dimensions: number): void {
    const values = { passages: vectors.length, packed: pack(vectors, dimensions) };
    this.#db
      .insert(searchVectors)
      .values({ id, ...values })
      .onConflictDoUpdate({ target: searchVectors.id, set: values })
      .run();
  }
}

/** The passages of a row that the filter lets through and that are more alike than `least`. */
const alikeIn = (
  row: VectorRow,
  query: Int8Vector,
  filter: VectorFilter,
  wanted: boolean[],
  least: number,
): Alike[] => {
  const { at, id, space, norm, traits, bytes } = unpack(row);
  const dimensions = query.bytes.length;
  const alike: Alike[] = [];
  if (bytes.length !== dimensions * row.passages) return alike;
  for (let index = 0; index < row.passages; index += 1) {
    const time = at[index] ?? 0;
    if (!wanted[traits[index] ?? 0] || time < filter.from || time > filter.to) continue;
    const where = space[index] ?? 0;
    if (where !== 0 && !filter.spaces.has(where)) continue;
    const likeness = dotAt(query.bytes, bytes, index * dimensions) / (query.norm * (norm[index] || 1));
    if (likeness > least) alike.push({ id: id[index] ?? 0, likeness });
  }
  return alike;
};
