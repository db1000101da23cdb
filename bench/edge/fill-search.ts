import { hashedFeatures } from "../../src/models/embedders/feature-hashing.ts";

/** Sentences of words as unevenly common as those of a language, the same for the same seed. */
const words = 20_000;
const wordsInText = 14;

const random = (seed: number): (() => number) => {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
};

const sentence = (next: () => number): string =>
  Array.from({ length: wordsInText }, () => `term${Math.floor(words ** next()).toString(36)}`).join(" ");

const batch = 1000;

/** Fills an agent's index with passages as living would have, and a bare table of FTS5 with the same texts. */
export const fillSearch = ({ sql }: DurableObjectStorage, passages: number): void => {
  const next = random(passages);
  sql.exec("create virtual table bench_plain using fts5(text, tokenize='porter unicode61')");
  for (let from = 0; from < passages; from += batch) {
    const texts = Array.from({ length: Math.min(batch, passages - from) }, () => sentence(next));
    sql.exec(
      `insert into search_entries (type, ref, part, role, at, head, text)
       select 'consciousness', 'run_' || (? + key) || ':' || key, 0, 'assistant', 1780000000000 + (? + key) * 60000, 'Monday', value
       from json_each(?)`,
      from,
      from,
      JSON.stringify(texts),
    );
    sql.exec("insert into bench_plain (text) select value from json_each(?)", JSON.stringify(texts));
  }
  sql.exec(
    "insert into search_state (id, embedded_up_to, passages, used_at) values (1, 0, ?, ?)",
    passages,
    Date.now(),
  );
};

/** The same query in SQLite as it is: the best matches, with their texts. */
export const plainWords = ({ sql }: DurableObjectStorage, query: string, limit: number): number =>
  sql
    .exec("select rowid, rank, text from bench_plain where bench_plain match ? order by rank limit ?", query, limit)
    .toArray().length;

const held = new Map<number, Int8Array>();

/** The same query as a plain loop over vectors that are all held in memory, as bytes. */
export const plainVectors = ({ sql }: DurableObjectStorage, query: string): number => {
  const asked = hashedFeatures(query);
  const count = Number(sql.exec("select count(*) as count from search_entries").one().count);
  const all = held.get(count) ?? Int8Array.from({ length: count * asked.length }, (_, index) => (index * 31) % 255);
  held.set(count, all);
  let best = 0;
  for (let at = 0; at < all.length; at += asked.length) {
    let sum = 0;
    for (let index = 0; index < asked.length; index += 1) sum += (asked[index] ?? 0) * (all[at + index] ?? 0);
    if (sum > best) best = sum;
  }
  return best;
};
