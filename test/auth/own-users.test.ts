import { createServer } from "node:http";
import { exportJWK, generateKeyPair, importJWK, SignJWT } from "jose";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { fetchJwks, jwksCooldownMs, jwksFreshMs, jwksStaleMs, jwksTimeoutMs } from "../../src/auth/jwks.ts";
import { jwtIn, type OwnUsers, provenJwt, verifyJwt } from "../../src/auth/own-users.ts";
import type { Auth, Jwk } from "../../src/protocol/own-users.ts";
import { ColloquyError } from "../../src/shared/errors.ts";

/** JWTs of a customer's issuer, whose JWKS server is here: it rotates its keys, is slow, is down, and lies. */
type Answer = { status?: number; type?: string; body?: string; location?: string; hangs?: "answer" | "body" };
let answer: Answer = {};
let asked = 0;
const server = createServer((_, response) => {
  asked += 1;
  if (answer.hangs === "answer") return;
  const { status = 200, type = "application/json", body = "", location } = answer;
  response.writeHead(status, { "content-type": type, ...(location ? { location } : {}) });
  if (answer.hangs === "body") response.write('{"keys": [');
  else response.end(body);
});
let port = 0;

type Pair = { alg: string; kid: string; privateKey: CryptoKey; jwk: Jwk };
const pairOf = async (alg: string, kid: string): Promise<Pair> => {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  return { alg, kid, privateKey, jwk: { ...(await exportJWK(publicKey)), kid } as Jwk };
};
const pairs: Record<string, Pair> = {};
const pair = (name: string): Pair => pairs[name] ?? (Promise.reject(new Error(name)) as never);

