import { runInDurableObject } from "cloudflare:test";

/** Each row of each table of an object as text, also of its word indexes: to look for words that must be gone. */
export const allRows = ({ sql }: DurableObjectStorage): string[] => {
  const tables = sql
    .exec("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf%' ESCAPE '\\'")
    .toArray();
  return tables.flatMap(({ name }) => {
    const rows = sql.exec(`SELECT * FROM "${String(name)}"`).toArray();
    return rows.map((row) => `${String(name)} ${Object.values(row).map(asText).join(" ")}`);
  });
};

const asText = (value: SqlStorageValue): string =>
  value instanceof ArrayBuffer ? new TextDecoder("latin1").decode(value) : String(value);

/** The index stores the beginning of a word once for its neighbours, so only a question tells whether it has the word. */
const indexed = ({ sql }: DurableObjectStorage, words: string): string[] => {
  const indexes = sql.exec("SELECT name FROM sqlite_master WHERE sql LIKE '%USING fts5%'").toArray();
  return indexes.flatMap(({ name }) => {
    const hits = sql.exec(`SELECT rowid FROM "${String(name)}" WHERE "${String(name)}" MATCH ?`, JSON.stringify(words));
    return hits.toArray().map(({ rowid }) => `${String(name)} ${rowid} has ${words}`);
  });
};

/** The rows of an object that hold one of these words, and the hits of its indexes: each with the word. */
export const rowsWithAny = (object: unknown, words: readonly string[]): Promise<[word: string, row: string][]> =>
  runInDurableObject(object as DurableObjectStub, (_, { storage }) => {
    const rows = allRows(storage);
    return words.flatMap((word) =>
      [...rows.filter((row) => row.includes(word)), ...indexed(storage, word)].map((row): [string, string] => [
        word,
        row,
      ]),
    );
  });

/** The rows of an object that hold these words, and the hits of its indexes. */
export const rowsWith = async (object: unknown, words: string): Promise<string[]> =>
  (await rowsWithAny(object, [words])).map(([, row]) => row);
