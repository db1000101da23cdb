import { importJWK } from "jose";
import { type Auth, type Jwk, JwkSet, maxJwksBytes } from "../protocol/own-users.ts";
import { ColloquyError } from "../shared/errors.ts";
import { fetchOutgoing } from "../shared/fetch-outgoing.ts";
import { timeoutSignal, withTimeout } from "../shared/timeouts.ts";

/**
 * The public keys of customers' issuers, by the setting that names the address of each set, in the memory of one isolate.
 *
 * Invariants
 * 1. A set is fetched once at a time, and at most once in `jwksCooldownMs`, whatever key ids tokens name.
 * 2. Where a fetch fails, the keys of before count for `jwksStaleMs`. An answer that is no set changes nothing.
 * 3. Who names a key that is there waits for the issuer `jwksWaitMs` at most, where the set is old and its server did not
 *    fail last. A failure counts for `jwksFreshMs`.
 */
export const jwksFreshMs = 10 * 60_000;
const jwksAnewMs = jwksFreshMs / 2;
export const jwksStaleMs = 24 * 60 * 60_000;
export const jwksCooldownMs = 30_000;
export const jwksTimeoutMs = 5000;
const jwksWaitMs = 500;
const maxSets = 1000;

type Held = { keys: Jwk[]; at: number; triedAt: number; fault: string; pending?: Promise<void> };

export type JwksSurroundings = {
  now: () => number;
  fetch: typeof globalThis.fetch;
  allowLoopback: boolean;
  /** Keeps the isolate alive for a fetch whose asker may go. */
  waitUntil: (work: Promise<unknown>) => void;
};

const kinds: Record<string, { kty: Jwk["kty"]; crv?: string }> = {
  RS256: { kty: "RSA" },
  ES256: { kty: "EC", crv: "P-256" },
  EdDSA: { kty: "OKP", crv: "Ed25519" },
};
export const jwtAlgorithms = Object.keys(kinds);

const held = new Map<string, Held>();
const imported = new WeakMap<Jwk, Map<string, ReturnType<typeof importJWK>>>();

/** The text of an answer of at most `maxJwksBytes`: the rest is not read. */
const boundedText = async (response: Response): Promise<string> => {
  const tooLong = new Error(`it has more than ${maxJwksBytes} bytes (maxJwksBytes)`);
  if (Number(response.headers.get("content-length") ?? 0) > maxJwksBytes) throw tooLong;
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of response.body ?? []) {
    bytes += part.byteLength;
    if (bytes > maxJwksBytes) throw tooLong;
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
};

const jsonIn = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("it is not JSON");
  }
};

/** The keys of a set at an address. Throws what is wrong with it. */
export const fetchJwks = async (
  url: string,
  { fetch, allowLoopback }: Omit<JwksSurroundings, "now" | "waitUntil">,
): Promise<Jwk[]> => {
  const request = { method: "GET", url, headers: [["accept", "application/json"] as [string, string]] };
  const signal = timeoutSignal(jwksTimeoutMs);
  const answer = await fetchOutgoing(request, { fetch, allowLoopback, signal });
  if (!answer.ok) throw new Error(answer.reason);
  const { response } = answer;
  try {
    if (response.status !== 200) throw new Error(`it answered ${response.status}`);
    const type = response.headers.get("content-type") ?? "";
    if (!/^application\/(?:[a-z.-]+\+)?json\b/i.test(type)) throw new Error("its content type is not JSON");
    const set = JwkSet.safeParse(jsonIn(await withTimeout(jwksTimeoutMs, boundedText(response))));
    if (set.success) return set.data.keys;
    throw new Error(`it is no set of public keys: ${set.error.issues[0]?.message}`);
  } finally {
    if (!response.bodyUsed) await response.body?.cancel().catch(() => undefined);
  }
};

const refresh = async (one: Held, url: string, surroundings: JwksSurroundings): Promise<void> => {
  try {
    Object.assign(one, { keys: await fetchJwks(url, surroundings), at: surroundings.now(), fault: "" });
  } catch (error) {
    one.fault = error instanceof Error ? error.message : "it failed";
  }
};

