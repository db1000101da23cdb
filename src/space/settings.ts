import type { Space } from "../protocol/space.ts";
import { isoTime } from "../shared/clock.ts";
import { type Database, prepared } from "../shared/database.ts";
import { space } from "./schema.ts";

export type SettingsRow = typeof space.$inferSelect;

/** The space's own row: its name, policies and version, and after its end the tombstone. */
export class Settings {
  readonly #db: Database;
  readonly #row = prepared(() => this.#db.select().from(space).prepare());

  constructor(db: Database) {
    this.#db = db;
  }

  /** Undefined where the space was never created. */
  find(): SettingsRow | undefined {
    return this.#row().get();
  }

  insert(row: SettingsRow): void {
    this.#db.insert(space).values(row).run();
  }

  change(changes: Partial<Omit<SettingsRow, "id" | "workspaceId" | "createdBy" | "createdAt">>): void {
    this.#db.update(space).set(changes).run();
  }
}

/** A space as the outside sees it, without its members. */
export const publicSpace = (row: SettingsRow): Omit<Space, "members"> => ({
  id: row.id,
  name: row.name,
  wakePolicy: row.wakePolicy,
  shareOrigin: row.shareOrigin,
  ...(row.router === null ? {} : { router: row.router }),
  ...(row.createdBy === null ? {} : { createdBy: row.createdBy }),
  createdAt: isoTime(row.createdAt),
});
