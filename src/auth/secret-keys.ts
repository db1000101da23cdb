import { createHash, randomBytes } from "node:crypto";
import { deriveKey } from "../shared/ids.ts";

/** `sk_<workspaceId>_<secret>`: it says which workspace to ask, and is stored there only as a hash. */
const pattern = /^sk_(wsp_[0-9A-HJKMNP-TV-Z]{34})_([A-Za-z0-9_-]{43})$/;
const secretBytes = 32;

export const hashSecretKey = (secretKey: string): string => createHash("sha256").update(secretKey).digest("hex");

/** The workspace that a well-formed key names; whether it was issued and lives is still to be asked. */
export const workspaceOfSecretKey = (secretKey: string): string | undefined => pattern.exec(secretKey)?.[1];

const write = (workspaceId: string, secret: Uint8Array): string =>
  `sk_${workspaceId}_${Buffer.from(secret).toString("base64url")}`;

export const mintSecretKey = (workspaceId: string): string => write(workspaceId, randomBytes(secretBytes));

/** The key that always follows from its id: what a repeated request with an `Idempotency-Key` gets again. */
export const deriveSecretKey = (signingSecret: string, workspaceId: string, keyId: string): string =>
  write(workspaceId, deriveKey(signingSecret, `secret-key:${keyId}`, secretBytes));
