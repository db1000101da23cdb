import { waitUntil } from "cloudflare:workers";
import { authenticate, type Caller } from "../auth/authenticate.ts";
import { addressOf, countRequest, requireRoom } from "../auth/rates.ts";
import { standingOf } from "../auth/verdicts.ts";
import { hasScope, type Principal } from "../protocol/principal.ts";
import type { KeyScope } from "../protocol/workspace.ts";
import { systemClock } from "../shared/clock.ts";
import { ColloquyError } from "../shared/errors.ts";
import type { HttpContext } from "./http-context.ts";

const key = [{ secretKey: [] }, { secretKeyHeader: [] }];
const keyOrToken = [...key, { entityToken: [] }, { sessionCookie: [] }];
const keyOrAnyToken = [...keyOrToken, { queryToken: [] }];

type Admission = {
  /** The callers and their credentials in the OpenAPI document. */
  who: string;
  security: Record<string, string[]>[];
  /** The entities that are admitted beside a secret key: those that the workspace still knows, its admins, or guest agents. */
  entities?: "known" | "admins" | "guests" | "none";
  /** Guest agents too. */
  guests?: true;
  queryToken?: true;
};

/** The callers that a route admits. The actor behind it may refuse more. */
export const accesses = {
  public: { who: "anybody", security: [] },
  /** The route itself looks at the cookie, or at a sign-in code. */
  session: { who: "anybody, from the page's own origin", security: [] },
  /** The route itself checks the signature. */
  signature: { who: "who holds the hook's secret", security: [] },
  operator: { who: "the operator", security: [{ operatorKey: [] }] },
  secretKey: { who: "the workspace's secret key", security: key, entities: "none" },
  workspace: {
    who: "the workspace's secret key, or an entity of role admin",
    security: keyOrToken,
    entities: "admins",
  },
  entity: { who: "the workspace's secret key, or an entity for itself", security: keyOrToken, entities: "known" },
  /** The entities of `entity`, and guest agents. */
  assistant: {
    ...{ who: "the workspace's secret key, or an entity or guest agent for itself", entities: "known", guests: true },
    security: [...keyOrToken, { guestToken: [] }],
  },
  /** The route itself looks whose runs they are. */
  guest: {
    who: "the workspace's secret key, or a guest agent for itself",
    security: [...key, { guestToken: [] }],
    entities: "guests",
  },
  guestStream: {
    ...{ who: "the workspace's secret key, or a guest agent for itself", entities: "guests", queryToken: true },
    security: [...key, { guestToken: [] }, { queryToken: [] }],
  },
  /** The space decides. */
  space: { who: "the workspace's secret key, or an entity in its spaces", security: keyOrToken },
  stream: { who: "a member of the space; a secret key acting as one", security: keyOrAnyToken, queryToken: true },
  line: { who: "a person; a secret key acting as one", security: keyOrAnyToken, queryToken: true },
  me: { who: "a person; a secret key acting as one", security: keyOrToken, entities: "known" },
  watch: {
    ...{ who: "the workspace's secret key, or an entity of role admin", security: keyOrAnyToken },
    ...{ entities: "admins", queryToken: true },
  },
} as const satisfies Record<string, Admission>;
export type Access = keyof typeof accesses;

export const isGuarded = (access: Access): boolean => !["public", "session", "signature"].includes(access);

/** Counts a request of a route that anybody may ask, under its address. */
export const countPublic = (context: HttpContext): void =>
  countRequest({ env: context.env, waitUntil }, "public", addressOf(context.req.raw));

/**
 * Does `work`, which refuses wrong credentials by `unauthorized`: they are counted under the address. After too many of
 * them `beforeLookUp` throws.
 */
export const countingStrangers = async <T>(
  { env, req }: HttpContext,
  work: (beforeLookUp: () => void) => Promise<T>,
): Promise<T> => {
  const counting = { env, waitUntil };
  const address = addressOf(req.raw);
  try {
    return await work(() => requireRoom(counting, "stranger", address));
  } catch (error) {
    if (error instanceof ColloquyError && error.code === "unauthorized") countRequest(counting, "stranger", address);
    throw error;
  }
};

