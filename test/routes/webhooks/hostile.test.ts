import fc from "fast-check";
import { test } from "vitest";
import { newHookSecret, schemes } from "../../../src/auth/webhooks/schemes.ts";
import { HookScheme, type HookSettings } from "../../../src/protocol/hook.ts";
import { payloadOf, readingOf } from "../../../src/routes/webhook-payload.ts";
import { ColloquyError } from "../../../src/shared/errors.ts";

/** Whatever comes to a hook's address is refused by a typed error, or read; nothing else is thrown. */
const refusedOrDone = <T>(work: () => T): T | undefined => {
  try {
    return work();
  } catch (error) {
    if (error instanceof ColloquyError) return undefined;
    throw error;
  }
};

const scheme = fc.constantFrom(...HookScheme.options);
const headerValue = fc.oneof(
  fc.string({ unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)) }),
  fc.constantFrom("v1,", "v1,AAAA v1,", "sha256=", "1e9", "-0", "99999999999999", "Bearer "),
);
const headers = fc.dictionary(
  fc.constantFrom(
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
    "x-hub-signature-256",
    "x-github-delivery",
    "x-github-event",
    "x-webhook-secret",
  ),
  headerValue,
);
const contentType = fc.constantFrom(
  null,
  "application/json",
  "application/x-www-form-urlencoded",
  "text/plain",
  ";",
  "x/y",
);
const body = fc.oneof(
  fc.uint8Array({ maxLength: 200 }),
  fc.json().map((text) => new TextEncoder().encode(text)),
  fc.json().map((text) => new TextEncoder().encode(`payload=${encodeURIComponent(text)}`)),
);
const template = fc.constantFrom(undefined, "{{event}} {{payload}}", "{{payload.a.0.b}}{{payload.__proto__.x}}");

test("[S4] no random delivery is accepted, and every accepted one can be answered", () => {
  fc.assert(
    fc.property(scheme, headers, contentType, body, template, (name, sent, type, bytes, picked) => {
      const own = newHookSecret(name);
      const delivery = { headers: new Headers(sent), body: bytes };
      const proven = refusedOrDone(() => schemes[name].verify(delivery, [own], {}, Date.now()));
      const payload = refusedOrDone(() => payloadOf(type, bytes));
      if (payload === undefined) return proven === undefined;
      const event = schemes[name].eventType(delivery.headers, payload, { eventHeader: "x-github-event" });
      const settings = { scheme: name, ...(picked === undefined ? {} : { template: picked }) };
      JSON.stringify(readingOf(settings as HookSettings, event, payload));
      return proven === undefined;
    }),
    { numRuns: 2000 },
  );
});
