import { maxToldReads, type ReadSpace } from "../../protocol/run.ts";
import type { Journal, JournalRow } from "../journal.ts";
import type { RunRow } from "../runs.ts";
import type { Spaces } from "../spaces.ts";

/** The spaces whose messages the results told, by id, in that order. */
export const spacesReadIn = (rows: JournalRow[]): string[] => [
  ...new Set(rows.flatMap(({ meta }) => (meta?.kind === "result" ? (meta.reads ?? []) : []))),
];

/**
 * How a space that a run read is told to the members of another (`toldTo`), or to who holds the workspace's key (null).
 * The space's `shareOrigin` decides what is told, as of an origin (C7). No other check hides the space from
 * people outside. A deleted space is not told. A confidential one is never named, nor one that the agent has left.
 * Compartments, and the agent that an export becomes, know no space that was left or deleted: it is told as nameless.
 */
const readSpace = (spaces: Spaces, spaceId: string, toldTo: string | null): ReadSpace | undefined => {
  const { snapshot, left } = spaces.get(spaceId) ?? {};
  if (!snapshot) return nameless;
  if (snapshot.deleted || snapshot.confidential) return undefined;
  const { name, shareOrigin, members } = snapshot;
  if (!left && (toldTo === null || shareOrigin === "name" || shareOrigin === "text")) {
    return { spaceId, name, members: members.length };
  }
  return left || shareOrigin === "none" ? nameless : { spaceId };
};

/** Stands for all spaces of which nothing more is told than that there is one. */
const nameless: ReadSpace = {};

/**
 * The spaces whose messages a run's calls read so far, as told to a space (`toldTo`) or to who holds the workspace's
 * key (null). A space is not told that it was read itself (C8).
 */
export const readsFor = (
  { journal, spaces }: { journal: Journal; spaces: Spaces },
  run: RunRow,
  toldTo: string | null,
  rows = journal.ofRun(run, run.journalTo ?? undefined),
): { reads?: ReadSpace[] } => {
  const read = spacesReadIn(rows).filter((id) => id !== toldTo);
  const reads = [...new Set(read.flatMap((id) => readSpace(spaces, id, toldTo) ?? []))].slice(0, maxToldReads);
  return reads.length === 0 ? {} : { reads };
};
