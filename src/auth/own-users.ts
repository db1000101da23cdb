import { decodeJwt, decodeProtectedHeader, errors, type JWTPayload, jwtVerify } from "jose";
import * as z from "zod";
import type { Auth, Subject } from "../protocol/own-users.ts";
import { cleanName } from "../protocol/text.ts";
import { ColloquyError } from "../shared/errors.ts";
import { ExpiringMap } from "./expiring-map.ts";
import { type JwksSurroundings, jwksFreshMs, jwtAlgorithms, signingKey } from "./jwks.ts";
import type { Proven } from "./tokens.ts";

/**
 * JWTs of a customer's own issuer, for the people of one workspace (`PUT /v1/workspace/auth`).
 *
 * Invariants
 * 1. The algorithm is one of three that sign by a private key, and the key's own; nothing that a token says chooses another.
 * 2. A token that was verified is remembered with its workspace as long as its key counts, for `jwksFreshMs` at most.
 */
const skewSeconds = 60;
const maxRemembered = 10_000;
const maxCharacters = 8192;

const refused = (detail: string, cause?: unknown): ColloquyError =>
  new ColloquyError("unauthorized", detail, { cause });
const newOne = "get a new one from your issuer";

const remembered = new ExpiringMap<{ proven: Proven; until: number }>(jwksFreshMs, maxRemembered);
const placeOf = (named: Named, token: string): string => `${named.join()} ${token}`;

/** The workspaces that a request names beside its JWT: by `x-workspace-id`, and by its host. */
export type Named = readonly string[];

const Hosts = z.record(z.string(), z.string());

/** The workspace of an address's host, where the deployment maps one. Throws `unavailable` for a map that cannot be read. */
export const workspaceOfHost = (map: string | undefined, url: string): string | undefined => {
  if (!map) return undefined;
  try {
    return new Map(Object.entries(Hosts.parse(JSON.parse(map)))).get(new URL(url).hostname);
  } catch (cause) {
    const form = 'The operator has to correct it: {"acme.example.com": "wsp_…"}.';
    throw new ColloquyError("unavailable", `WORKSPACE_HOSTS of this deployment cannot be read. ${form}`, { cause });
  }
};

/** What an earlier request proved by this JWT. It named the same workspaces. */
export const provenJwt = (token: string, named: Named, now: number): Proven | undefined => {
  const { proven, until = 0 } = remembered.get(placeOf(named, token)) ?? {};
  return proven && Math.min(until, proven.expiresAt + skewSeconds * 1000) > now ? proven : undefined;
};

/** For a JWT whose conditions no longer hold: it is verified anew when it comes again. */
export const forgetJwt = (token: string, named: Named): void => remembered.delete(placeOf(named, token));

export type Jwt = { token: string; alg: string; kid?: string | undefined; payload: JWTPayload };

/** The bearer as a customer's JWT, not yet verified; undefined where it is none. Ours are HS256 and name no issuer. */
export const jwtIn = (token: string): Jwt | undefined => {
  try {
    const { alg = "", kid } = decodeProtectedHeader(token);
    const payload = decodeJwt(token);
    const isTheirs = jwtAlgorithms.includes(alg) || payload.iss !== undefined || /^none$/i.test(alg);
    return isTheirs ? { token, alg, kid, payload } : undefined;
  } catch {
    return undefined;
  }
};

export type OwnUsers = JwksSurroundings & {
  isWorkspace(id: string): boolean;
  /** The setting of a workspace, as it knows it; undefined where it takes no such tokens. */
  authOf(workspaceId: string): Promise<Auth | undefined>;
  entityOf(workspaceId: string, subject: Omit<Subject, "newId">): Promise<{ entityId: string; generation: number }>;
};

const Claims = z.object({
  // Storage keeps all texts that are not well-formed alike, and no two people are one.
  sub: z
    .string()
    .min(1)
    .max(256)
    .refine((sub) => sub.isWellFormed()),
  exp: z.number(),
  iat: z.number().optional(),
  name: z.unknown().optional(),
});

const failureOf = (error: unknown, { issuer, audience }: Auth): ColloquyError => {
  if (error instanceof ColloquyError) return error;
  if (error instanceof errors.JWTExpired) return new ColloquyError("token_expired", `The JWT has expired: ${newOne}.`);
  if (error instanceof errors.JWTClaimValidationFailed) {
    const wanted: Record<string, string> = {
      iss: ` It must be ${JSON.stringify(issuer)}.`,
      aud: ` It must name ${JSON.stringify(audience)}.`,
      nbf: " It is not valid yet.",
    };
    return refused(`The JWT's claim ${error.claim} is missing or wrong.${wanted[error.claim] ?? ""}`, error);
  }
  return refused(`The JWT's signature or form is not valid: ${newOne}.`, error);
};

/** What a customer's JWT proves. Throws `unauthorized`, `token_expired`, `unavailable`, and what `entityOf` throws. */
export const verifyJwt = async (jwt: Jwt, named: Named, users: OwnUsers): Promise<Proven> => {
  const { token, alg, kid, payload } = jwt;
  if (!jwtAlgorithms.includes(alg)) {
    throw refused(
      `A JWT of alg ${JSON.stringify(alg.slice(0, 16))} is not taken: sign it by ${jwtAlgorithms.join(", ")}.`,
    );
  }
  if (token.length > maxCharacters) throw refused(`A JWT has at most ${maxCharacters} characters: leave claims out.`);
  const wsp = payload.wsp ?? undefined;
  const [workspaceId, ...others] = new Set(wsp === undefined ? named : [...named, wsp]);
  if (typeof workspaceId !== "string" || !users.isWorkspace(workspaceId)) {
    throw refused("The JWT names no workspace: send X-Workspace-Id: wsp_…, or give it the same as a claim wsp.");
  }
  if (others.length > 0) {
    throw refused(
      "X-Workspace-Id, the JWT's claim wsp and this host do not name one workspace: leave out what is wrong.",
    );
  }
  const auth = await users.authOf(workspaceId);
  if (!auth) throw refused("This workspace takes no JWTs of its own users: it sets that by PUT /v1/workspace/auth.");
  try {
    const { issuer, audience } = auth;
    const { key, until } = await signingKey(auth, { alg, kid }, users);
    const verified = await jwtVerify(token, key, {
      ...{ algorithms: [alg], issuer, audience, clockTolerance: skewSeconds, currentDate: new Date(users.now()) },
      requiredClaims: ["exp", "sub"],
    });
    const claims = Claims.safeParse(verified.payload);
    if (!claims.success) throw refused("The JWT's sub must be a well-formed text of 1 to 256 characters.");
    const { sub, exp, iat = 0, name } = claims.data;
    // Such a JWT would outlive every sign-out until that time.
    if (iat * 1000 > users.now() + skewSeconds * 1000) {
      throw refused("The JWT's iat lies ahead of our clock by over a minute: correct the issuer's clock.");
    }
    const subject = { authId: auth.id, externalId: sub, name: cleanName(name), issuedAt: iat * 1000 };
    const entity = await users.entityOf(workspaceId, subject);
    const proven = { workspaceId, ...entity, authId: auth.id, expiresAt: Math.floor(exp * 1000) };
    remembered.set(placeOf(named, token), { proven, until });
    return proven;
  } catch (error) {
    throw failureOf(error, auth);
  }
};
