import type { FeedPlace } from "../../protocol/agent-rpc.ts";
import type { Goal, Memory } from "../../protocol/mind.ts";
import type { Plan } from "../../protocol/plan.ts";
import type { SpaceSnapshot } from "../../protocol/rpc.ts";
import { among, type Database, Remembered } from "../../shared/database.ts";
import { ColloquyError } from "../../shared/errors.ts";
import type { Known, OpenItems } from "../records.ts";
import { feed } from "../schema.ts";

/**
 * What a compartment knows of its agent's open mind: its memories, goals, plans and spaces, and how far it was told of its
 * runs. An open mind has no row here.
 *
 * Invariants
 * 1. Only a feed writes here, all that it brings in one transaction. A part that did not change is not written.
 * 2. Nothing here is changed by the compartment, and nothing of it fires or counts here.
 */
export type FeedPart = { part: string; hash: string; value: unknown };

/** `left`: runs that were too many, or too long, to be fed. */
export type FedRuns = { place: FeedPlace; left: number };

/** Before the id of a space in the name of its part. */
export const spacePart = "space:";

export type FeedState = ReturnType<typeof createFeedState>;

export const createFeedState = (db: Database) => {
  const known = new Remembered(
    db,
    () =>
      new Map(
        db
          .select()
          .from(feed)
          .all()
          .map((row) => [row.part, row]),
      ),
  );
  // A part's value is what `put` was given for it.
  const held = <Value>(part: string) => known.get().get(part)?.value as Value | undefined;

  const openItems = <Item extends object>(
    part: string,
    what: string,
    nameOf: (item: Item) => string,
  ): OpenItems<Item> => {
    const open = (): Item[] => held<Item[]>(part) ?? [];
    return {
      withOpen: (own) =>
        open().length === 0 ? own : [...open().map((item): Known<Item> => ({ ...item, open: true })), ...own],
      requireOwn: (name, own) => {
        const isIt = (item: Item): boolean => nameOf(item) === name;
        if (!open().some(isIt) || own.some(isIt)) return;
        const rule = `"${name}" is an open ${what}; a run of a confidential space may not change it`;
        throw new ColloquyError("conflict", `${rule}; set another ${part === "memories" ? "key" : "id"}`);
      },
    };
  };

  return {
    runs: () => held<FedRuns>("runs"),
    memories: openItems<Memory>("memories", "memory", ({ key }) => key),
    goals: openItems<Goal>("goals", "goal", ({ id }) => id),
    plans: openItems<Plan>("plans", "plan", ({ id }) => id),
    spaces: (): SpaceSnapshot[] =>
      [...known.get().keys()].flatMap((part) => (part.startsWith(spacePart) ? (held<SpaceSnapshot>(part) ?? []) : [])),
    keptDays: () => held<Record<string, number>>("keptDays") ?? {},
    space: (id: string) => held<SpaceSnapshot>(`${spacePart}${id}`),

    /** The parts that are known here, by the hash of each. */
    hashes: (): Record<string, string> =>
      Object.fromEntries([...known.get().values()].map(({ part, hash }) => [part, hash])),

    put(parts: FeedPart[], gone: string[] = []): void {
      const writing = known.writing();
      for (const { part, ...set } of parts) {
        writing
          .insert(feed)
          .values({ part, ...set })
          .onConflictDoUpdate({ target: feed.part, set })
          .run();
      }
      if (gone.length > 0) writing.delete(feed).where(among(feed.part, gone)).run();
    },
  };
};
