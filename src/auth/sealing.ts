import { deriveKey } from "../shared/ids.ts";
import { openedByAny, type RingEnv, ringOf } from "../shared/secret-ring.ts";

/**
 * Sealing of workspace secrets: AES-256-GCM under a key of the workspace, drawn from the ring's first secret. The name is
 * bound in, so that a sealed value cannot be moved to another name or another workspace.
 *
 * What is sealed says by which secret: `v1.<iv>.<body>.<the secret's print>`. Of what was sealed without a print, each
 * secret of the ring is tried.
 */
const version = "v1";

/** The name that a hook's secrets are sealed under. No other hook and no workspace secret has it. */
export const hookSecretName = (id: string): string => `hook:${id}`;

const ivBytes = 12;

const keyOf = (secret: string, workspaceId: string): Promise<CryptoKey> =>
  crypto.subtle.importKey("raw", deriveKey(secret, `sealing:${workspaceId}`), "AES-GCM", false, ["encrypt", "decrypt"]);

const boundTo = (workspaceId: string, name: string): Uint8Array =>
  new TextEncoder().encode(JSON.stringify([workspaceId, name]));

/** Encrypts a secret for storage. The same plaintext never seals to the same text. */
export const seal = async (env: RingEnv, workspaceId: string, name: string, plaintext: string): Promise<string> => {
  const { secret, print } = ringOf(env).first;
  const iv = crypto.getRandomValues(new Uint8Array(ivBytes));
  const sealed = await crypto.subtle.encrypt(
    { name: "AES-GCM", iv, additionalData: boundTo(workspaceId, name) },
    await keyOf(secret, workspaceId),
    new TextEncoder().encode(plaintext),
  );
  return [version, Buffer.from(iv).toString("base64url"), Buffer.from(sealed).toString("base64url"), print].join(".");
};

/** Decrypts it. Throws where the text was sealed for another workspace, another name, or with a secret that is not in the ring. */
export const unseal = async (env: RingEnv, workspaceId: string, name: string, sealed: string): Promise<string> => {
  const [form, iv, body, print] = sealed.split(".");
  if (form !== version || !iv || !body) throw new Error("the sealed secret has an unknown form");
  const { secrets } = ringOf(env);
  const fitting = print === undefined ? secrets : secrets.filter((each) => each.print === print);
  const plaintext = await openedByAny(fitting, async (secret) =>
    crypto.subtle.decrypt(
      { name: "AES-GCM", iv: Buffer.from(iv, "base64url"), additionalData: boundTo(workspaceId, name) },
      await keyOf(secret, workspaceId),
      Buffer.from(body, "base64url"),
    ),
  );
  return new TextDecoder().decode(plaintext);
};

/** Whether it is sealed by the ring's first secret, and says so. */
export const isSealedAnew = (env: RingEnv, sealed: string): boolean => sealed.split(".")[3] === ringOf(env).first.print;

/** The same secret, sealed by the ring's first. Throws where none of the ring opens it. */
export const resealed = async (env: RingEnv, workspaceId: string, name: string, sealed: string): Promise<string> =>
  isSealedAnew(env, sealed) ? sealed : seal(env, workspaceId, name, await unseal(env, workspaceId, name, sealed));
