import { eq, sql } from "drizzle-orm";
import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { expect, test } from "vitest";
import { openDatabase, prepared } from "../../src/shared/database.ts";

const notes = sqliteTable("notes", { id: integer("id").primaryKey(), words: text("words").notNull() });

/** The storage of an object whose one note has these words. */
const storageOf = (words: string): DurableObjectStorage =>
  Object.assign(Object.create(null), {
    sql: { exec: (_query: string, id: number) => ({ raw: () => ({ toArray: () => [[id, words]] }) }) },
  });

test("[S1] a query that is built once asks the database of whoever asks", () => {
  let built = 0;
  const one = prepared((db) => {
    built += 1;
    return db
      .select()
      .from(notes)
      .where(eq(notes.id, sql.placeholder("id")));
  });
  const [ann, ben] = [openDatabase(storageOf("of Ann")), openDatabase(storageOf("of Ben"))];
  const [anns, bens] = [one(ann), one(ben)];
  expect([anns.get({ id: 1 }), bens.get({ id: 2 }), anns.get({ id: 3 })]).toEqual([
    { id: 1, words: "of Ann" },
    { id: 2, words: "of Ben" },
    { id: 3, words: "of Ann" },
  ]);
  expect(built).toBe(1);
});
