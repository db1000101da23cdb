import { createHash } from "node:crypto";
import { defaultSecretHeader } from "../../protocol/hook.ts";
import { anySame, chosenSecretFault, nameIn, unproven, type WebhookScheme } from "./scheme.ts";

/**
 * A secret in a header, for senders that sign nothing (GitLab's `X-Gitlab-Token`, many monitors). Who sees one
 * delivery can send others: it holds only as far as its transport is secret.
 */
export const sharedSecret: WebhookScheme = {
  writeSecret: (bytes) => Buffer.from(bytes).toString("base64url"),
  secretFault: chosenSecretFault,

  verify: ({ headers, body }, secrets, { header = defaultSecretHeader, idHeader }) => {
    const value = headers.get(header) ?? "";
    const presented = header.toLowerCase() === "authorization" ? value.replace(/^Bearer +/i, "") : value;
    if (!anySame([presented], secrets)) throw unproven(`${header} must hold the hook's secret`);
    if (idHeader !== undefined) return nameIn(headers, idHeader);
    return { bodyHash: createHash("sha256").update(body).digest("hex") };
  },

  eventType: (headers, _payload, { eventHeader }) =>
    eventHeader === undefined ? undefined : headers.get(eventHeader)?.trim() || undefined,
  isGreeting: () => false,
};
