import { createHmac } from "node:crypto";
import { z } from "zod";
import type { Root } from "../protocol/rpc.ts";
import { ColloquyError } from "../shared/errors.ts";
import { deriveKey } from "../shared/ids.ts";

/**
 * `Colloquy-Root`: the root of the run whose tool sends a request. What comes back to an agent with it goes on in that
 * root, so that a chain through other people's servers stays one chain (B1).
 *
 * Invariants
 * 1. The same root of the same workspace is always the same text: a replay sends the same bytes.
 * 2. Nobody without the deployment's secret can make one, read one, or use one in another workspace.
 */
export const rootHeader = "colloquy-root";

const version = "v1";
const nonceBytes = 12;
const Sealed = z.tuple([z.string(), z.enum(["person", "service", "plan", "agent"]), z.string().nullable()]);

const keyOf = (signingSecret: string, workspaceId: string): Promise<CryptoKey> =>
  crypto.subtle.importKey("raw", deriveKey(signingSecret, `root:${workspaceId}`), "AES-GCM", false, [
    "encrypt",
    "decrypt",
  ]);

export const sealRoot = async (signingSecret: string, workspaceId: string, { id, kind, by }: Root): Promise<string> => {
  const text = JSON.stringify([id, kind, by ?? null] satisfies z.infer<typeof Sealed>);
  // The nonce follows from the text: it is never used for another one.
  const nonceKey = deriveKey(signingSecret, `root-nonce:${workspaceId}`);
  const iv = new Uint8Array(createHmac("sha256", nonceKey).update(text).digest().subarray(0, nonceBytes));
  const key = await keyOf(signingSecret, workspaceId);
  const sealed = await crypto.subtle.encrypt({ name: "AES-GCM", iv }, key, new TextEncoder().encode(text));
  return [version, Buffer.from(iv).toString("base64url"), Buffer.from(sealed).toString("base64url")].join(".");
};

/** The root that a request brings, if it brings one. Throws `invalid_request` for one that was not made here. */
export const openRoot = async (
  signingSecret: string,
  workspaceId: string,
  header: string | undefined,
): Promise<Root | undefined> => {
  if (header === undefined) return undefined;
  try {
    const [form, iv, body, ...more] = header.split(".");
    if (form !== version || !iv || !body || more.length > 0) throw new Error("it has an unknown form");
    const plain = await crypto.subtle.decrypt(
      { name: "AES-GCM", iv: Buffer.from(iv, "base64url") },
      await keyOf(signingSecret, workspaceId),
      Buffer.from(body, "base64url"),
    );
    const [id, kind, by] = Sealed.parse(JSON.parse(new TextDecoder().decode(plain)));
    return { id, kind, ...(by === null ? {} : { by }) };
  } catch (cause) {
    const message = "must be passed on as a tool's request of this workspace brought it, or left out";
    const issues = [{ path: "Colloquy-Root", message }];
    throw new ColloquyError("invalid_request", `The header Colloquy-Root ${message}.`, { issues, cause });
  }
};