beforeAll(async () => {
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const address = server.address();
  port = typeof address === "object" && address ? address.port : 0;
  for (const alg of ["RS256", "ES256", "EdDSA"]) pairs[alg] = await pairOf(alg, alg);
  pairs.next = await pairOf("ES256", "next");
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

let sets = 0;
let now = Date.now();
let auth: Auth;
beforeEach(() => {
  sets += 1;
  asked = 0;
  now = Date.now();
  publish("RS256", "ES256", "EdDSA");
  auth = {
    ...{ id: `auth ${sets}`, issuer: "https://issuer.example", audience: "colloquy", firstSight: "refused" },
    ...{ jwksUrl: `http://127.0.0.1:${port}/${sets}`, changedAt: "2026-02-18T15:06:55.000Z" },
  };
});

const publish = (...names: string[]): void => {
  answer = { body: JSON.stringify({ keys: names.map((name) => pair(name).jwk) }) };
};

const entityOf = vi.fn<OwnUsers["entityOf"]>(async () => ({ entityId: "ent_1", generation: 0 }));
const users = (): OwnUsers => ({
  now: () => now,
  fetch: globalThis.fetch,
  allowLoopback: true,
  waitUntil: () => undefined,
  isWorkspace: (id) => id === "wsp_1",
  authOf: async () => auth,
  entityOf,
});

type Asked = { by?: string; kid?: string | null; alg?: string; claims?: Record<string, unknown>; at?: number };
const sign = async ({ by = "ES256", kid, alg, claims = {}, at = now }: Asked = {}): Promise<string> => {
  const { privateKey, ...own } = pair(by);
  const seconds = Math.floor(at / 1000);
  const all = {
    iss: "https://issuer.example",
    aud: "colloquy",
    sub: "u1",
    iat: seconds,
    exp: seconds + 600,
    ...claims,
  };
  const name = kid === null ? {} : { kid: kid ?? own.kid };
  return new SignJWT(all).setProtectedHeader({ alg: alg ?? own.alg, ...name }).sign(privateKey);
};
const verify = (token: string, named: string | undefined = "wsp_1") => {
  const jwt = jwtIn(token);
  if (!jwt) throw new Error("it is taken for one of ours");
  return verifyJwt(jwt, named === undefined ? [] : [named], users());
};
const refusal = (token: Promise<string> | string, named?: string): Promise<ColloquyError> =>
  Promise.resolve(token)
    .then((text) => verify(text, named))
    .then(
      () => Promise.reject(new Error("it was taken")),
      (error: unknown) => (error instanceof ColloquyError ? error : Promise.reject(error)),
    );

test.each(["RS256", "ES256", "EdDSA"])("[L12] a JWT of %s is taken, by a key that is fetched once", async (by) => {
  const tokens = await Promise.all([sign({ by }), sign({ by, kid: null }), sign({ by, claims: { jti: "2" } })]);
  for (const proven of await Promise.all(tokens.map((token) => verify(token)))) {
    expect(proven).toMatchObject({ workspaceId: "wsp_1", entityId: "ent_1", authId: auth.id });
  }
  expect(asked).toBe(1);
});

test("[L12] a claim wsp of null names no workspace", async () => {
  expect(await verify(await sign({ claims: { wsp: null } }))).toMatchObject({ workspaceId: "wsp_1" });
});

test("[L12] a verified JWT is remembered until it expires, and proves itself without a look-up", async () => {
  const token = await sign();
  await verify(token);
  const calls = entityOf.mock.calls.length;
  expect(provenJwt(token, ["wsp_1"], now)).toMatchObject({ entityId: "ent_1" });
  expect(provenJwt(token, ["wsp_2"], now)).toBeUndefined();
  expect(provenJwt(token, ["wsp_1"], now + 660_000)).toBeUndefined();
  expect([asked, entityOf.mock.calls.length]).toEqual([1, calls]);
});

test("[L12] once the keys are cached, a new JWT is verified in less than a millisecond", async () => {
  const tokens: string[] = [];
  for (let at = 0; at < 101; at += 1) tokens.push(await sign({ claims: { jti: String(at) } }));
  await verify(tokens.pop() ?? "");
  const took: number[] = [];
  for (const token of tokens) {
    // The thread's own time: what else the machine does is not the verification's.
    const begun = process.threadCpuUsage();
    await verify(token);
    const { user, system } = process.threadCpuUsage(begun);
    took.push((user + system) / 1000);
  }
  expect(took.toSorted((one, other) => one - other)[50]).toBeLessThan(1);
});

test("[L12] [S4] none, HS256 and any other algorithm are refused by name", async () => {
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const none = `${part({ alg: "none" })}.${part({ sub: "u1", wsp: "wsp_1" })}.`;
  const secret = await new SignJWT({ iss: "https://issuer.example" })
    .setProtectedHeader({ alg: "HS256" })
    .sign(Buffer.from(JSON.stringify(pair("ES256").jwk)));
  for (const [token, alg] of [
    [none, "none"],
    [secret, "HS256"],
  ] as const) {
    const { code, message } = await refusal(token);
    expect([code, message]).toEqual(["unauthorized", expect.stringMatching(`"${alg}".*RS256, ES256, EdDSA`)]);
  }
  expect(asked).toBe(0);
});

test("[L12] [S4] issuer, audience, times and subject are checked, times with a minute's skew", async () => {
  const seconds = Math.floor(now / 1000);
  for (const [claims, code, says] of [
    [{ iss: "https://other.example" }, "unauthorized", "iss"],
    [{ aud: "other" }, "unauthorized", "aud"],
    [{ nbf: seconds + 90 }, "unauthorized", "nbf"],
    [{ iat: seconds + 90 }, "unauthorized", "iat"],
    [{ exp: seconds - 61 }, "token_expired", "issuer"],
    [{ exp: undefined }, "unauthorized", "exp"],
    [{ sub: undefined }, "unauthorized", "sub"],
    [{ sub: "x".repeat(257) }, "unauthorized", "sub"],
    [{ wsp: "wsp_2" }, "unauthorized", "wsp"],
  ] as const) {
    const error = await refusal(sign({ claims }));
    expect([error.code, error.message], JSON.stringify(claims)).toEqual([code, expect.stringContaining(says)]);
  }
  expect(await verify(await sign({ claims: { nbf: seconds + 55, exp: seconds - 55 } }))).toBeDefined();
  expect(await verify(await sign({ claims: { aud: ["other", "colloquy"], wsp: "wsp_1" } }), undefined)).toBeDefined();
  expect((await refusal(sign(), "")).message).toContain("X-Workspace-Id");
});

test("[L12] a key that the issuer rotates in is found, one that it takes away ends", async () => {
  await verify(await sign());
  publish("next");
  now += jwksCooldownMs;
  await verify(await sign({ by: "next" }));
  expect(asked).toBe(2);
  expect((await refusal(sign())).message).toContain("no ES256 key");
});

test("[L12] a JWT without a key id is taken again once the issuer has one key", async () => {
  publish("ES256", "next");
  expect((await refusal(sign({ kid: null }))).message).toContain("name one by kid");
  publish("next");
  now += jwksCooldownMs;
  await verify(await sign({ by: "next", kid: null }));
});

test("[L12] a key that was taken away counts no more after a quiet time", async () => {
  await verify(await sign());
  publish("next");
  now += 6 * 3_600_000;
  expect((await refusal(sign())).message).toContain("no ES256 key");
});

test("[L12] a key that was taken away counts no more after a failure and a quiet time", async () => {
  await verify(await sign());
  answer = { status: 503 };
  now += jwksFreshMs;
  await verify(await sign());
  publish("next");
  now += 6 * 3_600_000;
  expect((await refusal(sign())).message).toContain("no ES256 key");
});

test("[L12] a key that was taken away counts no more once the setting is another", async () => {
  await verify(await sign());
  publish("next");
  auth = { ...auth, id: `after ${auth.id}` };
  expect((await refusal(sign())).message).toContain("no ES256 key");
});

test("[L12] a JWT is remembered as long as its key counts", async () => {
  await verify(await sign());
  now += jwksFreshMs - 1;
  const token = await sign({ claims: { jti: "late" } });
  await verify(token);
  expect([now, now + 1].map((at) => provenJwt(token, ["wsp_1"], at) === undefined)).toEqual([false, true]);
  await vi.waitUntil(() => asked === 2);
});

test("[L12] [S4] key ids that nobody has make at most one fetch in half a minute", async () => {
  await verify(await sign());
  now += jwksCooldownMs;
  const guesses = Array.from({ length: 50 }, (_, at) => refusal(sign({ kid: `guess ${at}` })));
  for (const { code, message } of await Promise.all(guesses)) {
    expect([code, message]).toEqual(["unauthorized", expect.stringContaining("guess")]);
  }
  expect(asked).toBe(2);
  await refusal(sign({ kid: "another" }));
  expect(asked).toBe(2);
});

test("[L12] [S4] a key of another algorithm, or for encryption, verifies nothing", async () => {
  const { jwk } = pair("RS256");
  for (const changes of [{ alg: "ES256" }, { use: "enc" }, { kid: "ES256" }, { kty: "EC" as const }]) {
    sets += 1;
    auth = { ...auth, jwksUrl: `http://127.0.0.1:${port}/${sets}` };
    answer = { body: JSON.stringify({ keys: [{ ...jwk, ...changes }] }) };
    expect((await refusal(sign({ by: "RS256" }))).code, JSON.stringify(changes)).toBe("unauthorized");
  }
});

const lies: [string, Answer, string][] = [
  ["is down", { status: 503 }, "503"],
  ["answers HTML", { type: "text/html", body: "<html>" }, "content type"],
  ["answers no JSON", { body: "<html>" }, "not JSON"],
  ["has 5 MB", { body: `{"keys": [${" ".repeat(5_000_000)}]}` }, "maxJwksBytes"],
  ["has no keys", { body: '{"keys": []}' }, "no set of public keys"],
  ["has a shared secret", { body: '{"keys": [{"kty": "oct", "k": "AAAA"}]}' }, "no set of public keys"],
  ["has a private key", { body: '{"keys": [{"kty": "EC", "d": "AAAA"}]}' }, "private key"],
  ["redirects to 10.0.0.1", { status: 302, location: "http://10.0.0.1/" }, "redirects"],
];

test.each(lies)("[L12] [S4] a JWKS server that %s: who comes is told, known keys go on", async (_, lie, says) => {
  const url = auth.jwksUrl ?? "";
  await verify(await sign());
  answer = lie;
  now += jwksFreshMs;
  await verify(await sign({ claims: { jti: "stale" } }));
  await vi.waitUntil(() => asked === 2);
  now += jwksStaleMs;
  const { code, message } = await refusal(sign({ claims: { jti: "older" } }));
  expect([code, message]).toEqual(["unavailable", expect.stringContaining(says)]);
  await expect(fetchJwks(url, { fetch: globalThis.fetch, allowLoopback: true })).rejects.toThrow(says);
});

test("[L12] a slow JWKS server holds up nobody whose key is known", async () => {
  await verify(await sign());
  answer = { hangs: "answer" };
  now += jwksFreshMs;
  const begun = performance.now();
  await verify(await sign({ claims: { jti: "meanwhile" } }));
  expect(performance.now() - begun).toBeLessThan(1000);
  await vi.waitUntil(() => asked === 2);
});

test.each<[string, Answer]>([
  ["never", { hangs: "answer" }],
  ["without an end", { hangs: "body" }],
])("[L12] [S4] if a JWKS server answers %s, who comes first is told so in time", async (_, slow) => {
  answer = slow;
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const told = refusal(sign());
  await vi.waitUntil(() => asked === 1);
  await vi.advanceTimersByTimeAsync(2 * jwksTimeoutMs);
  const { code, message } = await told;
  expect([code, message]).toEqual(["unavailable", expect.stringContaining("cannot be had")]);
});

test("[S3] [L12] outside development a JWKS on loopback or in a private network is not asked", async () => {
  for (const url of [auth.jwksUrl ?? "", "https://10.0.0.1/jwks", "http://issuer.example/jwks"]) {
    await expect(fetchJwks(url, { fetch: globalThis.fetch, allowLoopback: false })).rejects.toThrow(/address|https/);
  }
  expect(asked).toBe(0);
});

test("[L12] a JWT that our own issuer made is none of theirs", async () => {
  const key = await importJWK({ kty: "oct", k: "A".repeat(43) }, "HS256");
  const own = await new SignJWT({ wsp: "wsp_1", sub: "ent_1" }).setProtectedHeader({ alg: "HS256" }).sign(key);
  expect([jwtIn(own), jwtIn("x.y.z"), jwtIn("sk_x")]).toEqual([undefined, undefined, undefined]);
});
