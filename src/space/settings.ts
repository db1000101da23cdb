import type { Member } from "../protocol/entity.ts";
import type { SpaceSnapshot } from "../protocol/rpc.ts";
import type { Space } from "../protocol/space.ts";
import { isoTime } from "../shared/clock.ts";
import { type Database, Remembered } from "../shared/database.ts";
import { withoutNulls } from "../shared/without-nulls.ts";
import { type MemberRow, publicMember } from "./members.ts";
import { space } from "./schema.ts";

export type SettingsRow = typeof space.$inferSelect;
export type Settings = ReturnType<typeof createSettings>;

/**
 * The space's own row: its name, policies and version, and after its end the tombstone.
 *
 * Invariants
 * 1. The row is read once and kept until it is written: this object is its only writer.
 */
export const createSettings = (db: Database) => {
  const row = new Remembered(db, () => db.select().from(space).get());
  return {
    /** Undefined where the space was never created. */
    find: (): SettingsRow | undefined => row.get(),

    insert(values: SettingsRow): void {
      row.writing().insert(space).values(values).run();
    },

    change(changes: Partial<Omit<SettingsRow, "id" | "workspaceId" | "createdBy" | "createdAt">>): void {
      row.writing().update(space).set(changes).run();
    },
  };
};

/** Days for which messages are kept; undefined: until somebody deletes them. */
export const retentionOf = (row: SettingsRow | undefined): number | undefined =>
  row?.retentionDays ?? row?.workspaceRetentionDays ?? undefined;

/** A space as the outside sees it, without its members. */
export const publicSpace = (row: SettingsRow): Omit<Space, "members"> => {
  const { id, name, wakePolicy, shareOrigin, confidentialFrom, release, router, createdBy, createdAt } = row;
  return {
    ...{ id, name, wakePolicy, shareOrigin, confidential: confidentialFrom === null ? undefined : (true as const) },
    release: release ?? undefined,
    router: router ?? undefined,
    retentionDays: row.retentionDays ?? undefined,
    workspaceRetentionDays: row.workspaceRetentionDays ?? undefined,
    createdBy: createdBy ?? undefined,
    createdAt: isoTime(createdAt),
    suspended: row.suspended || undefined,
  };
};

const told = new WeakMap<MemberRow, Member>();

/** A member as others see it, made once for all subscribers. Nobody changes it. */
const toldMember = (row: MemberRow): Member => {
  const known = told.get(row) ?? publicMember(row);
  told.set(row, known);
  return known;
};

/** The space as a subscriber is told of it. */
export const snapshotOf = (row: SettingsRow, members: readonly MemberRow[]): SpaceSnapshot => {
  const { id, workspaceId, name, shareOrigin, wakePolicy, createdAt, version, confidentialFrom, release } = row;
  return {
    ...{ id, workspaceId, name, shareOrigin, wakePolicy, version },
    ...(confidentialFrom === null ? {} : { confidential: true as const }),
    ...(release === null ? {} : { release }),
    ...withoutNulls({ retentionDays: retentionOf(row) ?? null }),
    createdAt: isoTime(createdAt),
    members: members.map(toldMember),
  };
};
