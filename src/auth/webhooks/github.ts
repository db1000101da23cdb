import { anySame, chosenSecretFault, hmac, nameIn, textField, unproven, type WebhookScheme } from "./scheme.ts";

/**
 * GitHub: `x-hub-signature-256` is `sha256=` and the hex HMAC of the body. Neither a time nor the delivery's id is
 * signed, so that a delivery is told from its repetition by `x-github-delivery` alone.
 */
const signatureHeader = "x-hub-signature-256";

export const github: WebhookScheme = {
  writeSecret: (bytes) => Buffer.from(bytes).toString("base64url"),
  secretFault: chosenSecretFault,

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