const heldFor = (settingId: string): Held => {
  const known = held.get(settingId);
  if (known) return known;
  for (const oldest of held.keys()) {
    if (held.size < maxSets) break;
    held.delete(oldest);
  }
  const one: Held = { keys: [], at: Number.NEGATIVE_INFINITY, triedAt: Number.NEGATIVE_INFINITY, fault: "" };
  held.set(settingId, one);
  return one;
};

export type KeyName = { alg: string; kid?: string | undefined };

const fits = (jwk: Jwk, { alg, kid }: KeyName): boolean =>
  jwk.kty === kinds[alg]?.kty &&
  (jwk.crv === undefined || jwk.crv === kinds[alg]?.crv) &&
  (jwk.alg === undefined || jwk.alg === alg) &&
  jwk.use !== "enc" &&
  (kid === undefined || jwk.kid === kid);

const refused = (detail: string, cause?: unknown): ColloquyError =>
  new ColloquyError("unauthorized", detail, { cause });

/** The one of these that fit what a token names; undefined where there is none. */
const chosen = ([jwk, ...others]: Jwk[]): Jwk | undefined => {
  if (others.length === 0) return jwk;
  throw refused("Several of the issuer's keys could have signed the token: name one by kid.");
};

const keyIn = async (jwk: Jwk, alg: string): Promise<Awaited<ReturnType<typeof importJWK>>> => {
  const known = imported.get(jwk) ?? new Map();
  imported.set(jwk, known);
  const key = known.get(alg) ?? importJWK(jwk, alg);
  known.set(alg, key);
  try {
    return await key;
  } catch (cause) {
    known.delete(alg);
    throw refused("The issuer's key of the token cannot be used: see that it is whole, and of its algorithm.", cause);
  }
};

const unknownKey = ({ alg, kid }: KeyName): ColloquyError =>
  refused(
    `The issuer has no ${alg} key ${kid === undefined ? "" : `${JSON.stringify(kid.slice(0, 64))} `}that signs: sign by one of its JWKS.`,
  );

/** The key that signed a token, as it says, and until when it counts. Throws `unauthorized`; `unavailable` without a set. */
export const signingKey = async (
  source: Pick<Auth, "id" | "jwksUrl" | "jwks">,
  name: KeyName,
  surroundings: JwksSurroundings,
): Promise<{ key: Awaited<ReturnType<typeof importJWK>>; until: number }> => {
  const { jwksUrl: url, jwks } = source;
  if (url === undefined) {
    const jwk = chosen((jwks?.keys ?? []).filter((each) => fits(each, name)));
    if (!jwk) throw unknownKey(name);
    return { key: await keyIn(jwk, name.alg), until: Number.POSITIVE_INFINITY };
  }
  const one = heldFor(source.id);
  const ageOf = (at: number): number => surroundings.now() - at;
  const meant = (): Jwk[] => one.keys.filter((each) => ageOf(one.at) < jwksStaleMs && fits(each, name));
  const isClear = (): boolean => meant().length === 1;
  const mayFetch = one.pending === undefined && ageOf(one.triedAt) >= jwksCooldownMs;
  if (mayFetch && (!isClear() || ageOf(one.at) >= jwksAnewMs)) {
    if (ageOf(one.triedAt) >= jwksFreshMs) one.fault = "";
    one.triedAt = surroundings.now();
    one.pending = refresh(one, url, surroundings).finally(() => {
      delete one.pending;
    });
    surroundings.waitUntil(one.pending);
  }
  const isOld = ageOf(one.at) >= jwksFreshMs && one.fault === "";
  // The asker who began it may be gone, and its promise with it.
  if (one.pending !== undefined && (isOld || !isClear())) {
    await withTimeout(isClear() ? jwksWaitMs : 2 * jwksTimeoutMs, one.pending).catch(() => undefined);
  }
  const jwk = chosen(meant());
  const until = Math.max(one.at + jwksFreshMs, one.fault === "" ? 0 : one.triedAt + jwksCooldownMs);
  if (jwk) return { key: await keyIn(jwk, name.alg), until };
  if (ageOf(one.at) < jwksStaleMs) throw unknownKey(name);
  const detail = `The issuer's keys cannot be had (${one.fault || "it has not answered yet"}): see to jwksUrl, and try again in ${jwksCooldownMs / 1000} s.`;
  throw new ColloquyError("unavailable", detail, { retryAfterMs: jwksCooldownMs });
};
