import { createHmac } from "node:crypto";
import { describe, expect, test } from "vitest";
import type { HookHeaders, WebhookDelivery, WebhookScheme } from "../../../src/auth/webhooks/scheme.ts";
import { newHookSecret, schemes } from "../../../src/auth/webhooks/schemes.ts";
import type { HookScheme } from "../../../src/protocol/hook.ts";
import { ColloquyError } from "../../../src/shared/errors.ts";

/** What senders' own documents give as examples, and one contract that every scheme keeps. */
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

const deliveryOf = (headers: Record<string, string>, body: string): WebhookDelivery => ({
  headers: new Headers(headers),
  body: bytes(body),
});

const codeOf = (work: () => unknown): string => {
  try {
    work();
  } catch (error) {
    if (error instanceof ColloquyError) return error.code;
    throw error;
  }
  return "accepted";
};

describe("Standard Webhooks", () => {
  // The example of the libraries of standardwebhooks.com.
  const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
  const id = "msg_p5jXN8AQM9LWM0D4loKWxJek";
  const sentAt = 1614265330_000;
  const signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
  const verify = (changes: Record<string, string> = {}, now = sentAt) =>
    schemes.standard.verify(
      deliveryOf(
        { "webhook-id": id, "webhook-timestamp": "1614265330", "webhook-signature": signature, ...changes },
        '{"test": 2432232314}',
      ),
      [secret],
      {},
      now,
    );

  test("the example of its libraries is accepted, by its id", () => {
    expect(verify()).toEqual({ id });
  });

  test("of several signatures one is enough, and those of other versions are passed over", () => {
    const other = "Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc=";
    expect(verify({ "webhook-signature": `v1,${other} v2,${other} v1a,${other} ${signature} v1,${other}` })).toEqual({
      id,
    });
    const refused = [`v1,${other}`, "v1,", signature.slice(0, 8), signature.replace("v1,", "v2,"), signature.slice(3)];
    for (const presented of refused) {
      expect(
        codeOf(() => verify({ "webhook-signature": presented })),
        presented,
      ).toBe("unauthorized");
    }
  });

  test("[S4] a time more than five minutes from now, either way, is refused as that", () => {
    for (const now of [sentAt - 300_000, sentAt + 300_000]) expect(verify({}, now)).toEqual({ id });
    for (const now of [sentAt - 300_001, sentAt + 300_001]) {
      expect(codeOf(() => verify({}, now))).toBe("delivery_expired");
    }
  });

  test("[S4] a header that is missing or cannot be read is refused as unsigned", () => {
    const broken = {
      "webhook-id": ["", "a.b"],
      "webhook-timestamp": ["", "hello", "-1", "1.5"],
      "webhook-signature": [""],
    };
    for (const [header, values] of Object.entries(broken)) {
      for (const value of values)
        expect(
          codeOf(() => verify({ [header]: value })),
          `${header}: ${value}`,
        ).toBe("unauthorized");
    }
  });

  test("its secrets are whsec_ and the base64 of 24 to 64 bytes", () => {
    expect(schemes.standard.secretFault(secret)).toBeUndefined();
    const written = (length: number) => `whsec_${Buffer.alloc(length, 7).toString("base64")}`;
    expect(schemes.standard.secretFault(written(64))).toBeUndefined();
    for (const bad of ["", "whsec_", secret.slice(6), written(23), written(65), "whsec_%%%%"]) {
      expect(schemes.standard.secretFault(bad), bad).toContain("24 to 64 bytes");
    }
  });
});

describe("GitHub", () => {
  // The example of docs.github.com, "Validating webhook deliveries".
  const headers = {
    "x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
    "x-github-delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
  };
  const verify = (changes: Record<string, string> = {}, body = "Hello, World!") =>
    schemes.github.verify(deliveryOf({ ...headers, ...changes }, body), ["It's a Secret to Everybody"], {}, 0);

  test("the example of its documents is accepted, by its delivery", () => {
    expect(verify()).toEqual({ id: "72d3162e-cc78-11e3-81ab-4c9367dc0958" });
    expect(codeOf(() => verify({}, "Hello, World?"))).toBe("unauthorized");
    expect(codeOf(() => verify({ "x-hub-signature-256": headers["x-hub-signature-256"].slice(7) }))).toBe(
      "unauthorized",
    );
  });

  test("[S4] signed, but without a delivery's id, it is refused for that", () => {
    expect(codeOf(() => verify({ "x-github-delivery": "" }))).toBe("invalid_request");
    expect(codeOf(() => verify({ "x-github-delivery": "x".repeat(257) }))).toBe("invalid_request");
  });

  test("its event's type holds the action, and a ping is a greeting", () => {
    const typeOf = (event: string, payload: unknown) =>
      schemes.github.eventType(new Headers({ "x-github-event": event }), payload, {});
    expect(typeOf("issues", { action: "opened" })).toBe("issues.opened");
    expect(typeOf("push", { ref: "main" })).toBe("push");
    expect(typeOf("push", null)).toBe("push");
    expect(schemes.github.isGreeting(typeOf("ping", { zen: "Keep it logically awesome." }))).toBe(true);
    expect(schemes.github.isGreeting(typeOf("push", {}))).toBe(false);
  });
});

