import type { Principal } from "../protocol/principal.ts";
import type { Env } from "../shared/env.ts";
import { ColloquyError } from "../shared/errors.ts";
import type { Ids } from "../shared/ids.ts";
import { credentialsOf, isOperator, tokenPattern } from "./credentials.ts";
import { hashSecretKey, workspaceOfSecretKey } from "./secret-keys.ts";
import { provenToken, verifyToken } from "./tokens.ts";
import { isKnownKey, keyWithHash, standingOf } from "./verdicts.ts";

/** Who is calling. The operator is no principal of any workspace. */
export type Caller = { kind: "operator" } | Principal;

const keyCaller = async (env: Env, ids: Ids, secretKey: string, entityId: string | undefined): Promise<Principal> => {
  const workspaceId = workspaceOfSecretKey(secretKey) ?? "";
  const workspace = env.WORKSPACE.getByName(workspaceId);
  const isIssued = ids.isIssued("wsp", workspaceId);
  const key = isIssued ? await keyWithHash(workspace, workspaceId, hashSecretKey(secretKey)) : undefined;
  if (!key) throw new ColloquyError("unauthorized", "The secret key is not valid: it was revoked, or never issued.");
  if (entityId === undefined) return { kind: "key", workspaceId, ...key };
  if (!ids.isIssued("ent", entityId) || !(await standingOf(workspace, workspaceId, entityId))) {
    throw new ColloquyError("acting_entity_required", "X-Entity-Id names no entity of this workspace.");
  }
  return { kind: "key", workspaceId, ...key, entityId };
};

/** Whether it can be proven here, with no look-up and nothing to guess: a token, or a key that was proven lately. */
const isProvable = (bearer: string): boolean => {
  const workspaceId = workspaceOfSecretKey(bearer);
  return workspaceId === undefined ? tokenPattern.test(bearer) : isKnownKey(workspaceId, hashSecretKey(bearer));
};

/**
 * Who presents this request; throws `unauthorized` or `token_expired`. Nothing invented wakes an object.
 * `beforeLookUp` may refuse to have anything asked or compared that is no token and was not proven lately.
 */
export const authenticate = async (
  request: Request,
  env: Env,
  ids: Ids,
  options: { allowQueryToken: boolean; now: number; beforeLookUp: () => void },
): Promise<Caller> => {
  const { bearer, actingEntityId } = credentialsOf(request, options.allowQueryToken);
  if (bearer === undefined) {
    throw new ColloquyError(
      "unauthorized",
      "Send Authorization: Bearer with a secret key (sk_…) or an entity's token.",
    );
  }
  // What was signed here as an entity's token is not the operator's key: nothing is left to compare.
  const proven = provenToken(env.SIGNING_SECRET, bearer, options.now);
  if (!proven && !isProvable(bearer)) options.beforeLookUp();
  if (!proven && isOperator(env.ADMIN_KEY, bearer)) return { kind: "operator" };
  if (bearer.startsWith("sk_")) return keyCaller(env, ids, bearer, actingEntityId);
  const { workspaceId, entityId, expiresAt } =
    proven ?? (await verifyToken(env.SIGNING_SECRET, ids, bearer, options.now));
  if (actingEntityId !== undefined && actingEntityId !== entityId) {
    throw new ColloquyError("forbidden", "An entity acts only as itself: leave out X-Entity-Id.");
  }
  return { kind: "entity", workspaceId, entityId, admin: false, expiresAt };
};
