import { expect, test } from "vitest";
import { newVapidKeys } from "../../scripts/keys.ts";
import { vapidKeysOf } from "../../src/auth/vapid.ts";
import { push, pushedOf } from "../../src/person/push.ts";
import { payloadOf } from "../../src/person/pushes.ts";
import type { Notification } from "../../src/protocol/notifications.ts";

const at = "2026-11-28T12:00:00.000Z";
const one = (id: string): Notification => ({
  ...{ id, kind: "mention", spaceId: "spc_1", messageId: `msg_${id}`, title: "Ben", body: `body of ${id}`, at },
});
const find = (known: string[]) => (id: string) => (known.includes(id) ? one(id) : undefined);

test("[I7] a push tells the newest that is unread, and counts the other unread ones", () => {
  const row = { topic: "spc_1", ids: ["a", "b", "c"] };
  expect(payloadOf(row, find(["a", "b", "c"]))).toMatchObject({ id: "c", body: "body of c", count: 2 });
  expect(payloadOf(row, find(["a", "b"]))).toMatchObject({ id: "b", count: 1 });
  expect(payloadOf(row, find(["b"]))).not.toHaveProperty("count");
  expect(payloadOf(row, find([]))).toBeUndefined();
});

test("[I8] many are taken back in several pushes, each under 4 KiB", () => {
  const ids = Array.from({ length: 200 }, (_, n) => `run_failed msg_${String(n).padStart(60, "0")}`);
  const payload = payloadOf({ topic: "cleared", ids }, find([]));
  expect(new TextEncoder().encode(JSON.stringify(payload)).length).toBeLessThan(3993);
  expect(payloadOf({ topic: "cleared", ids: [] }, find([]))).toBeUndefined();
});

test.for([
  [201, null, { result: "sent" }],
  [404, null, { result: "gone" }],
  [410, null, { result: "gone" }],
  [413, null, { result: "dropped" }],
  [400, null, { result: "dropped" }],
  [403, null, { result: "dropped" }],
  [307, null, { result: "dropped" }],
  [429, "120", { result: "later", afterMs: 120_000 }],
  [503, null, { result: "later" }],
  [500, "soon", { result: "later" }],
] as const)("[I7] a push service that answers %i, Retry-After %s", ([status, retryAfter, expected]) => {
  expect(pushedOf(status, retryAfter)).toMatchObject(expected);
});

test.for(["https://10.0.0.1/push", "https://push.internal/x", "http://push.example/x", "https://169.254.169.254/"])(
  "[S3] nothing is sent to %s, whatever is stored",
  async (endpoint) => {
    const asked: unknown[] = [];
    const [publicKey = "", privateKey = ""] = newVapidKeys().split(".");
    const device = {
      endpoint,
      keys: { p256dh: publicKey, auth: "AAAAAAAAAAAAAAAAAAAAAA" },
      origin: "https://colloquy.test",
    };
    const pushed = await push({ type: "cleared", ids: ["a"] }, device, {
      ...{ vapid: { publicKey, privateKey }, ttlMs: 1000, allowLoopback: true },
      fetch: async (request) => {
        asked.push(request);
        return new Response();
      },
    });
    expect(pushed.result).toBe("later");
    expect(asked).toEqual([]);
  },
);

test("[I7] a payload fits a push of 4 KiB whatever it says", async () => {
  const [publicKey = "", privateKey = ""] = newVapidKeys().split(".");
  const device = { endpoint: "https://push.example/x", keys: { p256dh: publicKey, auth: "AAAAAAAAAAAAAAAAAAAAAA" } };
  const long: Notification = { ...one("x".repeat(80)), title: "\u{1f600}".repeat(64), body: "\u{1f600}".repeat(200) };
  const payload = payloadOf({ topic: "spc_1", ids: [long.id, long.id] }, () => long);
  if (!payload) throw new Error("nothing is told");
  const bodies: number[] = [];
  const pushed = await push(
    payload,
    { ...device, origin: "https://colloquy.test" },
    {
      ...{ vapid: { publicKey, privateKey }, ttlMs: 1000, allowLoopback: false },
      fetch: async (_, request) => {
        if (request?.body instanceof Uint8Array) bodies.push(request.body.byteLength);
        return new Response(null, { status: 201 });
      },
    },
  );
  expect([pushed.result, bodies]).toEqual(["sent", [4096]]);
});

test.for([undefined, "", "x", "a.b", `${newVapidKeys()}.`])(
  "[I7] VAPID_KEYS of %s are refused by name",
  (VAPID_KEYS) => {
    expect(() => vapidKeysOf({ VAPID_KEYS })).toThrow(
      expect.objectContaining({ code: "not_configured", message: expect.stringContaining("VAPID_KEYS") }),
    );
  },
);

test("[I7] new keys are a point of P-256 and its private number, whatever zeros it begins with", () => {
  for (let n = 0; n < 300; n += 1) {
    const { publicKey, privateKey } = vapidKeysOf({ VAPID_KEYS: newVapidKeys() });
    const sizes = [publicKey, privateKey].map((key) => Buffer.from(key, "base64url").byteLength);
    expect(sizes).toEqual([65, 32]);
  }
});
