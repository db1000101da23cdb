import { ColloquyError } from "../../shared/errors.ts";
import { anySame, hmac, nameIn, textField, unproven, type WebhookScheme } from "./scheme.ts";

/**
 * Standard Webhooks 1.0.0 (standardwebhooks.com), symmetric: `webhook-signature` is a list of `v1,<base64>` over
 * `<webhook-id>.<webhook-timestamp>.<body>`; secrets are `whsec_` and the base64 of 24 to 64 bytes.
 */
const secretPrefix = "whsec_";
const minSecretBytes = 24;
const maxSecretBytes = 64;
/** The most that the sender's clock may be off, either way. */
const windowMs = 5 * 60_000;

const keyOf = (secret: string): Uint8Array => Buffer.from(secret.slice(secretPrefix.length), "base64");

/** The headers that vouch for what is sent, by each of the secrets. `now` in milliseconds since the epoch. */
export const signStandard = (secrets: string[], id: string, now: number, body: string): Record<string, string> => {
  const timestamp = String(Math.floor(now / 1000));
  const signed = secrets.map((secret) => `v1,${hmac(keyOf(secret), [`${id}.${timestamp}.`, body], "base64")}`);
  return { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signed.join(" ") };
};

export const standard: WebhookScheme = {
  writeSecret: (bytes) => secretPrefix + Buffer.from(bytes).toString("base64"),

  secretFault: (secret) => {
    const bytes = /^whsec_[A-Za-z0-9+/]+={0,2}$/.test(secret) ? keyOf(secret).length : 0;
    return bytes >= minSecretBytes && bytes <= maxSecretBytes
      ? undefined
      : `must be ${secretPrefix} and the base64 of ${minSecretBytes} to ${maxSecretBytes} bytes`;
  },

  verify: ({ headers, body }, secrets, _hook, now) => {
    const id = headers.get("webhook-id") ?? "";
    const timestamp = headers.get("webhook-timestamp") ?? "";
    const presented = (headers.get("webhook-signature") ?? "")
      .split(" ")
      .flatMap((signature) => (signature.startsWith("v1,") ? [signature.slice(3)] : []));
    // A dot in the id would let one signed text be read as another delivery.
    const isReadable = id !== "" && !id.includes(".") && /^\d{1,12}$/.test(timestamp);
    const expected = secrets.map((secret) => hmac(keyOf(secret), [`${id}.${timestamp}.`, body], "base64"));
    if (!isReadable || !anySame(presented, expected)) {
      throw unproven("webhook-id, webhook-timestamp and webhook-signature (v1) must be signed with the hook's secret");
    }
    if (Math.abs(now - Number(timestamp) * 1000) > windowMs) {
      throw new ColloquyError(
        "delivery_expired",
        `webhook-timestamp is more than ${windowMs / 60_000} minutes from now: sign each attempt anew, by a clock that is right.`,
      );
    }
    return nameIn(headers, "webhook-id");
  },

  eventType: (_headers, payload) => textField(payload, "type"),
  isGreeting: () => false,
};
