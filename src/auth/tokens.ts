import { decodeJwt, errors, jwtVerify, SignJWT } from "jose";
import * as z from "zod";
import type { Credential } from "../protocol/principal.ts";
import { ColloquyError } from "../shared/errors.ts";
import { deriveKey, type Ids } from "../shared/ids.ts";
import { openedByAny, type Ring, type RingEnv, ringOf } from "../shared/secret-ring.ts";

/**
 * Entity tokens: HS256 under a key of the workspace, by the ring's first secret. The signature is verified without I/O.
 *
 * `sub` is the entity, `wsp` the workspace, `exp` the expiry. The rest is what it hangs on (`Credential`):
 * `gen` is the entity's generation, `igen` that of the admin who made it for the entity (`impersonated`).
 * `kid` is the secret key, `aid` the setting by whose JWT it was made.
 * `sub` of a guest agent's token has `guest:` in front: it is for its runs alone, and no worker that does not know of it takes it.
 * A token with `sid` is a session of the page. It counts only as a cookie, and while that session lives.
 *
 * Invariants
 * 1. A token with a valid signature is remembered, so its signature is computed once. Its expiry is checked each time.
 *    An invalid token is never remembered.
 */
const algorithm = "HS256";
const maxProven = 10_000;
/** The form of a token; no key has it. */
export const tokenPattern = /^[\w-]+\.[\w-]+\.[\w-]+$/;
const Claims = z.object({
  sub: z.string(),
  wsp: z.string(),
  exp: z.number(),
  gen: z.int().exactOptional(),
  kid: z.string().exactOptional(),
  impersonated: z.string().exactOptional(),
  igen: z.int().exactOptional(),
  sid: z.string().exactOptional(),
  aid: z.string().exactOptional(),
});

const guestMark = "guest:";

const keyOf = (secret: string, workspaceId: string): Uint8Array => deriveKey(secret, `entity-token:${workspaceId}`);

/** `expiresAt` in milliseconds since the epoch; it is kept to the millisecond. */
export const mintToken = (env: RingEnv, claims: Proven & { issuedAt: number }): Promise<string> =>
  new SignJWT({
    ...{
      wsp: claims.workspaceId,
      sub: (claims.guest ? guestMark : "") + claims.entityId,
      exp: claims.expiresAt / 1000,
    },
    ...(claims.generation && { gen: claims.generation }),
    ...(claims.keyId !== undefined && { kid: claims.keyId }),
    ...(claims.impersonatedBy !== undefined && { impersonated: claims.impersonatedBy }),
    ...(claims.impersonatorGeneration && { igen: claims.impersonatorGeneration }),
    ...(claims.sessionId !== undefined && { sid: claims.sessionId }),
    ...(claims.authId !== undefined && { aid: claims.authId }),
  })
    .setProtectedHeader({ alg: algorithm, typ: "JWT" })
    .setIssuedAt(Math.floor(claims.issuedAt / 1000))
    .sign(keyOf(ringOf(env).first.secret, claims.workspaceId));

const refusal = (cause?: unknown): ColloquyError =>
  new ColloquyError("unauthorized", "The token is not valid: get a new one from POST /v1/tokens.", { cause });

const expired = (): ColloquyError =>
  new ColloquyError("token_expired", "The token has expired: get a new one from POST /v1/tokens.");

/** `guest`: it is of a guest agent. */
export type Proven = Credential & { workspaceId: string; expiresAt: number; guest?: true };

let remembered: { ring: Ring; proven: Map<string, Proven> } | undefined;

/** The tokens that were verified under this ring. */
const provenUnder = (env: RingEnv): Map<string, Proven> => {
  const ring = ringOf(env);
  if (remembered?.ring !== ring) remembered = { ring, proven: new Map() };
  return remembered.proven;
};

/** The claims of a token that was verified before and has not expired. Computes nothing. */
export const provenToken = (env: RingEnv, token: string, now: number): Proven | undefined => {
  const known = provenUnder(env).get(token);
  return known && known.expiresAt > now ? known : undefined;
};

/** The claims of a token with a valid signature. The unverified `wsp` only chooses the key. */
const claimsOf = async (env: RingEnv, ids: Ids, token: string, now: number): Promise<z.infer<typeof Claims>> => {
  try {
    const { wsp } = Claims.parse(decodeJwt(token));
    if (!ids.isIssued("wsp", wsp)) throw refusal();
    const options = { algorithms: [algorithm], currentDate: new Date(now) };
    const { payload } = await openedByAny(ringOf(env).secrets, (secret) =>
      jwtVerify(token, keyOf(secret, wsp), options),
    );
    return Claims.parse(payload);
  } catch (error) {
    throw error instanceof errors.JWTExpired ? expired() : refusal(error);
  }
};

/** The claims of a token; throws `unauthorized` or `token_expired`. */
export const verifyToken = async (env: RingEnv, ids: Ids, token: string, now: number): Promise<Proven> => {
  const { sub, wsp, exp, gen, kid, impersonated, igen, sid, aid } = await claimsOf(env, ids, token, now);
  const isGuest = sub.startsWith(guestMark);
  const entityId = isGuest ? sub.slice(guestMark.length) : sub;
  if (!ids.isIssued("ent", entityId)) throw refusal();
  const expiresAt = Math.round(exp * 1000);
  if (expiresAt <= now) throw expired();
  const proven = provenUnder(env);
  if (proven.size >= maxProven) proven.clear();
  const found = {
    ...{ workspaceId: wsp, entityId, expiresAt },
    ...(isGuest && { guest: true as const }),
    ...(gen !== undefined && { generation: gen }),
    ...(kid !== undefined && { keyId: kid }),
    ...(igen !== undefined && { impersonatorGeneration: igen }),
    ...(impersonated !== undefined && { impersonatedBy: impersonated }),
    ...(sid !== undefined && { sessionId: sid }),
    ...(aid !== undefined && { authId: aid }),
  };
  proven.set(token, found);
  return found;
};