describe("a secret in a header", () => {
  test("its header, its id's and its event's are the hook's choice", () => {
    const hook = { header: "X-Gitlab-Token", idHeader: "Idempotency-Key", eventHeader: "X-Gitlab-Event" };
    const headers = { "x-gitlab-token": "s".repeat(16), "idempotency-key": "908a6d9e", "x-gitlab-event": "Push Hook" };
    const delivery = deliveryOf(headers, "{}");
    expect(schemes.header.verify(delivery, ["s".repeat(16)], hook, 0)).toEqual({ id: "908a6d9e" });
    expect(schemes.header.eventType(delivery.headers, {}, hook)).toBe("Push Hook");
  });

  test("in Authorization it may follow Bearer, elsewhere it may not", () => {
    const secret = "a-shared-secret!";
    const verify = (header: string, value: string) =>
      codeOf(() => schemes.header.verify(deliveryOf({ [header]: value }, ""), [secret], { header }, 0));
    expect(verify("Authorization", `Bearer ${secret}`)).toBe("accepted");
    expect(verify("Authorization", secret)).toBe("accepted");
    expect(verify("x-secret", `Bearer ${secret}`)).toBe("unauthorized");
  });

  test("a delivery without an id is known by its body", () => {
    const nameOf = (body: string) =>
      schemes.header.verify(deliveryOf({ "x-webhook-secret": "a-shared-secret!" }, body), ["a-shared-secret!"], {}, 0);
    expect(nameOf("a")).toEqual(nameOf("a"));
    expect(nameOf("a")).not.toEqual(nameOf("b"));
  });
});

const now = 1_700_000_000_000;
const sign = (secret: string | Uint8Array, content: string, as: "hex" | "base64") =>
  createHmac("sha256", secret).update(content).digest(as);

/** Each scheme's sender, written independently of the scheme. */
const senders: Record<HookScheme, (secret: string, body: string) => Record<string, string>> = {
  standard: (secret, body) => ({
    "webhook-id": "msg_1",
    "webhook-timestamp": String(now / 1000),
    "webhook-signature": `v1,${sign(Buffer.from(secret.slice(6), "base64"), `msg_1.${now / 1000}.${body}`, "base64")}`,
  }),
  github: (secret, body) => ({
    "x-hub-signature-256": `sha256=${sign(secret, body, "hex")}`,
    "x-github-delivery": "d-1",
  }),
  header: (secret) => ({ "x-webhook-secret": secret }),
};

const all = Object.entries(schemes) as [HookScheme, WebhookScheme][];
const hook: HookHeaders = {};

describe.each(all)("every scheme keeps its contract: %s", (name, scheme) => {
  const [mine, next, foreign] = [newHookSecret(name), newHookSecret(name), newHookSecret(name)];
  const body = '{"text":"ü"}';
  const send = (secret: string, secrets: string[]) =>
    codeOf(() => scheme.verify(deliveryOf(senders[name](secret, body), body), secrets, hook, now));

  test("what is signed with one of its secrets is accepted, and has a name", () => {
    expect(send(mine, [mine])).toBe("accepted");
    expect(send(mine, [next, mine])).toBe("accepted");
    expect(send(next, [next, mine])).toBe("accepted");
  });

  test("[S4] what is signed with another, with none, or not at all is refused", () => {
    expect(send(foreign, [next, mine])).toBe("unauthorized");
    expect(send(mine, [])).toBe("unauthorized");
    expect(codeOf(() => scheme.verify(deliveryOf({}, body), [mine], hook, now))).toBe("unauthorized");
  });

  test("its own secrets are such as it takes, and no two are the same", () => {
    expect(scheme.secretFault(mine)).toBeUndefined();
    expect(mine).not.toBe(next);
    expect(scheme.secretFault("short")).toBeDefined();
  });
});

test.each(["standard", "github"] as const)("[S4] a body that was changed on the way is refused: %s", (name) => {
  const secret = newHookSecret(name);
  const verify = (body: string) =>
    codeOf(() => schemes[name].verify(deliveryOf(senders[name](secret, '{"a":1}'), body), [secret], hook, now));
  expect(verify('{"a":1}')).toBe("accepted");
  for (const body of ['{"a": 1}', '{"a":1}\n', '{"a":2}', ""]) expect(verify(body), body).toBe("unauthorized");
});
