import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { deriveKey } from "../shared/ids.ts";

/** The credentials of a request, not yet verified. */
export type Credentials = { bearer: string | undefined; actingEntityId: string | undefined };

const bearerPattern = /^Bearer +(\S+) *$/i;
/** The form of a token; no key has it. */
export const tokenPattern = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/**
 * `Authorization: Bearer …`, else `x-secret-key`, else `?token=` where `allowQueryToken` is set. Browsers cannot set
 * headers on sockets and event sources; tokens in other addresses would end in logs. A query holds only what expires: an
 * entity's token, never a key.
 */
export const credentialsOf = (request: Request, allowQueryToken: boolean): Credentials => {
  const { headers } = request;
  const actingEntityId = headers.get("x-entity-id")?.trim() || undefined;
  const authorization = headers.get("authorization");
  if (authorization !== null) return { bearer: bearerPattern.exec(authorization)?.[1], actingEntityId };
  const secretKey = headers.get("x-secret-key")?.trim();
  if (secretKey) return { bearer: secretKey.startsWith("sk_") ? secretKey : undefined, actingEntityId };
  const token = allowQueryToken ? new URL(request.url).searchParams.get("token") : null;
  return { bearer: token && tokenPattern.test(token) ? token : undefined, actingEntityId };
};

const digest = (text: string): Uint8Array => createHash("sha256").update(text).digest();

/** Whether two texts are the same, in time that tells nothing of either. */
export const sameText = (one: string, other: string): boolean => timingSafeEqual(digest(one), digest(other));

/** Whether `presented` is the operator's key, in time that tells nothing. Without a key set, nobody is the operator. */
export const isOperator = (adminKey: string | undefined, presented: string): boolean =>
  adminKey !== undefined && adminKey !== "" && sameText(adminKey, presented);

/** `sk_<workspaceId>_<secret>`: it says which workspace to ask, and is stored there only as a hash. */
const secretKeyPattern = /^sk_(wsp_[0-9A-HJKMNP-TV-Z]{34})_([A-Za-z0-9_-]{43})$/;
const secretBytes = 32;

export const hashSecretKey = (key: string): string => createHash("sha256").update(key).digest("hex");

/** The workspace that a well-formed key names; whether it was issued and lives is still to be asked. */
export const workspaceOfSecretKey = (key: string): string | undefined => secretKeyPattern.exec(key)?.[1];

const secretKey = (workspaceId: string, secret: Uint8Array): string =>
  `sk_${workspaceId}_${Buffer.from(secret).toString("base64url")}`;

export const mintSecretKey = (workspaceId: string): string => secretKey(workspaceId, randomBytes(secretBytes));

/** The key that always follows from its id: what a repeated request with an `Idempotency-Key` gets again. */
export const deriveSecretKey = (signingSecret: string, workspaceId: string, keyId: string): string =>
  secretKey(workspaceId, deriveKey(signingSecret, `secret-key:${keyId}`, secretBytes));
