import { createCipheriv, createHmac } from "node:crypto";
import * as z from "zod";
import type { Root } from "../protocol/rpc.ts";
import { ColloquyError } from "../shared/errors.ts";
import { deriveKey, type Ids } from "../shared/ids.ts";
import { openedByAny, type RingEnv, ringOf } from "../shared/secret-ring.ts";

/**
 * `Colloquy-Root`: the root of the run whose tool sends a request. What comes back to an agent with it goes on in that
 * root. So a chain through other people's servers stays one chain (B1).
 *
 * Invariants
 * 1. The same root, at the same time in the same workspace, is the same text while the ring's first secret is the same.
 *    So a replay of its call sends the same bytes.
 * 2. Nobody without a secret of the deployment can make one, read one, or use one in another workspace.
 * 3. It is good for `rootHeaderMs`, which is less time than an agent remembers a root. So keeping one gives no more
 *    wakes than its root has left.
 */
export const rootHeader = "colloquy-root";

/** How long a header may come back after its call was begun. */
export const rootHeaderMs = 24 * 60 * 60_000;

const version = "v2";
const nonceBytes = 12;
const Sealed = z.tuple([z.string(), z.enum(["person", "service", "plan", "agent"]), z.string().nullable(), z.int()]);

const keyOf = (secret: string, workspaceId: string): Uint8Array => deriveKey(secret, `root:${workspaceId}`);

/**
 * A root as open minds may know it. One that began in a confidential space gets an id that tells nothing of it. All
 * agents get the same id for it. A compartment counts by it too, so that the chain stays one (C9, C17).
 * `messageId`: the message that brings the root. It began there if it is its own root: one that began before the space
 * was confidential keeps its id.
 */
export const toldOutside = (
  { workspaceId, compartmentSpaceId: spaceId }: { workspaceId: string; compartmentSpaceId: string | null },
  ids: Pick<Ids, "isCompartment" | "deriveOwned">,
  root: Root,
  messageId?: string,
): Root => {
  // Another agent's compartment may have begun it there, by a plan.
  const isInside = spaceId !== null && (root.id === messageId || ids.isCompartment(root.id));
  return isInside ? { ...root, id: ids.deriveOwned("evt", workspaceId, "root", root.id) } : root;
};

/** Seals roots of a workspace. `at`: when the call was begun that sends it, in milliseconds since the epoch. */
export const rootSealer = (env: RingEnv, workspaceId: string): ((root: Root, at: number) => string) => {
  const { secret } = ringOf(env).first;
  const [key, nonceKey] = [keyOf(secret, workspaceId), deriveKey(secret, `root-nonce:${workspaceId}`)];
  return ({ id, kind, by }, at) => {
    const text = JSON.stringify([id, kind, by ?? null, at] satisfies z.infer<typeof Sealed>);
    // The nonce follows from the text: it is never used for another one.
    const iv = createHmac("sha256", nonceKey).update(text).digest().subarray(0, nonceBytes);
    const cipher = createCipheriv("aes-256-gcm", key, iv);
    const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]);
    return [version, iv.toString("base64url"), sealed.toString("base64url")].join(".");
  };
};

const refused = (message: string, cause?: unknown): ColloquyError => {
  const issues = [{ path: "Colloquy-Root", message }];
  return new ColloquyError("invalid_request", `The header Colloquy-Root ${message}.`, { issues, cause });
};

/** Opens a header. Throws where it was not made here. */
const unsealed = async (env: RingEnv, workspaceId: string, header: string): Promise<z.infer<typeof Sealed>> => {
  const [form, iv, body, ...more] = header.split(".");
  if (form !== version || !iv || !body || more.length > 0) throw new Error("it has an unknown form");
  const plain = await openedByAny(ringOf(env).secrets, async (secret) =>
    crypto.subtle.decrypt(
      { name: "AES-GCM", iv: Buffer.from(iv, "base64url") },
      await crypto.subtle.importKey("raw", keyOf(secret, workspaceId), "AES-GCM", false, ["decrypt"]),
      Buffer.from(body, "base64url"),
    ),
  );
  return Sealed.parse(JSON.parse(new TextDecoder().decode(plain)));
};

/** The root that a request brings, if it brings one. Throws `invalid_request` for one that was not made here, or is too old. */
export const openRoot = async (
  env: RingEnv,
  workspaceId: string,
  header: string | undefined,
  now: number,
): Promise<Root | undefined> => {
  if (header === undefined) return undefined;
  const [id, kind, by, at] = await unsealed(env, workspaceId, header).catch((cause: unknown) => {
    throw refused("must be passed on as a tool's request of this workspace brought it, or left out", cause);
  });
  if (now - at >= rootHeaderMs) {
    const bound = `rootHeaderMs (${rootHeaderMs / 3_600_000} h)`;
    throw refused(`is of a call that was begun longer ago than ${bound}: leave it out, so that the event is a new one`);
  }
  return { id, kind, ...(by === null ? {} : { by }) };
};
