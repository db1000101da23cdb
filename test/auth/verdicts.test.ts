import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ExpiringMap } from "../../src/auth/expiring-map.ts";
import { forgetCredentials, forgetStanding, isKnownKey, keyWithHash, standingOf } from "../../src/auth/verdicts.ts";
import type { WorkspaceRpc } from "../../src/protocol/rpc.ts";
import { ok, refuse } from "../../src/shared/errors.ts";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

type Asked = Pick<WorkspaceRpc, "verifyKey" | "standing">;

test("[S5] a key's verdict is kept for 60 s, and no longer", async () => {
  const provenAt = Date.now();
  const verifyKey = vi.fn<Asked["verifyKey"]>().mockResolvedValue(ok({ keyId: "key_1" }));
  expect(await keyWithHash({ verifyKey }, "wsp_1", "hash")).toMatchObject({ keyId: "key_1" });
  vi.advanceTimersByTime(59_999);
  expect(await keyWithHash({ verifyKey }, "wsp_1", "hash")).toEqual({ keyId: "key_1", provenAt });
  expect(verifyKey).toHaveBeenCalledTimes(1);
  vi.advanceTimersByTime(1);
  verifyKey.mockResolvedValue(refuse("unauthorized", "revoked"));
  expect(await keyWithHash({ verifyKey }, "wsp_1", "hash")).toBeUndefined();
});

test("[S5] a revoked key stops at once where it was revoked, also for a request under way", async () => {
  const answer = Promise.withResolvers<Awaited<ReturnType<Asked["verifyKey"]>>>();
  const verifyKey = vi.fn<Asked["verifyKey"]>().mockReturnValueOnce(answer.promise);
  const asking = keyWithHash({ verifyKey }, "wsp_2", "hash");
  forgetCredentials("wsp_2");
  verifyKey.mockResolvedValue(refuse("unauthorized", "revoked"));
  answer.resolve(ok({ keyId: "key_2" }));
  expect(await asking).toBeUndefined();
});

test("[L2] a key stops at its end where its workspace is not asked", async () => {
  const expiresAt = Date.now() + 10_000;
  const verifyKey = vi.fn<Asked["verifyKey"]>().mockResolvedValue(ok({ keyId: "key_4", scopes: ["read"], expiresAt }));
  expect(await keyWithHash({ verifyKey }, "wsp_4", "hash")).toMatchObject({ scopes: ["read"], expiresAt });
  expect(isKnownKey("wsp_4", "hash")).toBe(true);
  vi.setSystemTime(expiresAt);
  expect(await keyWithHash({ verifyKey }, "wsp_4", "hash")).toBeUndefined();
  expect(isKnownKey("wsp_4", "hash")).toBe(false);
  expect(verifyKey).toHaveBeenCalledTimes(1);
});

test("[S5] a changed standing is asked for again, also by a request under way", async () => {
  const answer = Promise.withResolvers<Awaited<ReturnType<Asked["standing"]>>>();
  const asking = standingOf({ standing: () => answer.promise }, "wsp_3", "ent_1");
  forgetStanding("wsp_3", "ent_1");
  answer.resolve(ok({ role: "admin", type: "human" }));
  await asking;
  const standing = vi.fn<Asked["standing"]>().mockResolvedValue(refuse("not_found", "removed"));
  expect(await standingOf({ standing }, "wsp_3", "ent_1")).toBeUndefined();
  expect(await standingOf({ standing }, "wsp_3", "ent_1")).toBeUndefined();
  expect(standing).toHaveBeenCalledTimes(1);
});

test("[B3] what an isolate remembers is bounded, the oldest forgotten first", () => {
  const map = new ExpiringMap<number>(1000, 2);
  map.set("a", 1);
  map.set("b", 2);
  map.set("a", 3);
  map.set("c", 4);
  expect([map.get("a"), map.get("b"), map.get("c")]).toEqual([3, undefined, 4]);
  map.delete("a");
  vi.advanceTimersByTime(1000);
  expect([map.get("a"), map.get("c")]).toEqual([undefined, undefined]);
});
