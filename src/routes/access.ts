import { waitUntil } from "cloudflare:workers";
import { authenticate, type Caller } from "../auth/authenticate.ts";
import { addressOf, countRequest, requireRoom } from "../auth/rates.ts";
import { standingOf } from "../auth/verdicts.ts";
import type { Principal } from "../protocol/principal.ts";
import { systemClock } from "../shared/clock.ts";
import { ColloquyError } from "../shared/errors.ts";
import type { HttpContext } from "./http-context.ts";

/**
 * The callers that a route admits. The actor behind it may refuse more.
 * - `public`: anybody
 * - `signature`: the sender of a webhook, whose signature the route itself checks
 * - `operator`: the deployment's operator only
 * - `secretKey`: a workspace's secret key only
 * - `workspace`: a secret key, or an entity of role `admin`
 * - `entity`: a secret key or any entity; the workspace is asked for its standing
 * - `space`: a secret key or any entity; the space decides
 * - `stream`: as `space`, and a token may stand in the query
 * - `watch`: as `workspace`, and a token may stand in the query
 */
export type GuardedAccess = "operator" | "secretKey" | "workspace" | "entity" | "space" | "stream" | "watch";
export type Access = "public" | "signature" | GuardedAccess;

export const isGuarded = (access: Access): access is GuardedAccess => access !== "public" && access !== "signature";

const key = [{ secretKey: [] }, { secretKeyHeader: [] }];
const keyOrToken = [...key, { entityToken: [] }];
const keyOrAnyToken = [...keyOrToken, { queryToken: [] }];

/** Each access in the OpenAPI document. */
export const accessDocs: Record<Access, { who: string; security: Record<string, string[]>[] }> = {
  public: { who: "anybody", security: [] },
  signature: { who: "who holds the hook's secret", security: [] },
  operator: { who: "the operator", security: [{ operatorKey: [] }] },
  secretKey: { who: "the workspace's secret key", security: key },
  workspace: { who: "the workspace's secret key, or an entity of role admin", security: keyOrToken },
  entity: { who: "the workspace's secret key, or an entity for itself", security: keyOrToken },
  space: { who: "the workspace's secret key, or an entity in its spaces", security: keyOrToken },
  stream: { who: "a member of the space; a secret key acting as one", security: keyOrAnyToken },
  watch: { who: "the workspace's secret key, or an entity of role admin", security: keyOrAnyToken },
};

/** The entity as its workspace knows it now: its token stops when it is removed, and it may be an admin. */
const withStanding = async ({ env }: HttpContext, principal: Principal): Promise<Principal> => {
  if (principal.kind === "key") return principal;
  const { workspaceId, entityId } = principal;
  const standing = await standingOf(env.WORKSPACE.getByName(workspaceId), workspaceId, entityId);
  if (!standing) throw new ColloquyError("unauthorized", "The token's entity is not in its workspace any more.");
  return { ...principal, admin: standing.role === "admin" };
};

const principalAt = async (context: HttpContext, access: GuardedAccess, principal: Principal): Promise<Principal> => {
  switch (access) {
    case "operator":
      throw new ColloquyError("forbidden", "Only the operator may do that: send ADMIN_KEY as the bearer.");
    case "secretKey":
      if (principal.kind === "key") return principal;
      throw new ColloquyError("forbidden", "Only the workspace's secret key may do that, not an entity's token.");
    case "workspace":
    case "watch": {
      const known = await withStanding(context, principal);
      if (known.kind === "key" || known.admin) return known;
      throw new ColloquyError("forbidden", "Only the workspace's secret key or an entity of role admin may do that.");
    }
    case "entity":
      return withStanding(context, principal);
    case "space":
    case "stream":
      return principal;
  }
};

/**
 * Authenticates the caller and counts the request: under the caller, or, if the credentials are wrong, under the
 * address. After too many wrong ones from an address nothing is looked up for it any more; a token still proves itself.
 */
const callerOf = async ({ env, req: { raw }, var: { ids } }: HttpContext, access: GuardedAccess): Promise<Caller> => {
  const counting = { env, waitUntil };
  const address = addressOf(raw);
  try {
    const caller = await authenticate(raw, env, ids, {
      allowQueryToken: access === "stream" || access === "watch",
      now: systemClock.now(),
      beforeLookUp: () => requireRoom(counting, "stranger", address),
    });
    if (caller.kind === "entity") countRequest(counting, "entity", caller.entityId);
    else countRequest(counting, "key", caller.kind === "key" ? caller.keyId : caller.kind);
    return caller;
  } catch (error) {
    if (error instanceof ColloquyError && error.code === "unauthorized") countRequest(counting, "stranger", address);
    throw error;
  }
};

/** Lets the caller of a guarded route in, as the context's `principal`, or throws the refusal. */
export const admit = async (context: HttpContext, access: GuardedAccess): Promise<void> => {
  const caller = await callerOf(context, access);
  if (caller.kind !== "operator") context.set("principal", await principalAt(context, access, caller));
  else if (access !== "operator") {
    throw new ColloquyError("forbidden", "The operator has no place inside a workspace: use its secret key.");
  }
};
