import { and, asc, eq, gt, isNull, or } from "drizzle-orm";
import type { Role } from "../protocol/entity.ts";
import { hasScope, neverEnds } from "../protocol/principal.ts";
import type { Key, NewKey, UpdateKey } from "../protocol/workspace.ts";
import { type Clock, isoTime } from "../shared/clock.ts";
import { countOf, type Database } from "../shared/database.ts";
import { ColloquyError } from "../shared/errors.ts";
import { keyUseMs, maxKeys } from "./bounds.ts";
import { keys } from "./schema.ts";

type Row = typeof keys.$inferSelect;
type Ending = { expiresAt?: number | null | undefined };

const timeOf = (at: number | null): string | null => (at === null ? null : isoTime(at));

const keyOf = ({ id, name, scopes, createdAt, lastUsedAt, expiresAt }: Row): Key => ({
  ...{ id, name, scopes, createdAt: isoTime(createdAt) },
  ...{ lastUsedAt: timeOf(lastUsedAt), expiresAt: timeOf(expiresAt) },
});

/** Whether it is a key by which the workspace can always be run. */
const isLasting = ({ scopes, expiresAt }: Pick<Row, "scopes" | "expiresAt">): boolean =>
  hasScope({ scopes }) && expiresAt === null;

export type Keys = ReturnType<typeof createKeys>;

/**
 * The workspace's secret keys, of which only hashes are here.
 *
 * Invariants
 * 1. There is always a living one of scope `full` without an end.
 * 2. A key that was revoked or has expired keeps its row: its id and hash can never be a living key's again (S5).
 * 3. Where tokens or sessions may hang on a key, its end is told (`ended`) by the transaction that stores it.
 * 4. Nobody gets more by a key than it has: one of scope `full` alone makes keys, and none that outlives it.
 */
