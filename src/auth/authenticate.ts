import type { Env } from "../env/env.ts";
import type { Principal } from "../protocol/principal.ts";
import { ColloquyError, unwrap } from "../shared/errors.ts";
import type { Ids } from "../shared/ids.ts";
import { credentialsOf, hashSecretKey, isOperator, workspaceOfSecretKey } from "./credentials.ts";
import { forgetJwt, jwtIn, type OwnUsers, provenJwt, verifyJwt, workspaceOfHost } from "./own-users.ts";
import { sessionOfAnother } from "./session-cookie.ts";
import { type Proven, provenToken, tokenPattern, verifyToken } from "./tokens.ts";
import { authOf, isKnownKey, keyWithHash, livingCredential, standingOf } from "./verdicts.ts";

/** The caller. The operator is no principal of any workspace. */
export type Caller = { kind: "operator" } | Principal;

const keyCaller = async (env: Env, ids: Ids, secretKey: string, entityId: string | undefined): Promise<Principal> => {
  const workspaceId = workspaceOfSecretKey(secretKey) ?? "";
  const workspace = env.WORKSPACE.getByName(workspaceId);
  const isIssued = ids.isIssued("wsp", workspaceId);
  const key = isIssued ? await keyWithHash(workspace, workspaceId, hashSecretKey(secretKey)) : undefined;
  if (!key)
    throw new ColloquyError(
      "unauthorized",
      "The secret key is not valid: it was revoked, has expired, or was never issued.",
    );
  if (entityId === undefined) return { kind: "key", workspaceId, ...key };
  if (!ids.isIssued("ent", entityId) || !(await standingOf(workspace, workspaceId, entityId))) {
    throw new ColloquyError("acting_entity_required", "X-Entity-Id names no entity of this workspace.");
  }
  return { kind: "key", workspaceId, ...key, entityId };
};

/** Whether the bearer can be proven without a look-up: it looks like a token, or is a key that was proven lately. */
const isProvable = (bearer: string): boolean => {
  const workspaceId = workspaceOfSecretKey(bearer);
  return workspaceId === undefined ? tokenPattern.test(bearer) : isKnownKey(workspaceId, hashSecretKey(bearer));
};

/** The caller that a valid token, or session, proves. Neither counts in the other's place. */
const entityCaller = async (
  env: Env,
  { workspaceId, expiresAt, ...credential }: Proven,
  isSession: boolean | undefined,
): Promise<Principal> => {
  const { sessionId, ...hangsOn } = credential;
  const isRightPlace = (sessionId !== undefined) === (isSession === true);
  const living = isRightPlace
    ? await livingCredential(env.WORKSPACE.getByName(workspaceId), workspaceId, credential)
    : undefined;
  if (!living) throw ended(isSession);
  const { until, provenAt } = living;
  const session = sessionId === undefined ? {} : { session: { id: sessionId, provenAt } };
  const times = { expiresAt: Math.min(expiresAt, until), provenAt };
  return { kind: "entity", workspaceId, ...hangsOn, admin: false, ...times, ...session };
};

const ended = (isSession: boolean | undefined): ColloquyError =>
  new ColloquyError(
    "unauthorized",
    isSession
      ? "The session has ended, or is none: sign in again."
      : "The token has ended: its entity signed out or was removed, or who made it may not any more. Get a new one from POST /v1/tokens, or from your issuer.",
  );

type Options = {
  allowQueryToken: boolean;
  now: number;
  beforeLookUp: () => void;
  waitUntil: (work: Promise<unknown>) => void;
};

/** What the JWTs of a workspace's own users are verified with. */
const ownUsersOf = (env: Env, ids: Ids, { now, waitUntil }: Options): OwnUsers => ({
  now: () => now,
  fetch: (...request) => globalThis.fetch(...request),
  allowLoopback: env.ENVIRONMENT === "development",
  waitUntil,
  isWorkspace: (id) => ids.isIssued("wsp", id),
  authOf: (id) => authOf(env.WORKSPACE.getByName(id), id),
  entityOf: async (id, subject) =>
    unwrap(await env.WORKSPACE.getByName(id).entityOfSubject({ ...subject, newId: ids.mint("ent") })),
});

/**
 * Authenticates a request; throws `foreign_origin`, `signed_in`, `unauthorized` or `token_expired`. An invented key or token wakes no object.
 * `beforeLookUp` runs before anything is looked up or compared for a bearer that cannot be proven here; it may throw.
 */
export const authenticate = async (request: Request, env: Env, ids: Ids, options: Options): Promise<Caller> => {
  const { bearer, isSession, actingEntityId, workspaceId } = credentialsOf(
    request,
    options.allowQueryToken,
    env.PUBLIC_ORIGIN,
  );
  if (bearer === undefined) {
    const detail = "Send Authorization: Bearer with a secret key (sk_…) or an entity's token.";
    throw new ColloquyError("unauthorized", detail);
  }
  const isKey = bearer.startsWith("sk_");
  const own = provenToken(env, bearer, options.now);
  const jwt = own || isSession || isKey ? undefined : jwtIn(bearer);
  const named = jwt
    ? [workspaceId, workspaceOfHost(env.WORKSPACE_HOSTS, request.url)].filter((one) => one !== undefined)
    : [];
  // A token that is proven is not the operator's key, so it is not compared with it.
  const proven = own ?? (jwt && provenJwt(bearer, named, options.now));
  if (!proven && !isProvable(bearer)) options.beforeLookUp();
  if (!proven && isOperator(env.ADMIN_KEY, bearer)) return { kind: "operator" };
  if (isKey) return keyCaller(env, ids, bearer, actingEntityId);
  if (jwt && !proven) options.beforeLookUp();
  const claims =
    proven ??
    (await (jwt ? verifyJwt(jwt, named, ownUsersOf(env, ids, options)) : verifyToken(env, ids, bearer, options.now)));
  if (actingEntityId !== undefined && actingEntityId !== claims.entityId) {
    if (isSession) throw sessionOfAnother();
    throw new ColloquyError("forbidden", "An entity acts only as itself: leave out X-Entity-Id.");
  }
  try {
    return await entityCaller(env, claims, isSession);
  } catch (error) {
    forgetJwt(bearer, named);
    throw error;
  }
};
