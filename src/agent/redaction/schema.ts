import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";

/**
 * Messages that became others, and other words that this mind forgets: `redactions.ts`. A row stays when its words are gone, so
 * that later runs are told of the message.
 */
export const redactions = sqliteTable("redactions", {
  id: text("id").primaryKey(),
  /** The words to be forgotten; null once they are. */
  words: text("words", { mode: "json" }).$type<string[]>(),
  /** When each of them was first said; null: at `since`. */
  saidAt: text("said_at", { mode: "json" }).$type<number[]>(),
  /** The message's words now; null where it was deleted. */
  text: text("text"),
  /** Where an edit came before the one before it was done: what both left. Null: `text`. */
  kept: text("kept"),
  senderName: text("sender_name"),
  spaceId: text("space_id"),
  /** Where one redaction takes several messages: their ids. */
  messageIds: text("message_ids", { mode: "json" }).$type<string[]>(),
  /** When the first of them was said, in milliseconds since the epoch; 0 where that is not known. */
  since: integer("since").notNull(),
  /** Which place is looked through, and the last row of it that was. */
  place: integer("place").notNull(),
  after: integer("after").notNull(),
  /** The first run that knew the words; and the newest run as it began. */
  knownFrom: integer("known_from"),
  lastRun: integer("last_run").notNull(),
  /** Rows that it changed. */
  rows: integer("rows").notNull().default(0),
  /** The agent's runs knew it, and are told. */
  isKnown: integer("is_known", { mode: "boolean" }).notNull(),
  at: integer("at").notNull(),
});