export const createKeys = (db: Database, clock: Clock, ended: (id: string) => void) => {
  const isAlive = () => and(isNull(keys.revokedAt), or(isNull(keys.expiresAt), gt(keys.expiresAt, clock.now())));
  const find = (id: string): Row | undefined =>
    db
      .select()
      .from(keys)
      .where(and(eq(keys.id, id), isAlive()))
      .get();
  const living = (): Row[] => db.select().from(keys).where(isAlive()).orderBy(asc(keys.createdAt), asc(keys.id)).all();

  const get = (id: string): Row => {
    const row = find(id);
    if (!row) throw new ColloquyError("not_found", "There is no such key in this workspace, or it has ended.");
    return row;
  };

  /** Until when what the key `by` makes may last. */
  const makerEnd = (by: string | undefined): number | null => {
    if (by === undefined) return null;
    const maker = find(by);
    if (maker && hasScope(maker)) return maker.expiresAt;
    throw new ColloquyError("forbidden", "Only a living secret key of scope full makes and changes keys.");
  };

  /** Throws `conflict` where the change has left no lasting key. */
  const requireLasting = (doing: string): void => {
    if (living().some(isLasting)) return;
    const detail = `This is the workspace's last key of scope full without an end: create another one before ${doing} it.`;
    throw new ColloquyError("conflict", detail);
  };

  const change = (id: string, values: Partial<Row>): Row =>
    db
      .update(keys)
      .set({ id, ...values })
      .where(eq(keys.id, id))
      .returning()
      .get() ?? get(id);

  /** Adding under an id that is there answers what is there. `expiresAt`: null for no end; left out, it is its maker's. */
  const add = (
    { keyId: id, keyHash: hash, name, scopes = ["full"], ...asked }: Omit<NewKey, "expiresAt"> & Ending,
    most = maxKeys,
  ): Row => {
    const present = db.select().from(keys).where(eq(keys.id, id)).get();
    if (present && !find(id)) {
      throw new ColloquyError("gone", "That key has ended: create another one with a new Idempotency-Key.");
    }
    if (present && present.hash !== hash) {
      const detail =
        "That key was made before the deployment's secret changed: revoke it, and send a new Idempotency-Key.";
      throw new ColloquyError("conflict", detail);
    }
    if (present) return present;
    const end = makerEnd(asked.by);
    const { expiresAt = end } = asked;
    if (expiresAt !== null && expiresAt <= clock.now()) {
      throw new ColloquyError("invalid_time", "expiresAt is past: name a later time, or leave it out.");
    }
    if (end !== null && (expiresAt ?? Number.POSITIVE_INFINITY) > end) {
      const detail = `The key that makes it ends at ${isoTime(end)}: name no later expiresAt, or use a key without an end.`;
      throw new ColloquyError("forbidden", detail);
    }
    if (countOf(db, keys, isAlive()) >= most) {
      const detail = `A workspace has at most ${most} secret keys (maxKeys): revoke one first.`;
      throw new ColloquyError("limit_reached", detail);
    }
    return db.insert(keys).values({ id, hash, name, scopes, createdAt: clock.now(), expiresAt }).returning().get();
  };

  /** A use within the hour after one that was written is not written: a key is asked for once a minute everywhere. */
  const used = (row: Row): Row => {
    const now = clock.now();
    return row.lastUsedAt !== null && row.lastUsedAt > now - keyUseMs ? row : change(row.id, { lastUsedAt: now });
  };

  return {
    add: (key: NewKey): Key => keyOf(add(key)),
    all: (): Key[] => living().map(keyOf),

    /**
     * Until when it may sign in an entity of that role, 0 where it may not. A key of scope `tokens` gives nobody more
     * than it has, so no admin hangs on it.
     */
    signsInUntil(id: string, role: Role): number {
      const row = find(id);
      const signsIn = row && hasScope(row, ...(role === "admin" ? [] : (["tokens"] as const)));
      return signsIn ? (row.expiresAt ?? neverEnds) : 0;
    },

    /** From now on tokens or sessions hang on it. */
    noteSignIn(id: string): void {
      if (!find(id)?.signsIn) change(id, { signsIn: true });
    },

    /** Whether it lives, and has the scopes still by which it holds something open: that is a use. */
    isUsed(id: string, scopes: Key["scopes"] = []): boolean {
      const row = find(id);
      return row !== undefined && scopes.every((each) => hasScope(row, each)) && used(row) !== undefined;
    },

    verify(hash: string, knowsScopes = false): { keyId: string; scopes: Key["scopes"]; expiresAt?: number } {
      const isPresented = and(eq(keys.hash, hash), isAlive());
      const key = db.select().from(keys).where(isPresented).get();
      if (!key || !(knowsScopes || hasScope(key)))
        throw new ColloquyError("unauthorized", "The secret key is not valid.");
      const { id: keyId, scopes, expiresAt } = used(key);
      return { keyId, scopes, ...(expiresAt === null ? {} : { expiresAt }) };
    },

    update(id: string, { name, scopes }: UpdateKey, by: string): Key {
      const before = get(id);
      const end = makerEnd(by);
      if (end !== null && scopes && (before.expiresAt ?? Number.POSITIVE_INFINITY) > end) {
        throw new ColloquyError("forbidden", "The key that asks ends first: change scopes by a key without an end.");
      }
      const row = change(id, { ...(name !== undefined && { name }), ...(scopes && { scopes }) });
      requireLasting("narrowing");
      if (row.signsIn && scopes) ended(id);
      return keyOf(row);
    },

    /** Rolling to a successor that is there answers both as they are: a replay ends nothing sooner. */
    roll(id: string, successor: NewKey, overlapMs: number): { key: Key; previous: Key } {
      const row = db.select().from(keys).where(eq(keys.id, id)).get() ?? get(id);
      if (row.successorId === successor.keyId) return { key: keyOf(add(successor)), previous: keyOf(row) };
      const { name, scopes, expiresAt, successorId } = get(id);
      if (successorId !== null) {
        const detail = `It was rolled already, to ${successorId}: roll that one, or revoke this one to end it now.`;
        throw new ColloquyError("conflict", detail);
      }
      const key = add({ ...successor, name: name ?? undefined, scopes, expiresAt }, 2 * maxKeys);
      const end = clock.now() + overlapMs;
      const values = { expiresAt: Math.min(end, expiresAt ?? end), successorId: key.id };
      const previous = change(id, values);
      requireLasting("rolling");
      if (previous.signsIn) ended(id);
      return { key: keyOf(key), previous: keyOf(previous) };
    },

    revoke(id: string): void {
      const { signsIn } = get(id);
      change(id, { revokedAt: clock.now() });
      requireLasting("revoking");
      if (signsIn) ended(id);
    },
  };
};
