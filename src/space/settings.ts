import type { Member } from "../protocol/entity.ts";
import type { SpaceSnapshot } from "../protocol/rpc.ts";
import type { Space } from "../protocol/space.ts";
import { isoTime } from "../shared/clock.ts";
import { type Database, prepared } from "../shared/database.ts";
import { type MemberRow, publicMember } from "./members.ts";
import { space } from "./schema.ts";

export type SettingsRow = typeof space.$inferSelect;

/**
 * The space's own row: its name, policies and version, and after its end the tombstone.
 *
 * Invariants
 * 1. The row is read once and kept until it is written: this object is its only writer. What was read in a
 *    transaction that is rolled back must be forgotten (`transaction` in `services.ts`).
 */
export class Settings {
  readonly #db: Database;
  #known: SettingsRow | undefined;
  readonly #row = prepared(() => this.#db.select().from(space).prepare());

  constructor(db: Database) {
    this.#db = db;
  }

  /** Undefined where the space was never created. */
  find(): SettingsRow | undefined {
    this.#known ??= this.#row().get();
    return this.#known;
  }

  insert(row: SettingsRow): void {
    this.forget();
    this.#db.insert(space).values(row).run();
  }

  change(changes: Partial<Omit<SettingsRow, "id" | "workspaceId" | "createdBy" | "createdAt">>): void {
    this.forget();
    this.#db.update(space).set(changes).run();
  }

  /** The row is read anew when it is asked for next. */
  forget(): void {
    this.#known = undefined;
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

const told = new WeakMap<MemberRow, Member>();

/** A member as others see it, made once for all subscribers. Nobody changes it. */
const toldMember = (row: MemberRow): Member => {
  const known = told.get(row) ?? publicMember(row);
  told.set(row, known);
  return known;
};

/** The space as a subscriber is told of it. */
export const snapshotOf = (space: SettingsRow, members: readonly MemberRow[]): SpaceSnapshot => ({
  id: space.id,
  workspaceId: space.workspaceId,
  name: space.name,
  shareOrigin: space.shareOrigin,
  wakePolicy: space.wakePolicy,
  createdAt: isoTime(space.createdAt),
  version: space.version,
  members: members.map(toldMember),
});
