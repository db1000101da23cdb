import { asc, eq } from "drizzle-orm";
import { endpointSecretName, isSealedAnew, resealed } from "../auth/sealing.ts";
import type { Env } from "../env/env.ts";
import {
  type Disabled,
  type Endpoint,
  isMeant,
  runEvents,
  spaceEvents,
  type UpdateEndpoint,
  type workspaceEvents,
} from "../protocol/endpoint.ts";
import type {
  EndpointConfig,
  EndpointSecret,
  FollowingEndpoints,
  NewEndpoint,
  NextSecret,
} from "../protocol/endpoint-rpc.ts";
import { type Clock, isoTime } from "../shared/clock.ts";
import { type Database, Remembered } from "../shared/database.ts";
import { ColloquyError, type Outcome, ok } from "../shared/errors.ts";
import { withoutNulls } from "../shared/without-nulls.ts";
import { maxEndpoints } from "./bounds.ts";
import type { WorkspaceRow } from "./registry.ts";
import { endpoints, workspaces } from "./schema.ts";

export type EndpointRow = typeof endpoints.$inferSelect;

const ofSpaces = [...spaceEvents, ...runEvents];

type Around = {
  env: Env;
  db: Database;
  clock: Clock;
  self: Remembered<WorkspaceRow | undefined>;
  /** The newest place of what happened here: a new endpoint is told from there on. */
  newest: () => number;
  /** In the transaction that changes one, with the spaces that it is about; null: all. */
  changed: (id: string, spaceIds: string[] | null) => void;
};

/**
 * The workspace's endpoints. Their own objects have a copy each, and spaces know by which they are followed.
 *
 * Invariants
 * 1. Each change counts the version up, and is told by a job of its own transaction. A list or a copy of an older version
 *    changes nothing where a newer one is known.
 */