/** The scopes, beside `full`, of the keys that a request is for. */
export const scopesOf = (method: string, scope: KeyScope | KeyScope[] = []): KeyScope[] => [
  ...(method === "GET" ? (["read"] as const) : []),
  ...[scope].flat(),
];

/** Throws `forbidden` for a key that none of its scopes lets in. */
const requireScope = (principal: Principal, meant: KeyScope[]): void => {
  if (principal.kind !== "key" || hasScope(principal, ...meant)) return;
  const own = (principal.scopes ?? []).join(", ");
  throw new ColloquyError(
    "forbidden",
    `This secret key has the scope ${own} only: use one of scope ${["full", ...meant].join(" or ")} for this.`,
  );
};

/** The caller as the route admits it. A token stops when its entity is removed, which its workspace knows. */
const admitted = async (
  context: HttpContext,
  { entities, guests }: Admission,
  principal: Principal,
): Promise<Principal> => {
  if (principal.kind === "key") return principal;
  if ((entities === "guests" || guests) && principal.guest) return principal;
  if (entities === "guests") {
    const detail =
      "Only the workspace's secret key may do that, or the guest agent itself by a token from POST /v1/tokens.";
    throw new ColloquyError("forbidden", detail);
  }
  if (principal.guest) {
    throw new ColloquyError(
      "forbidden",
      "A guest agent's token is for its runs: POST /v1/agents/{id}/claims gives them.",
    );
  }
  if (entities === undefined) return principal;
  if (entities === "none") {
    throw new ColloquyError("forbidden", "Only the workspace's secret key may do that, not an entity's token.");
  }
  const { workspaceId, entityId } = principal;
  const standing = await standingOf(context.env.WORKSPACE.getByName(workspaceId), workspaceId, entityId);
  if (!standing) throw new ColloquyError("unauthorized", "The token's entity is not in its workspace any more.");
  const admin = standing.role === "admin";
  if (admin || entities === "known") return { ...principal, admin };
  throw new ColloquyError("forbidden", "Only the workspace's secret key or an entity of role admin may do that.");
};

/**
 * Authenticates the caller and counts the request: under the caller, or, if the credentials are wrong, under the
 * address. After too many wrong ones from an address nothing is looked up for it any more; a token still proves itself.
 */
const callerOf = (context: HttpContext, allowQueryToken: boolean): Promise<Caller> =>
  countingStrangers(context, async (beforeLookUp) => {
    const { env, req } = context;
    const options = { allowQueryToken, now: systemClock.now(), beforeLookUp, waitUntil };
    const caller = await authenticate(req.raw, env, context.get("ids"), options);
    const counting = { env, waitUntil };
    if (caller.kind === "entity") countRequest(counting, "entity", caller.entityId);
    else countRequest(counting, "key", caller.kind === "key" ? caller.keyId : caller.kind);
    return caller;
  });

/** Throws once the caller of a socket would not be let in any more. It is no request, and is not counted. */
export const requireStill = async (context: HttpContext, access: Access): Promise<void> => {
  const admission: Admission = accesses[access];
  const { env, req } = context;
  const options = { allowQueryToken: admission.queryToken === true, now: systemClock.now(), waitUntil };
  const caller = await authenticate(req.raw, env, context.get("ids"), { ...options, beforeLookUp: () => undefined });
  if (caller.kind !== "operator") await admitted(context, admission, caller);
};

/** Lets the caller of a guarded route in, as the context's `principal`, or throws the refusal. */
export const admit = async (context: HttpContext, access: Access, scopes: KeyScope[]): Promise<void> => {
  const admission: Admission = accesses[access];
  const caller = await callerOf(context, admission.queryToken === true);
  if (access === "operator" && caller.kind === "operator") return;
  if (access === "operator") {
    throw new ColloquyError("forbidden", "Only the operator may do that: send ADMIN_KEY as the bearer.");
  }
  if (caller.kind === "operator") {
    throw new ColloquyError("forbidden", "The operator has no place inside a workspace: use its secret key.");
  }
  requireScope(caller, scopes);
  context.set("principal", await admitted(context, admission, caller));
};
