import { hostOf, SecretBounds, type SecretUse } from "../protocol/secret.ts";
import { ColloquyError } from "../shared/errors.ts";
import { deriveKey } from "../shared/ids.ts";
import { openedByAny, type RingEnv, ringOf } from "../shared/secret-ring.ts";

/**
 * Sealing of workspace secrets: AES-256-GCM under a key of the workspace, drawn from the ring's first secret. The name is
 * bound in, so that a sealed value cannot be moved to another name or another workspace.
 *
 * What is sealed says by which secret: `v1.<iv>.<body>.<the secret's print>`. Of what was sealed without a print, each
 * secret of the ring is tried. A fifth part says where and by whom it may be used: it opens as it was written alone.
 */
const version = "v1";

/** The names that a hook's or an endpoint's secrets are sealed under. No other and no workspace secret has them. */
export const hookSecretName = (id: string): string => `hook:${id}`;
export const endpointSecretName = (id: string): string => `endpoint:${id}`;

const ivBytes = 12;

const keyOf = (secret: string, workspaceId: string): Promise<CryptoKey> =>
  crypto.subtle.importKey("raw", deriveKey(secret, `sealing:${workspaceId}`), "AES-GCM", false, ["encrypt", "decrypt"]);

const boundTo = (workspaceId: string, name: string, bounds?: string): Uint8Array =>
  new TextEncoder().encode(JSON.stringify([workspaceId, name, ...(bounds === undefined ? [] : [bounds])]));

/** Encrypts a secret for storage. The same plaintext never seals to the same text. */
export const seal = async (
  env: RingEnv,
  workspaceId: string,
  name: string,
  plaintext: string,
  bounds: SecretBounds = {},
): Promise<string> => {
  const isBound = bounds.hosts !== undefined || bounds.agents !== undefined;
  const bound = isBound ? Buffer.from(JSON.stringify(bounds)).toString("base64url") : undefined;
  const { secret, print } = ringOf(env).first;
  const iv = crypto.getRandomValues(new Uint8Array(ivBytes));
  const sealed = await crypto.subtle.encrypt(
    { name: "AES-GCM", iv, additionalData: boundTo(workspaceId, name, bound) },
    await keyOf(secret, workspaceId),
    new TextEncoder().encode(plaintext),
  );
  const parts = [Buffer.from(iv), Buffer.from(sealed)].map((part) => part.toString("base64url"));
  return [version, ...parts, print, ...(bound === undefined ? [] : [bound])].join(".");
};

/** Decrypts it. Throws where the text was sealed for another workspace, another name, or with a secret that is not in the ring. */
export const unseal = async (env: RingEnv, workspaceId: string, name: string, sealed: string): Promise<string> => {
  const [form, iv, body, print, bound] = sealed.split(".");
  if (form !== version || !iv || !body) throw new Error("the sealed secret has an unknown form");
  const { secrets } = ringOf(env);
  const fitting = print === undefined ? secrets : secrets.filter((each) => each.print === print);
  const plaintext = await openedByAny(fitting, async (secret) =>
    crypto.subtle.decrypt(
      { name: "AES-GCM", iv: Buffer.from(iv, "base64url"), additionalData: boundTo(workspaceId, name, bound) },
      await keyOf(secret, workspaceId),
      Buffer.from(body, "base64url"),
    ),
  );
  return new TextDecoder().decode(plaintext);
};

/** Where and by whom a sealed secret may be used. It opens only if nobody has changed that. */
export const boundsOf = (sealed: string): SecretBounds => {
  const bound = sealed.split(".")[4];
  return bound === undefined ? {} : SecretBounds.parse(JSON.parse(Buffer.from(bound, "base64url").toString()));
};

/**
 * The secret, for one use. Throws what stands against it: `tool_misconfigured` or `model_misconfigured`, which names the
 * secret and the remedy.
 */
export const unsealFor = (
  env: RingEnv,
  workspaceId: string,
  name: string,
  sealed: string,
  { kind, url, agentId }: SecretUse & { agentId: string | undefined },
): Promise<string> => {
  const { hosts, agents } = boundsOf(sealed);
  const host = hostOf(url);
  const change = `write it again with PUT /v1/workspace/secrets/${name}`;
  const code = kind === "tool" || kind === "mcp" ? "tool_misconfigured" : "model_misconfigured";
  if (hosts && !hosts.includes(host)) {
    const detail = `The secret "${name}" may not be sent to ${host}, only to ${hosts.join(", ")}: point it there, or ${change} and more hosts.`;
    throw new ColloquyError(code, detail);
  }
  if (agents && (agentId === undefined || !agents.includes(agentId))) {
    const who = agentId === undefined ? "a space's router" : "this agent";
    throw new ColloquyError(code, `The secret "${name}" is not for ${who}: use another, or ${change} and more agents.`);
  }
  return unseal(env, workspaceId, name, sealed);
};

/** Whether it is sealed by the ring's first secret, and says so. */
export const isSealedAnew = (env: RingEnv, sealed: string): boolean => sealed.split(".")[3] === ringOf(env).first.print;

/** The same secret, sealed by the ring's first. Throws where none of the ring opens it. */
export const resealed = async (env: RingEnv, workspaceId: string, name: string, sealed: string): Promise<string> =>
  isSealedAnew(env, sealed)
    ? sealed
    : seal(env, workspaceId, name, await unseal(env, workspaceId, name, sealed), boundsOf(sealed));
