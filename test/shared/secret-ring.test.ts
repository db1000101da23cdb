import { expect, test } from "vitest";
import { openRoot, rootSealer } from "../../src/auth/root-header.ts";
import { isSealedAnew, resealed, seal, unseal } from "../../src/auth/sealing.ts";
import { mintToken, verifyToken } from "../../src/auth/tokens.ts";
import { createIds } from "../../src/shared/ids.ts";
import { parseRing, printOf, type RingEnv, ringOf } from "../../src/shared/secret-ring.ts";

const [a, b, c] = ["a", "b", "c"].map((letter) => letter.repeat(32)) as [string, string, string];
const before = { SIGNING_SECRET: a };
const during = { SIGNING_SECRET: a, SIGNING_SECRETS: `second:${b}` };
const after = { SIGNING_SECRET: a, SIGNING_SECRETS: `second:${b}, ids:SIGNING_SECRET` };
const namesOf = (env: RingEnv) => {
  const { first, secrets, ids } = parseRing(env);
  return { first: first.name, all: secrets.map(({ name }) => name), ids: ids.name };
};
const refusal = (env: RingEnv): string => {
  try {
    parseRing(env);
  } catch (error) {
    return String(error);
  }
  return "none";
};

test("[L5] SIGNING_SECRET alone is the ring, and stays its last and its ids' as newer ones sign", () => {
  expect(namesOf(before)).toEqual({ first: "SIGNING_SECRET", all: ["SIGNING_SECRET"], ids: "SIGNING_SECRET" });
  expect(namesOf(during)).toEqual({ first: "second", all: ["second", "SIGNING_SECRET"], ids: "SIGNING_SECRET" });
  expect(namesOf(after)).toEqual({ first: "second", all: ["second"], ids: "ids" });
  expect(namesOf({ SIGNING_SECRETS: `x:${c},y:${b}` })).toEqual({ first: "x", all: ["x", "y"], ids: "y" });
  expect(namesOf({ SIGNING_SECRETS: `x:${c},ids:${b}` })).toEqual({ first: "x", all: ["x"], ids: "ids" });
  expect(namesOf({ SIGNING_SECRET: a, SIGNING_SECRETS: `x:${c},old:SIGNING_SECRET` })).toMatchObject({ ids: "old" });
});

test("[L5] a ring that cannot be used is refused with what to set, without any secret", () => {
  const wrong: [RingEnv, RegExp][] = [
    [{}, /SIGNING_SECRET is not set.*at least 32/],
    [{ SIGNING_SECRET: "short" }, /SIGNING_SECRET is too short.*at least 32/],
    [{ SIGNING_SECRETS: "x:short" }, /"x" in SIGNING_SECRETS is too short/],
    [{ SIGNING_SECRETS: `x:${b},${c}` }, /Entry 2 .* must be name:secret/],
    [{ SIGNING_SECRETS: `a b:${c}` }, /Entry 1 .* must be name:secret/],
    [{ SIGNING_SECRETS: `x:${b},x:${c}` }, /"x" twice/],
    [{ SIGNING_SECRETS: `x:${b},y:${b}` }, /"y" twice/],
    [{ SIGNING_SECRETS: "x:SIGNING_SECRET" }, /"x" .* SIGNING_SECRET, which is not set/],
    [{ SIGNING_SECRETS: `ids:${b}` }, /SIGNING_SECRET is not set/],
  ];
  for (const [env, message] of wrong) {
    expect(refusal(env)).toMatch(message);
    for (const secret of [b, c, "short"]) expect(refusal(env)).not.toContain(`:${secret}`);
  }
});

test("[L5] a secret's print follows from it alone, and is no part of it", () => {
  expect(printOf(a)).toMatch(/^[\w-]{12}$/);
  expect(parseRing(during).secrets.map(({ print }) => print)).toEqual([printOf(b), printOf(a)]);
  expect(parseRing({ SIGNING_SECRETS: `other-name:${b}` }).first.print).toBe(printOf(b));
});

test("[L5] tokens and roots of before are taken while their secret is in the ring", async () => {
  const ids = createIds(ringOf(before).ids.secret);
  const now = Date.now();
  const claims = { workspaceId: ids.mint("wsp"), entityId: ids.mint("ent"), issuedAt: now, expiresAt: now + 60_000 };
  const root = { id: "msg_1", kind: "person" as const };
  const made = async (env: RingEnv) => ({
    token: await mintToken(env, claims),
    header: rootSealer(env, claims.workspaceId)(root, now),
  });
  const [old, fresh] = [await made(before), await made(during)];
  for (const { token, header } of [old, fresh]) {
    expect(await verifyToken(during, ids, token, now)).toMatchObject({ entityId: claims.entityId });
    expect(await openRoot(during, claims.workspaceId, header, now)).toEqual(root);
  }
  expect(await verifyToken(after, ids, fresh.token, now)).toMatchObject({ entityId: claims.entityId });
  await expect(verifyToken(after, ids, old.token, now)).rejects.toMatchObject({ code: "unauthorized" });
  await expect(openRoot(after, claims.workspaceId, old.header, now)).rejects.toMatchObject({ code: "invalid_request" });
  await expect(verifyToken(before, ids, fresh.token, now)).rejects.toMatchObject({ code: "unauthorized" });
});

test("[L5] what is sealed says by which secret, and sealed anew needs the old one no more", async () => {
  const old = await seal(before, "wsp_a", "KEY", "hunter2");
  const without = old.split(".").slice(0, 3).join(".");
  for (const sealed of [old, without]) {
    expect(isSealedAnew(during, sealed)).toBe(false);
    expect(await unseal(during, "wsp_a", "KEY", sealed)).toBe("hunter2");
    await expect(unseal(after, "wsp_a", "KEY", sealed)).rejects.toThrow();
    const fresh = await resealed(during, "wsp_a", "KEY", sealed);
    expect(isSealedAnew(during, fresh)).toBe(true);
    expect(await unseal(after, "wsp_a", "KEY", fresh)).toBe("hunter2");
    expect(await resealed(during, "wsp_a", "KEY", fresh)).toBe(fresh);
  }
});

test("[L5] ids that were made and derived before are made and derived the same for ever", () => {
  const all = [before, during, after].map((env) => createIds(ringOf(env).ids.secret));
  const [agentId, spaceId] = [all[0]?.mint("ent") ?? "", all[0]?.mint("spc") ?? ""];
  const derived = all.map((ids) => [
    ids.isIssued("ent", agentId),
    ids.deriveOwned("msg", spaceId, "client", agentId, "key"),
    ids.compartment(agentId, spaceId),
    ids.isCompartment(ids.compartment(agentId, spaceId)),
    ids.ownerOf("msg", ids.deriveOwned("msg", spaceId, "x")),
  ]);
  expect(derived[1]).toEqual(derived[0]);
  expect(derived[2]).toEqual(derived[0]);
  expect(derived[0]?.[0]).toBe(true);
});