export const createEndpoints = ({ env, db, clock, self, newest, changed }: Around) => {
  const known = new Remembered(db, () => db.select().from(endpoints).orderBy(asc(endpoints.position)).all());
  const find = (id: string): EndpointRow | undefined => known.get().find((row) => row.id === id);
  const workspaceId = (): string => self.get()?.id ?? "";

  const get = (id: string): EndpointRow => {
    const row = find(id);
    if (row) return row;
    throw new ColloquyError("not_found", "There is no such endpoint: list them with GET /v1/workspace/endpoints");
  };

  const nextVersion = (): number => {
    const endpointsVersion = (self.get()?.endpointsVersion ?? 0) + 1;
    db.update(workspaces).set({ endpointsVersion }).run();
    self.forget();
    return endpointsVersion;
  };

  const livingSecrets = ({ secrets }: Pick<EndpointRow, "secrets">): EndpointSecret[] =>
    secrets.filter(({ until }) => until === undefined || until > clock.now());

  const viewOf = (row: EndpointRow): Endpoint => {
    const { id, url, types, batch, createdAt, spaceIds, description, disabled } = row;
    const [, previous] = livingSecrets(row);
    return {
      ...{ id, url, types, batch, createdAt: isoTime(createdAt) },
      ...withoutNulls({ spaceIds, description, disabled }),
      ...(previous?.until !== undefined && { previousSecretUntil: isoTime(previous.until) }),
    };
  };

  /** The spaces whose events an endpoint names; null: all that are not confidential. */
  const scopeOf = ({ types, spaceIds }: EndpointRow): string[] | null =>
    ofSpaces.some((event) => isMeant(types, event)) ? spaceIds : [];

  const change = (id: string, changes: Partial<EndpointRow>): EndpointRow => {
    const before = scopeOf(get(id));
    const set = { ...changes, version: nextVersion() };
    known.writing().update(endpoints).set(set).where(eq(endpoints.id, id)).run();
    const after = scopeOf(get(id));
    const isWider = "types" in changes || "spaceIds" in changes;
    changed(id, isWider ? before && after && [...new Set([...before, ...after])] : []);
    return get(id);
  };

  const configOf = ({ id, url, types, batch, disabled, version, ...row }: EndpointRow): EndpointConfig => {
    const rests = self.get()?.suspended ? "suspended" : disabled ? "disabled" : undefined;
    return {
      id,
      workspaceId: workspaceId(),
      url,
      types,
      batch,
      secrets: livingSecrets(row),
      version,
      ...(rests && { rests }),
    };
  };

  return {
    find,
    views: (): Endpoint[] => known.get().map(viewOf),
    /** With its newest secret. */
    sealed: (row: EndpointRow) => ({ endpoint: viewOf(row), sealed: row.secrets[0]?.sealed ?? "" }),
    ids: (): string[] => known.get().map(({ id }) => id),

    /** The same again is the same endpoint. */
    add({ id, sealed, ...settings }: NewEndpoint): EndpointRow {
      const there = find(id);
      if (there) return there;
      if (known.get().length >= maxEndpoints) {
        const detail = `A workspace has at most ${maxEndpoints} endpoints (maxEndpoints): delete one first`;
        throw new ColloquyError("limit_reached", detail);
      }
      const { spaceIds = null, description = null, ...named } = settings;
      const values = { ...named, spaceIds, description, secrets: [{ sealed }], disabled: null, version: nextVersion() };
      const at = { toldTo: newest(), createdAt: clock.now() };
      known
        .writing()
        .insert(endpoints)
        .values({ id, ...values, ...at })
        .run();
      changed(id, scopeOf(get(id)));
      return get(id);
    },

    update(id: string, { enabled, ...changes }: UpdateEndpoint): Endpoint {
      const { disabled } = get(id);
      const asked: Disabled = { at: isoTime(clock.now()), reason: "asked" };
      const next = enabled === undefined ? disabled : enabled ? null : (disabled ?? asked);
      return viewOf(change(id, { ...JSON.parse(JSON.stringify(changes)), disabled: next }));
    },

    roll(id: string, { sealed, version, overlapMs }: NextSecret): EndpointRow {
      const [before] = get(id).secrets;
      if (!before || before.version === version) return get(id);
      const previous = overlapMs > 0 ? [{ ...before, until: clock.now() + overlapMs }] : [];
      return change(id, { secrets: [{ sealed, version }, ...previous] });
    },

    delete(id: string): void {
      const before = scopeOf(get(id));
      nextVersion();
      known.writing().delete(endpoints).where(eq(endpoints.id, id)).run();
      changed(id, before);
    },

    /** False where it was changed since. */
    disable(id: string, version: number, detail: string): boolean {
      const row = find(id);
      if (!row || row.version !== version || row.disabled) return false;
      change(id, { disabled: { at: isoTime(clock.now()), reason: "refused", detail } });
      return true;
    },

    /** It was told of what happened here, up to there. */
    told: (id: string, toldTo: number): void =>
      void known.writing().update(endpoints).set({ toldTo }).where(eq(endpoints.id, id)).run(),

    following: (spaceId: string): FollowingEndpoints => ({
      version: self.get()?.endpointsVersion ?? 0,
      endpoints: known
        .get()
        .filter((row) => scopeOf(row)?.includes(spaceId) ?? true)
        .map(({ id, types, spaceIds }) => ({ id, types, isNamed: spaceIds !== null })),
    }),

    /** Those that are told of it, where it is an event of the workspace. */
    wanting: (event: (typeof workspaceEvents)[number]): EndpointRow[] =>
      known.get().filter(({ types }) => isMeant(types, event)),

    /** Has its own object know it as it is now, or end. */
    async tell(id: string): Promise<Outcome<null>> {
      const row = find(id);
      const object = env.ENDPOINT.getByName(id);
      if (row) return object.configure(configOf(row));
      const removed = await object.remove(workspaceId());
      return !removed.ok && removed.problem.code === "not_found" ? ok(null) : removed;
    },

    /** Those whose secrets hang on an older secret of the deployment. */
    oldlySealed: (): string[] =>
      known.get().flatMap(({ id, secrets }) => (secrets.every(({ sealed }) => isSealedAnew(env, sealed)) ? [] : id)),

    /** Seals the secrets of one anew. Throws where none of the ring opens them. */
    async reseal(id: string): Promise<void> {
      const { secrets = [] } = find(id) ?? {};
      const seal = async (secret: EndpointSecret): Promise<EndpointSecret> => ({
        ...secret,
        sealed: await resealed(env, workspaceId(), endpointSecretName(id), secret.sealed),
      });
      const fresh = await Promise.all(secrets.map(seal));
      // It may have been rolled or deleted meanwhile.
      db.transaction(() => {
        if (find(id)?.secrets === secrets) change(id, { secrets: fresh });
      });
    },
  };
};
export type Endpoints = ReturnType<typeof createEndpoints>;
