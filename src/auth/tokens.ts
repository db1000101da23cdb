import { decodeJwt, errors, jwtVerify, SignJWT } from "jose";
import { z } from "zod";
import { ColloquyError } from "../shared/errors.ts";
import { deriveKey, type Ids } from "../shared/ids.ts";

/** Entity tokens: HS256 under a key of the workspace; `sub` entity, `wsp` workspace, `exp`. Verified without I/O. */
const algorithm = "HS256";
const Claims = z.object({ sub: z.string(), wsp: z.string(), exp: z.number() });

const keyOf = (signingSecret: string, workspaceId: string): Uint8Array =>
  deriveKey(signingSecret, `entity-token:${workspaceId}`);

/** `expiresAt` in milliseconds since the epoch; it is kept to the millisecond. */
export const mintToken = (
  signingSecret: string,
  claims: { workspaceId: string; entityId: string; issuedAt: number; expiresAt: number },
): Promise<string> =>
  new SignJWT({ wsp: claims.workspaceId, sub: claims.entityId, exp: claims.expiresAt / 1000 })
    .setProtectedHeader({ alg: algorithm, typ: "JWT" })
    .setIssuedAt(Math.floor(claims.issuedAt / 1000))
    .sign(keyOf(signingSecret, claims.workspaceId));

const refusal = (cause?: unknown): ColloquyError =>
  new ColloquyError("unauthorized", "The token is not valid: get a new one from POST /v1/tokens.", { cause });

const expired = (): ColloquyError =>
  new ColloquyError("token_expired", "The token has expired: get a new one from POST /v1/tokens.");

const claimsOf = (payload: unknown): z.infer<typeof Claims> => {
  const claims = Claims.safeParse(payload);
  if (!claims.success) throw refusal();
  return claims.data;
};

const decoded = (token: string): unknown => {
  try {
    return decodeJwt(token);
  } catch (error) {
    throw refusal(error);
  }
};

/** Whose token it is; throws `unauthorized` or `token_expired`. The unverified `wsp` only chooses the key. */
export const verifyToken = async (
  signingSecret: string,
  ids: Ids,
  token: string,
  now: number,
): Promise<{ workspaceId: string; entityId: string; expiresAt: number }> => {
  const { wsp } = claimsOf(decoded(token));
  if (!ids.isIssued("wsp", wsp)) throw refusal();
  const payload = await jwtVerify(token, keyOf(signingSecret, wsp), {
    algorithms: [algorithm],
    currentDate: new Date(now),
  }).then(
    (verified) => verified.payload,
    (error: unknown) => {
      throw error instanceof errors.JWTExpired ? expired() : refusal(error);
    },
  );
  const claims = claimsOf(payload);
  if (!ids.isIssued("ent", claims.sub)) throw refusal();
  const expiresAt = Math.round(claims.exp * 1000);
  if (expiresAt <= now) throw expired();
  return { workspaceId: claims.wsp, entityId: claims.sub, expiresAt };
};
