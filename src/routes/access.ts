import { waitUntil } from "cloudflare:workers";
import type { MiddlewareHandler } from "hono";
import { createMiddleware } from "hono/factory";
import { authenticate, type Caller } from "../auth/authenticate.ts";
import { addressOf, type Counting, countRequest, requireRoom } from "../auth/rates.ts";
import { standingOf } from "../auth/verdicts.ts";
import type { IdPrefix, OwnedPrefix } from "../protocol/ids.ts";
import type { Principal } from "../protocol/principal.ts";
import { systemClock } from "../shared/clock.ts";
import { ColloquyError } from "../shared/errors.ts";
import type { Ids } from "../shared/ids.ts";
import type { House } from "./house.ts";
import { soundBody } from "./sound-body.ts";

/**
 * Who may call a route at all; what is behind it may refuse more.
 * - `operator`: the deployment's operator only
 * - `secretKey`: a workspace's secret key only
 * - `workspace`: a secret key, or an entity of role `admin`
 * - `entity`: a secret key or any entity; the workspace is asked for its standing
 * - `space`: a secret key or any entity; the space is who knows
 * - `stream`: as `space`, and a token may stand in the query
 * - `watch`: as `workspace`, and a token may stand in the query
 */
export type Access = "operator" | "secretKey" | "workspace" | "entity" | "space" | "stream" | "watch";

const key = [{ secretKey: [] }, { secretKeyHeader: [] }];
const security: Record<Access, Record<string, string[]>[]> = {
  operator: [{ operatorKey: [] }],
  secretKey: key,
  workspace: [...key, { entityToken: [] }],
  entity: [...key, { entityToken: [] }],
  space: [...key, { entityToken: [] }],
  stream: [...key, { entityToken: [] }, { queryToken: [] }],
  watch: [...key, { entityToken: [] }, { queryToken: [] }],
};

const who: Record<Access, string> = {
  operator: "the operator",
  secretKey: "the workspace's secret key",
  workspace: "the workspace's secret key, or an entity of role admin",
  entity: "the workspace's secret key, or an entity for itself",
  space: "the workspace's secret key, or an entity in its spaces",
  stream: "a member of the space; a secret key acting as one",
  watch: "the workspace's secret key, or an entity of role admin",
};

/** The entity as its workspace knows it now: its token stops when it is removed, and it may be an admin. */
const withStanding = async (env: House["Bindings"], principal: Principal): Promise<Principal> => {
  if (principal.kind === "key") return principal;
  const { workspaceId, entityId } = principal;
  const standing = await standingOf(env.WORKSPACE.getByName(workspaceId), workspaceId, entityId);
  if (!standing) throw new ColloquyError("unauthorized", "The token's entity is not in its workspace any more.");
  return { ...principal, admin: standing.role === "admin" };
};

const admit = async (env: House["Bindings"], level: Access, principal: Principal): Promise<Principal> => {
  switch (level) {
    case "operator":
      throw new ColloquyError("forbidden", "Only the operator may do that: send ADMIN_KEY as the bearer.");
    case "secretKey":
      if (principal.kind === "key") return principal;
      throw new ColloquyError("forbidden", "Only the workspace's secret key may do that, not an entity's token.");
    case "workspace":
    case "watch": {
      const known = await withStanding(env, principal);
      if (known.kind === "key" || known.admin) return known;
      throw new ColloquyError("forbidden", "Only the workspace's secret key or an entity of role admin may do that.");
    }
    case "entity":
      return withStanding(env, principal);
    case "space":
    case "stream":
      return principal;
  }
};

/**
 * Who calls, counted: by whose they are, or, if they are wrong, by where they come from. An address that was wrong too
 * often gets nothing looked up or compared any more; what can be proven without that is taken from it as ever.
 */
const callerOf = async (request: Request, ids: Ids, counting: Counting, level: Access): Promise<Caller> => {
  const address = addressOf(request);
  try {
    const caller = await authenticate(request, counting.env, ids, {
      allowQueryToken: level === "stream" || level === "watch",
      now: systemClock.now(),
      beforeLookUp: () => requireRoom(counting, "stranger", address),
    });
    countCaller(counting, caller);
    return caller;
  } catch (error) {
    if (error instanceof ColloquyError && error.code === "unauthorized") countRequest(counting, "stranger", address);
    throw error;
  }
};

const countCaller = (counting: Counting, caller: Caller): void => {
  if (caller.kind === "entity") countRequest(counting, "entity", caller.entityId);
  else countRequest(counting, "key", caller.kind === "key" ? caller.keyId : caller.kind);
};

const admission = (level: Access): MiddlewareHandler<House> =>
  createMiddleware<House>(async (context, next) => {
    const caller = await callerOf(context.req.raw, context.var.ids, { env: context.env, waitUntil }, level);
    if (caller.kind !== "operator") context.set("principal", await admit(context.env, level, caller));
    else if (level !== "operator") {
      throw new ColloquyError("forbidden", "The operator has no place inside a workspace: use its secret key.");
    }
    await next();
  });

const pathPrefixes: Record<string, IdPrefix> = {
  agentId: "ent",
  otherAgentId: "ent",
  entityId: "ent",
  spaceId: "spc",
  keyId: "key",
  toolCallId: "tc",
};
/** Things that live inside the agent or the space that the path names before them. */
const owned: Record<string, { prefix: OwnedPrefix; by: "agentId" | "spaceId" }> = {
  runId: { prefix: "run", by: "agentId" },
  eventId: { prefix: "evt", by: "agentId" },
  messageId: { prefix: "msg", by: "spaceId" },
  hookId: { prefix: "hook", by: "agentId" },
  archivalId: { prefix: "arch", by: "agentId" },
};

/** Ids in the path that were not issued here lead nowhere, before any actor is asked (S6). */
const issuedPath: MiddlewareHandler<House> = createMiddleware<House>(async (context, next) => {
  const { ids } = context.var;
  const parameters: Record<string, string> = context.req.param();
  for (const [name, id] of Object.entries(parameters)) {
    const prefix = pathPrefixes[name];
    const inside = owned[name];
    const isHere =
      inside === undefined
        ? prefix === undefined || ids.isIssued(prefix, id)
        : ids.isIssued(inside.prefix, id) && ids.ownerOf(inside.prefix, id) === parameters[inside.by];
    if (!isHere) throw new ColloquyError("not_found", `There is nothing with this ${name}.`);
  }
  await next();
});

type Guard = { security: Record<string, string[]>[]; middleware: MiddlewareHandler<House>[]; "x-who": string };

/** The part of a route's definition that says who may call it, and enforces it before anything else is read. */
export const access = (level: Access, { streamed = false } = {}): Guard => ({
  security: security[level],
  // A body that is read as it arrives is made sure of as it is read.
  middleware: [admission(level), issuedPath, ...(streamed ? [] : [soundBody])],
  "x-who": who[level],
});

/** Of a route that anybody may call. */
export const open: { security: Record<string, string[]>[]; "x-who": string } = { security: [], "x-who": "anybody" };

/** Of a route whose caller's signature is checked by what it names. */
export const bySignature: { security: Record<string, string[]>[]; "x-who": string } = {
  security: [],
  "x-who": "who holds the hook's secret",
};
