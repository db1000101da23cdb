import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { deriveKey } from "../shared/ids.ts";
import { requireOwnOrigin, sessionToken } from "./session-cookie.ts";
import { tokenPattern } from "./tokens.ts";

/** The credentials of a request, not yet verified. `isSession`: a browser's cookie, which it adds by itself. */
export type Credentials = {
  bearer: string | undefined;
  isSession?: true;
  actingEntityId: string | undefined;
  /** The workspace of a customer's JWT. */
  workspaceId: string | undefined;
};

const bearerPattern = /^Bearer +(\S+) *$/i;

/**
 * `Authorization: Bearer …`, else `x-secret-key`, else `?token=` where `allowQueryToken` is set. Browsers cannot set
 * headers on sockets and event sources: there `?as=` is `X-Entity-Id`, and `?workspace=` is `X-Workspace-Id`. Tokens in
 * other addresses would end in logs. A query holds only what expires: an entity's token, never a key. Without any of
 * these, the session's cookie counts. A browser adds it whoever's page asks: throws `foreign_origin`.
 */
export const credentialsOf = (request: Request, allowQueryToken: boolean, publicOrigin?: string): Credentials => {
  const { headers } = request;
  const inQuery = request.url.includes("?") ? new URL(request.url).searchParams : undefined;
  const query = allowQueryToken ? inQuery : undefined;
  const actingEntityId = headers.get("x-entity-id")?.trim() || query?.get("as") || undefined;
  const workspaceId = headers.get("x-workspace-id")?.trim() || inQuery?.get("workspace") || undefined;
  const named = { actingEntityId, workspaceId };
  const authorization = headers.get("authorization");
  if (authorization !== null) return { bearer: bearerPattern.exec(authorization)?.[1], ...named };
  const secretKey = headers.get("x-secret-key")?.trim();
  if (secretKey) return { bearer: secretKey.startsWith("sk_") ? secretKey : undefined, ...named };
  const token = query?.get("token");
  if (typeof token === "string") return { bearer: tokenPattern.test(token) ? token : undefined, ...named };
  const session = sessionToken(request, publicOrigin);
  if (session !== undefined) requireOwnOrigin(request, publicOrigin);
  return { bearer: session, isSession: true, ...named };
};

const digest = (text: string): Uint8Array => createHash("sha256").update(text).digest();

/** Whether two texts are the same, in time that tells nothing of either. */
export const sameText = (one: string, other: string): boolean => timingSafeEqual(digest(one), digest(other));

/** Whether `presented` is the operator's key, in time that tells nothing. Without a key set, nobody is the operator. */
export const isOperator = (adminKey: string | undefined, presented: string): boolean =>
  adminKey !== undefined && adminKey !== "" && sameText(adminKey, presented);

/**
 * `sk_<workspaceId>_<the key id's own part>_<secret>`: which workspace to ask, and which key to revoke if it leaks.
 * Only its hash is stored there. Keys of earlier versions have no part of their id.
 */
const secretKeyPattern = /^sk_(wsp_[0-9A-HJKMNP-TV-Z]{34})_(?:[0-9A-HJKMNP-TV-Z]{34}_)?([A-Za-z0-9_-]{43})$/;
const secretBytes = 32;

/** `si_<workspaceId>_<code>`: what a sign-in link holds, once. Like a key, it is stored only as a hash. */
const signInCodePattern = /^si_(wsp_[0-9A-HJKMNP-TV-Z]{34})_[A-Za-z0-9_-]{43}$/;

/** The hash of a secret key, or of a sign-in code. */
export const hashSecretKey = (key: string): string => createHash("sha256").update(key).digest("hex");

/** The workspace that a well-formed key names; whether it was issued and lives is still to be asked. */
export const workspaceOfSecretKey = (key: string): string | undefined => secretKeyPattern.exec(key)?.[1];

const secretKey = (workspaceId: string, keyId: string, secret: Uint8Array): string =>
  `sk_${workspaceId}_${keyId.slice("key_".length)}_${Buffer.from(secret).toString("base64url")}`;

/** The workspace that a well-formed code names. */
export const workspaceOfSignInCode = (code: string): string | undefined => signInCodePattern.exec(code)?.[1];

export const mintSignInCode = (workspaceId: string): string =>
  `si_${workspaceId}_${randomBytes(secretBytes).toString("base64url")}`;

export const mintSecretKey = (workspaceId: string, keyId: string): string =>
  secretKey(workspaceId, keyId, randomBytes(secretBytes));

/** The key that always follows from its id: what a repeated request with an `Idempotency-Key` gets again. */
export const deriveSecretKey = (secret: string, workspaceId: string, keyId: string): string =>
  secretKey(workspaceId, keyId, deriveKey(secret, `secret-key:${keyId}`, secretBytes));
