import { eq } from "drizzle-orm";
import type { LineEvent, Standing } from "../protocol/line.ts";
import { type Database, Remembered } from "../shared/database.ts";
import { sameJson } from "../shared/same-json.ts";
import { spaces } from "./schema.ts";

/**
 * The spaces that tell this person how they stand.
 *
 * Invariants
 * 1. There is a row for a space only while that space tells of each change, deletions too. So no deleted word stays here.
 * 2. What is older than what is known changes nothing.
 */
export const createKnownSpaces = (db: Database) => {
  const known = new Remembered(
    db,
    () =>
      new Map(
        db
          .select()
          .from(spaces)
          .all()
          .map(({ id, standing }) => [id, standing]),
      ),
  );

  return {
    all: (): Standing[] => [...known.get().values()],
    ids: (): string[] => [...known.get().keys()],
    find: (id: string): Standing | undefined => known.get().get(id),

    /** Answers what a line has to be told. */
    store(id: string, standing: Standing): LineEvent[] {
      const before = this.find(id);
      if (before && before.summary.seq > standing.summary.seq) return [];
      const events = changesOf(before, standing);
      if (events.length === 0) return events;
      db.insert(spaces).values({ id, standing }).onConflictDoUpdate({ target: spaces.id, set: { standing } }).run();
      known.get().set(id, standing);
      return events;
    },

    remove(id: string): LineEvent[] {
      const before = this.find(id);
      if (!before) return [];
      db.delete(spaces).where(eq(spaces.id, id)).run();
      known.get().delete(id);
      const done = before.needsYou.map((need): LineEvent => ({ type: "needs_you.done", id: need.id }));
      return [...done, { type: "space.left", spaceId: id }];
    },
  };
};

/** The differences between two looks at a space, as a line tells them. Pure. */
export const changesOf = (before: Standing | undefined, after: Standing): LineEvent[] => {
  const { summary, needsYou } = after;
  const [were, are] = [before?.needsYou ?? [], new Set(needsYou.map(({ id }) => id))];
  const known = new Set(were.map(({ id }) => id));
  return [
    ...(sameJson(before?.summary, summary) ? [] : [{ type: "space.summary" as const, ...summary }]),
    ...needsYou.filter(({ id }) => !known.has(id)).map((item): LineEvent => ({ type: "needs_you", item })),
    ...were.filter(({ id }) => !are.has(id)).map(({ id }): LineEvent => ({ type: "needs_you.done", id })),
  ];
};
