import type { EntityType, Role } from "../protocol/entity.ts";
import { type CredentialRpc, credentialUntil } from "../protocol/last-release.ts";
import type { Auth } from "../protocol/own-users.ts";
import type { Credential } from "../protocol/principal.ts";
import type { WorkspaceRpc } from "../protocol/rpc.ts";
import type { KeyScope } from "../protocol/workspace.ts";
import { systemClock } from "../shared/clock.ts";
import { unwrap } from "../shared/errors.ts";
import { ExpiringMap } from "./expiring-map.ts";

/**
 * A cache of workspaces' answers about keys, entities and what tokens hang on, so that no hot path asks a workspace.
 *
 * Invariants
 * 1. A remembered verdict is at most `verdictMs` old.
 * 2. Once a key, a session or an entity was ended or changed through this isolate, the cache answers nothing of before.
 *    This holds even where a request asked the workspace before the change.
 */
const verdictMs = 60_000;
const maxVerdicts = 20_000;
/** Each may hold a set of keys. */
const maxAuthVerdicts = 200;

export type Standing = { role: Role; type: EntityType };

/** A living key, and when its workspace was asked for it. */
export type ProvenKey = { keyId: string; scopes?: KeyScope[]; expiresAt?: number; provenAt: number };

/** `endings`: how often credentials of its workspace had ended through this isolate when it was asked for. */
type Verdict<Value> = { value: Value; provenAt: number; endings: number | undefined };

const keyVerdicts = new ExpiringMap<Verdict<Omit<ProvenKey, "provenAt"> | undefined>>(verdictMs, maxVerdicts);
const credentialVerdicts = new ExpiringMap<Verdict<number>>(verdictMs, maxVerdicts);
const authVerdicts = new ExpiringMap<Verdict<Auth | undefined>>(verdictMs, maxAuthVerdicts);
const endings = new ExpiringMap<number>(2 * verdictMs, maxVerdicts);
const standings = new ExpiringMap<{ standing: Standing | undefined }>(verdictMs, maxVerdicts);
const changes = new ExpiringMap<number>(2 * verdictMs, maxVerdicts);

const remembered = <Value>(
  verdicts: ExpiringMap<Verdict<Value>>,
  workspaceId: string,
  name: string,
): Verdict<Value> | undefined => {
  const verdict = verdicts.get(`${workspaceId}:${name}`);
  return verdict?.endings === endings.get(workspaceId) ? verdict : undefined;
};

/** The remembered verdict of this name, else the answer of `ask`, which is asked again if something ended meanwhile. */
const verdictOn = async <Value>(
  verdicts: ExpiringMap<Verdict<Value>>,
  workspaceId: string,
  name: string,
  ask: () => Promise<Value>,
): Promise<Verdict<Value>> => {
  for (;;) {
    const known = remembered(verdicts, workspaceId, name);
    if (known) return known;
    const begun = { provenAt: systemClock.now(), endings: endings.get(workspaceId) };
    verdicts.set(`${workspaceId}:${name}`, { ...begun, value: await ask() });
  }
};

/** Something ended or changed that credentials of this workspace hang on: each is asked for again. */
export const forgetCredentials = (workspaceId: string): void =>
  endings.set(workspaceId, (endings.get(workspaceId) ?? 0) + 1);

const isOver = ({ expiresAt }: { expiresAt?: number }): boolean =>
  expiresAt !== undefined && expiresAt <= systemClock.now();

/** The living key with this hash, or nothing. */
export const keyWithHash = async (
  workspace: Pick<WorkspaceRpc, "verifyKey">,
  workspaceId: string,
  keyHash: string,
): Promise<ProvenKey | undefined> => {
  const { value, provenAt } = await verdictOn(keyVerdicts, workspaceId, keyHash, async () => {
    const outcome = await workspace.verifyKey(keyHash, true);
    return outcome.ok ? outcome.value : undefined;
  });
  return value && !isOver(value) ? { ...value, provenAt } : undefined;
};

/** Whether a key with this hash is known here to live, without asking its workspace. */
export const isKnownKey = (workspaceId: string, keyHash: string): boolean => {
  const value = remembered(keyVerdicts, workspaceId, keyHash)?.value;
  return value !== undefined && !isOver(value);
};

/** Until when what a token or a session hangs on holds, and when its workspace was asked; undefined where it does not. */
export const livingCredential = async (
  workspace: CredentialRpc,
  workspaceId: string,
  credential: Credential,
): Promise<{ until: number; provenAt: number } | undefined> => {
  const name = JSON.stringify(credential);
  const { value: until, provenAt } = await verdictOn(credentialVerdicts, workspaceId, name, async () => {
    const outcome = await credentialUntil(workspace, credential);
    if (!outcome.ok && outcome.problem.code !== "not_found") unwrap(outcome);
    return outcome.ok ? outcome.value : 0;
  });
  return until > systemClock.now() ? { until, provenAt } : undefined;
};

/** Whose JWTs a workspace takes beside its own tokens. */
export const authOf = async (workspace: Pick<WorkspaceRpc, "auth">, workspaceId: string): Promise<Auth | undefined> => {
  const { value } = await verdictOn(authVerdicts, workspaceId, "auth", async () => {
    const outcome = await workspace.auth();
    return outcome.ok ? (outcome.value ?? undefined) : undefined;
  });
  return value;
};

/** Role and type of an entity of the workspace, or nothing if it is not (or no longer) there. */
export const standingOf = async (
  workspace: Pick<WorkspaceRpc, "standing">,
  workspaceId: string,
  entityId: string,
): Promise<Standing | undefined> => {
  const place = `${workspaceId}:${entityId}`;
  const known = standings.get(place);
  if (known) return known.standing;
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
