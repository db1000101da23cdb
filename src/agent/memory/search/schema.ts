import { sql } from "drizzle-orm";
import { blob, index, integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { SearchRole, SearchType } from "../../../protocol/search.ts";

/** Passages of messages, cycles, blocks and archival entries. `search_words` holds their words. */
export const searchEntries = sqliteTable(
  "search_entries",
  {
    id: integer("id").primaryKey(),
    type: text("type").$type<SearchType>().notNull(),
    /** The message, the block's label, the archival entry; of a cycle, run and place in the journal. */
    ref: text("ref").notNull(),
    /** For a message that the agent was told or said itself: run and place in the journal. It stays found when it has left. */
    lived: text("lived"),
    part: integer("part").notNull(),
    /** The block's version that was indexed; null for other types. */
    version: integer("version"),
    role: text("role").$type<SearchRole>(),
    spaceId: text("space_id"),
    /** Where an archival entry was heard. A message's own id is its `ref`. */
    messageId: text("message_id"),
    authorId: text("author_id"),
    authorName: text("author_name"),
    at: integer("at").notNull(),
    /** The author, the place and the date; a block's label and description; an entry's metadata. */
    head: text("head").notNull(),
    text: text("text").notNull(),
  },
  (table) => [
    // Blocks and archival entries are deleted by `ref`.
    index("search_entries_ref").on(table.ref).where(sql`type in ('block', 'archival')`),
    // A message comes from its space and from the journal, and is in once.
    index("search_entries_message").on(table.ref).where(sql`type = 'message'`),
  ],
);

/** The sources of the index, each with a cursor: the journal twice, the archival entries, the log of each space. */
export const searchSources = sqliteTable("search_sources", {
  name: text("name").primaryKey(),
  cursor: integer("cursor").notNull(),
});

/** One row, once search was used. */
export const searchState = sqliteTable("search_state", {
  id: integer("id").primaryKey(),
  /** The embedder that made the vectors, and the last passage that it has come to. */
  embedderId: text("embedder_id"),
  embeddedUpTo: integer("embedded_up_to").notNull(),
  passages: integer("passages").notNull().default(0),
  usedAt: integer("used_at").notNull(),
});

/** Vectors of many passages in one row, in the order of their ids; the row's id is the first of them. */
export const searchVectors = sqliteTable("search_vectors", {
  id: integer("id").primaryKey(),
  passages: integer("passages").notNull(),
  packed: blob("packed", { mode: "buffer" }).notNull(),
});
