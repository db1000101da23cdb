import type { Settings } from "../protocol/notifications.ts";
import type { Self } from "../protocol/person-rpc.ts";
import { type Database, Remembered } from "../shared/database.ts";
import { people } from "./schema.ts";
import { defaultSettings } from "./settings.ts";

type Row = typeof people.$inferSelect;

/** The person's identity and settings. A person who never looked and set nothing has no row and no table. */
export const createPeople = (db: Database, isCreated: () => boolean) => {
  const row = new Remembered(db, () => (isCreated() ? db.select().from(people).get() : undefined));

  return {
    find: (): Row | undefined => row.get(),

    self(): Self | undefined {
      const found = row.get();
      return found && { workspaceId: found.workspaceId, entityId: found.id };
    },

    settings: (): Settings => row.get()?.settings ?? defaultSettings,

    keep({ workspaceId, entityId: id }: Self, changes: Partial<Pick<Row, "settings" | "rests">> = {}): void {
      if (row.get() && Object.keys(changes).length === 0) return;
      const again = { target: people.id, set: { workspaceId, ...changes } };
      db.insert(people)
        .values({ id, workspaceId, ...changes })
        .onConflictDoUpdate(again)
        .run();
      row.forget();
    },

    remove(): void {
      db.delete(people).run();
      row.forget();
    },
  };
};
export type People = ReturnType<typeof createPeople>;
