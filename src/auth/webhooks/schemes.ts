import { createHash, randomBytes } from "node:crypto";
import { defaultSecretHeader, type HookScheme } from "../../protocol/hook.ts";
import { anySame, hmac, nameIn, textField, unproven, type WebhookScheme } from "./scheme.ts";
import { standard } from "./standard.ts";

const minSecretCharacters = 16;

/** A secret that a person chose, or one of ours as text. */
const chosenSecret: Pick<WebhookScheme, "writeSecret" | "secretFault"> = {
  writeSecret: (bytes) => Buffer.from(bytes).toString("base64url"),
  secretFault: (secret) =>
    secret.length >= minSecretCharacters ? undefined : `must have at least ${minSecretCharacters} characters`,
};

/**
 * GitHub: `x-hub-signature-256` is `sha256=` and the hex HMAC of the body. Neither a time nor the delivery's id is
 * signed, so that a delivery is told from its repetition by `x-github-delivery` alone.
 */
const signatureHeader = "x-hub-signature-256";

const github: WebhookScheme = {
  ...chosenSecret,

  verify: ({ headers, body }, secrets) => {
    const expected = secrets.map((secret) => `sha256=${hmac(secret, [body], "hex")}`);
    if (!anySame([headers.get(signatureHeader) ?? ""], expected)) {
      throw unproven(`${signatureHeader} must be the body's signature with the hook's secret`);
    }
    return nameIn(headers, "x-github-delivery");
  },

  eventType: (headers, payload) => {
    const event = headers.get("x-github-event") ?? undefined;
    const action = textField(payload, "action");
    return event === undefined || action === undefined ? event : `${event}.${action}`;
  },

  isGreeting: (eventType) => eventType === "ping",
};

/**
 * A secret in a header, for senders that sign nothing (GitLab's `X-Gitlab-Token`, many monitors). Who sees one
 * delivery can send others: it holds only as far as its transport is secret.
 */
const sharedSecret: WebhookScheme = {
  ...chosenSecret,

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

/** Every kind of sender that is known. */
export const schemes: Record<HookScheme, WebhookScheme> = { standard, github, header: sharedSecret };

const secretBytes = 32;

export const newHookSecret = (scheme: HookScheme): string => schemes[scheme].writeSecret(randomBytes(secretBytes));
