import type { SearchHit } from "../../../protocol/search.ts";
import { isoTime } from "../../../shared/clock.ts";
import type { EntryRow } from "./entry.ts";
import { excerptOf } from "./excerpt.ts";
import { runIdOf } from "./journal-findables.ts";

const given = <Value>(name: string, value: Value | null | undefined): Record<string, Value> =>
  value === null || value === undefined ? {} : { [name]: value };

/** A passage that was found, as it is answered. `spaces` are the names of those that the agent is in. */
export const hitOf = (row: EntryRow, score: number, words: string[], spaces: Map<string, string>): SearchHit => ({
  type: row.type,
  id: row.ref,
  excerpt: excerptOf(row.text, words),
  score,
  createdAt: isoTime(row.at),
  ...given("role", row.role),
  source: {
    ...given("spaceId", row.spaceId),
    ...given("spaceName", row.spaceId === null ? null : spaces.get(row.spaceId)),
    ...given("messageId", row.messageId),
    ...given("authorId", row.authorId),
    ...given("authorName", row.authorName),
    ...(row.type === "consciousness" ? { runId: runIdOf(row.ref) } : {}),
    ...(row.type === "block" ? { label: row.ref } : {}),
  },
});
