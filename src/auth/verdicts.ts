import type { EntityType, Role } from "../protocol/entity.ts";
import type { WorkspaceRpc } from "../protocol/rpc.ts";
import { systemClock } from "../shared/clock.ts";
import { unwrap } from "../shared/errors.ts";
import { ExpiringMap } from "./expiring-map.ts";

/**
 * A cache of workspaces' answers about keys, entities and sessions, so that no hot path asks a workspace.
 *
 * Invariants
 * 1. A remembered verdict is at most `verdictMs` old.
 * 2. A key that was revoked, a session that was ended or an entity that was changed through this isolate is not answered from the cache, even
 *    where a request asked the workspace before the change.
 */
const verdictMs = 60_000;
const maxVerdicts = 20_000;

export type Standing = { role: Role; type: EntityType };

/** A living key, and when its workspace was asked for it. */
export type ProvenKey = { keyId: string; provenAt: number };

const keyVerdicts = new ExpiringMap<{ key: ProvenKey | undefined }>(verdictMs, maxVerdicts);
const revokedKeys = new ExpiringMap<true>(2 * verdictMs, maxVerdicts);
const sessionVerdicts = new ExpiringMap<{ lives: boolean; provenAt: number }>(verdictMs, maxVerdicts);
const endedSessions = new ExpiringMap<true>(2 * verdictMs, maxVerdicts);
const standings = new ExpiringMap<{ standing: Standing | undefined }>(verdictMs, maxVerdicts);
const changes = new ExpiringMap<number>(2 * verdictMs, maxVerdicts);

/** The living key with this hash, or nothing. */
export const keyWithHash = async (
  workspace: Pick<WorkspaceRpc, "verifyKey">,
  workspaceId: string,
  keyHash: string,
): Promise<ProvenKey | undefined> => {
  const place = `${workspaceId}:${keyHash}`;
  let verdict = keyVerdicts.get(place);
  if (!verdict) {
    const provenAt = systemClock.now();
    const outcome = await workspace.verifyKey(keyHash);
    verdict = { key: outcome.ok ? { keyId: outcome.value.keyId, provenAt } : undefined };
    keyVerdicts.set(place, verdict);
  }
  return verdict.key && revokedKeys.get(verdict.key.keyId) ? undefined : verdict.key;
};

/** Whether a key with this hash is known here to live, without asking its workspace. */
export const isKnownKey = (workspaceId: string, keyHash: string): boolean => {
  const key = keyVerdicts.get(`${workspaceId}:${keyHash}`)?.key;
  return key !== undefined && !revokedKeys.get(key.keyId);
};

export const forgetKey = (keyId: string): void => revokedKeys.set(keyId, true);

/** A session of the page that lives, and when its workspace was asked for it; undefined where it has ended. */
export const livingSession = async (
  workspace: Pick<WorkspaceRpc, "sessionLives">,
  id: string,
): Promise<{ id: string; provenAt: number } | undefined> => {
  let verdict = sessionVerdicts.get(id);
  if (!verdict) {
    const provenAt = systemClock.now();
    const outcome = await workspace.sessionLives(id);
    verdict = { lives: outcome.ok && outcome.value, provenAt };
    sessionVerdicts.set(id, verdict);
  }
  return verdict.lives && !endedSessions.get(id) ? { id, provenAt: verdict.provenAt } : undefined;
};

export const forgetSession = (id: string): void => endedSessions.set(id, true);

/** Role and type of an entity of the workspace, or nothing if it is not (or no longer) there. */
export const standingOf = async (
  workspace: Pick<WorkspaceRpc, "standing">,
  workspaceId: string,
  entityId: string,
): Promise<Standing | undefined> => {
  const place = `${workspaceId}:${entityId}`;
  const remembered = standings.get(place);
  if (remembered) return remembered.standing;
  const changesBefore = changes.get(place);
  const outcome = await workspace.standing(entityId);
  if (!outcome.ok && outcome.problem.code !== "not_found") unwrap(outcome);
  const standing = outcome.ok ? outcome.value : undefined;
  if (changes.get(place) === changesBefore) standings.set(place, { standing });
  return standing;
};

/** Forgets an entity that was made, changed or removed. */
export const forgetStanding = (workspaceId: string, entityId: string): void => {
  const place = `${workspaceId}:${entityId}`;
  standings.delete(place);
  changes.set(place, (changes.get(place) ?? 0) + 1);
};
