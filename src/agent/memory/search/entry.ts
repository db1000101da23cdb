import type { SearchRole, SearchType } from "../../../protocol/search.ts";
import type { searchEntries } from "./schema.ts";

/** One passage that search finds. */
export type EntryRow = typeof searchEntries.$inferSelect;
export type NewEntry = Omit<EntryRow, "id">;

/** Something to be found, before its text is cut into passages. */
export type Findable = Pick<NewEntry, "type" | "ref" | "at" | "head" | "text"> & Partial<NewEntry>;

export const newEntry = (found: Findable, text: string, part: number): NewEntry => ({
  version: null,
  role: null,
  spaceId: null,
  messageId: null,
  authorId: null,
  authorName: null,
  ...found,
  text,
  part,
});

/** What of the index a query is about. Times in milliseconds since the epoch, both ends included. */
export type Filter = {
  types: SearchType[];
  role: SearchRole | null;
  from: number;
  to: number;
  /** Spaces that the agent was just told that it may not read. */
  closed: string[];
};
