import { exports } from "cloudflare:workers";
import { createHmac } from "node:crypto";
import type { HookScheme } from "../../src/protocol/hook.ts";

/** What a sender would send: its body, and the headers that its scheme signs it with. */
export type Sent = { body: string; headers: Record<string, string> };

const hmac = (key: string | Uint8Array, text: string) => createHmac("sha256", key).update(text);

/** Senders as their documents describe them, written without the code that verifies them. */
export const signed: Record<HookScheme, (secret: string, id: string, body: string, at?: number) => Sent> = {
  standard: (secret, id, body, at = Date.now()) => {
    const seconds = Math.floor(at / 1000);
    const signature = hmac(Buffer.from(secret.slice(6), "base64"), `${id}.${seconds}.${body}`).digest("base64");
    const headers = { "webhook-id": id, "webhook-timestamp": String(seconds), "webhook-signature": `v1,${signature}` };
    return { body, headers: { "content-type": "application/json", ...headers } };
  },
  github: (secret, id, body) => ({
    body,
    headers: {
      "content-type": "application/json",
      "user-agent": "GitHub-Hookshot/044aadd",
      "x-github-delivery": id,
      "x-github-event": "issues",
      "x-hub-signature-256": `sha256=${hmac(secret, body).digest("hex")}`,
    },
  }),
  header: (secret, id, body) => ({
    body,
    headers: { "content-type": "application/json", "x-webhook-secret": secret, "x-id": id },
  }),
};

export const deliver = (hookId: string, { body, headers }: Sent): Promise<Response> =>
  exports.default.fetch(`https://colloquy.test/v1/hooks/${hookId}`, { method: "POST", body, headers });
