import { deriveKey } from "../shared/ids.ts";

/**
 * Sealing of workspace secrets: AES-256-GCM under a key of the workspace, drawn from SIGNING_SECRET. The name is
 * bound in, so that a sealed value cannot be moved to another name or another workspace.
 */
const version = "v1";
const ivBytes = 12;

const keyOf = (signingSecret: string, workspaceId: string): Promise<CryptoKey> =>
  crypto.subtle.importKey("raw", deriveKey(signingSecret, `sealing:${workspaceId}`), "AES-GCM", false, [
    "encrypt",
    "decrypt",
  ]);

const boundTo = (workspaceId: string, name: string): Uint8Array =>
  new TextEncoder().encode(JSON.stringify([workspaceId, name]));

/** Encrypts a secret for storage. The same plaintext never seals to the same text. */
export const seal = async (
  signingSecret: string,
  workspaceId: string,
  name: string,
  plaintext: string,
): Promise<string> => {
  const iv = crypto.getRandomValues(new Uint8Array(ivBytes));
  const sealed = await crypto.subtle.encrypt(
    { name: "AES-GCM", iv, additionalData: boundTo(workspaceId, name) },
    await keyOf(signingSecret, workspaceId),
    new TextEncoder().encode(plaintext),
  );
  return `${version}.${Buffer.from(iv).toString("base64url")}.${Buffer.from(sealed).toString("base64url")}`;
};

/** Decrypts it. Throws where the text was sealed for another workspace, another name, or with another secret. */
export const unseal = async (
  signingSecret: string,
  workspaceId: string,
  name: string,
  sealed: string,
): Promise<string> => {
  const [form, iv, body] = sealed.split(".");
  if (form !== version || !iv || !body) throw new Error("the sealed secret has an unknown form");
  const plaintext = await crypto.subtle.decrypt(
    { name: "AES-GCM", iv: Buffer.from(iv, "base64url"), additionalData: boundTo(workspaceId, name) },
    await keyOf(signingSecret, workspaceId),
    Buffer.from(body, "base64url"),
  );
  return new TextDecoder().decode(plaintext);
};
