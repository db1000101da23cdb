import { expect, test } from "vitest";
import {
  credentialsOf,
  deriveSecretKey,
  hashSecretKey,
  isOperator,
  mintSecretKey,
  workspaceOfSecretKey,
} from "../../src/auth/credentials.ts";
import { createIds } from "../../src/shared/ids.ts";

const secret = "a signing secret of at least 32 characters";
const ids = createIds(secret);
const from = (headers: Record<string, string>, query = "", allowQueryToken = false) =>
  credentialsOf(new Request(`https://x.test/v1/spaces${query}`, { headers }), allowQueryToken);

test("a bearer is read from the header, whatever its case", () => {
  expect(from({ authorization: "bearer  abc" }).bearer).toBe("abc");
  expect(from({ authorization: "Basic abc" }).bearer).toBeUndefined();
  expect(from({ authorization: "Bearer" }).bearer).toBeUndefined();
  expect(from({}).bearer).toBeUndefined();
});

test("[S5] x-secret-key takes only secret keys, and a query token counts only where allowed", () => {
  expect(from({ "x-secret-key": "sk_x" }).bearer).toBe("sk_x");
  expect(from({ "x-secret-key": "operator" }).bearer).toBeUndefined();
  expect(from({}, "?token=a.b.c").bearer).toBeUndefined();
  expect(from({}, "?token=a.b.c", true).bearer).toBe("a.b.c");
  expect(from({ authorization: "Bearer abc" }, "?token=a.b.c", true).bearer).toBe("abc");
  expect(from({ authorization: "Basic abc" }, "?token=a.b.c", true).bearer).toBeUndefined();
});

test("[S5] a key never counts in a query, where it would end in logs", () => {
  const key = mintSecretKey(ids.mint("wsp"), ids.mint("key"));
  for (const bearer of [key, "the-operators-key"]) expect(from({}, `?token=${bearer}`, true).bearer).toBeUndefined();
});

test("[S5] nobody is the operator where no key is set", () => {
  expect(isOperator(undefined, "")).toBe(false);
  expect(isOperator("", "")).toBe(false);
  expect(isOperator("key", "kez")).toBe(false);
  expect(isOperator("key", "key")).toBe(true);
});

test("[L2] a secret key says which workspace to ask, and which key it is", () => {
  const [workspaceId, keyId] = [ids.mint("wsp"), ids.mint("key")];
  const key = mintSecretKey(workspaceId, keyId);
  const [, , workspace, own = "", secret = ""] = /^sk_(wsp_(\w{34}))_(\w{34})_([\w-]{43})$/.exec(key) ?? [];
  expect([workspaceId, keyId]).toEqual([`wsp_${workspace}`, `key_${own}`]);
  // One that was made before keys held their ids.
  expect(workspaceOfSecretKey(`sk_${workspaceId}_${secret}`)).toBe(workspaceId);
  expect(workspaceOfSecretKey(key)).toBe(workspaceId);
  expect(workspaceOfSecretKey(`${key}x`)).toBeUndefined();
  expect(workspaceOfSecretKey("sk_wsp_x_y")).toBeUndefined();
  expect(mintSecretKey(workspaceId, keyId)).not.toBe(key);
  expect(hashSecretKey(key)).toMatch(/^[0-9a-f]{64}$/);
});

test("a derived key follows from its id and from the deployment's secret", () => {
  const workspaceId = ids.mint("wsp");
  const [one, other] = [ids.mint("key"), ids.mint("key")];
  expect(deriveSecretKey(secret, workspaceId, one)).toBe(deriveSecretKey(secret, workspaceId, one));
  expect(deriveSecretKey(secret, workspaceId, one)).not.toBe(deriveSecretKey(secret, workspaceId, other));
  expect(workspaceOfSecretKey(deriveSecretKey(secret, workspaceId, one))).toBe(workspaceId);
});
