import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { Failure } from "../records.ts";

/**
 * What a model made of what is read no more, each taking up the one before: of cycles (`cycles`) and of a space's
 * messages (the space's id); and what it is still to take up.
 */
export const summaries = sqliteTable("summaries", {
  subject: text("subject").primaryKey(),
  /** Null until the first chunk was folded. */
  text: text("text"),
  /** Of cycles: the first run of the window whose past it folds. Of messages: how many came before its first. */
  base: integer("base").notNull(),
  /** The last that is in it: a run's ordinal; a message's place among the space's, from 1 on. */
  upTo: integer("up_to").notNull(),
  /** Up to which messages it is wanted; of cycles, 0: that follows from the window. */
  wanted: integer("wanted").notNull(),
  /** When the next chunk is folded; null if none is wanted. */
  tryAt: integer("try_at"),
  failures: integer("failures").notNull(),
  lastError: text("last_error", { mode: "json" }).$type<Failure>(),
  updatedAt: integer("updated_at").notNull(),
});
