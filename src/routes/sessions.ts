import * as z from "zod";
import { hashSecretKey, mintSignInCode, workspaceOfSignInCode } from "../auth/credentials.ts";
import {
  isOverHttps,
  ownOrigin,
  requireOwnOrigin,
  sessionCookie,
  sessionOfAnother,
  sessionToken,
} from "../auth/session-cookie.ts";
import { mintToken, type Proven, verifyToken } from "../auth/tokens.ts";
import { forgetCredentials, livingCredential } from "../auth/verdicts.ts";
import type { OfferedSession } from "../protocol/credential-rpc.ts";
import type { Entity } from "../protocol/entity.ts";
import { impersonatorOf, makerOf } from "../protocol/principal.ts";
import type { WorkspaceRpc } from "../protocol/rpc.ts";
import { Session, SignIn, SignInLink, sessionSeconds } from "../protocol/workspace.ts";
import { isoTime, systemClock } from "../shared/clock.ts";
import { ColloquyError, type Outcome, unwrap } from "../shared/errors.ts";
import { countingStrangers } from "./access.ts";
import { type HttpContext, workspaceOf } from "./http-context.ts";
import { Resource } from "./route.ts";

/**
 * Signing in to the page: a link holds a one-time code, which becomes a cookie that no script reads (C14).
 *
 * Invariants
 * 1. A browser that is signed in takes no other session before its person has said so. Asking does not use up the code.
 * 2. A session that is left, for none or for another, is ended: its cookie counts for nobody, wherever it was copied to.
 * 3. A code is looked up only in a workspace that was issued here, and not for an address that guesses.
 */
export const sessions = new Resource("Sessions");

sessions.route("POST /v1/entities/{entityId}/sign-in-links", {
  summary: "Make a link that signs a person in to the page",
  description: "It works once, for ten minutes. Send it to that person only.",
  access: "workspace",
  scope: "tokens",
  status: 201,
  answers: [SignInLink, "The link"],
  problems: ["not_found", "conflict", "limit_reached"],
  handle: async ({ context, workspaceId, principal, params: { entityId } }) => {
    const code = mintSignInCode(workspaceId);
    const madeBy = impersonatorOf(principal, entityId) ?? null;
    const issuer = principal.kind === "key" ? principal.keyId : principal.entityId;
    const by = makerOf(principal);
    const made = await workspaceOf(context).addSignInCode({ hash: hashSecretKey(code), entityId, madeBy, issuer, by });
    const { expiresAt } = unwrap(made);
    return {
      link: `${ownOrigin(context.req.raw, context.env.PUBLIC_ORIGIN)}/#sign-in=${code}`,
      expiresAt: isoTime(expiresAt),
    };
  },
});

/** A workspace's answer about a code. A workspace that was never made knows of none. */
const offerOf = (outcome: Outcome<OfferedSession>): OfferedSession => {
  if (outcome.ok || outcome.problem.code !== "not_found") return unwrap(outcome);
  throw new ColloquyError("unauthorized", "The sign-in code is not valid: ask for a new link.");
};

const setCookie = (context: HttpContext, token: string, seconds: number): void => {
  const isSecure = isOverHttps(context.req.raw, context.env.PUBLIC_ORIGIN);
  context.header("set-cookie", sessionCookie(isSecure, token, seconds));
};

type Claims = Proven & { sessionId: string };

/** The claims of the request's cookie; null where there is none that counts, or its time is over. */
const claimsIn = async ({ env, req, get }: HttpContext): Promise<Claims | null> => {
  const token = sessionToken(req.raw, env.PUBLIC_ORIGIN);
  if (token === undefined) return null;
  try {
    const claims = await verifyToken(env, get("ids"), token, systemClock.now());
    const { sessionId } = claims;
    return sessionId === undefined ? null : { ...claims, sessionId };
  } catch (error) {
    if (error instanceof ColloquyError && ["unauthorized", "token_expired"].includes(error.code)) return null;
    throw error;
  }
};

/** The entity, where there is one. */
const entityAt = async (workspace: WorkspaceRpc, id: string): Promise<Entity | null> => {
  const entity = await workspace.entity(id);
  return !entity.ok && entity.problem.code === "not_found" ? null : unwrap(entity);
};

/** The session, while it lives. A removed person has none. */
const sessionOf = async ({ env }: HttpContext, claims: Claims | null): Promise<Session | null> => {
  if (!claims) return null;
  const { workspaceId, expiresAt, ...credential } = claims;
  const workspace = env.WORKSPACE.getByName(workspaceId);
  const living = await livingCredential(workspace, workspaceId, credential);
  const entity = living && (await entityAt(workspace, claims.entityId));
  if (!living || !entity) return null;
  const end = Math.min(expiresAt, living.until);
  return { entity, expiresAt: isoTime(end), madeBy: await makerIn(workspace, claims.impersonatedBy) };
};

/** The maker of a session for another person, as that person is told. */
const makerIn = async (workspace: WorkspaceRpc, id: string | undefined | null): Promise<Session["madeBy"]> => {
  const maker = id ? await entityAt(workspace, id) : null;
  return maker && { id: maker.id, name: maker.name };
};

/** A workspace that is over has no session any more. */
const end = async ({ env }: HttpContext, { workspaceId, sessionId }: Claims): Promise<void> => {
  const ended = await env.WORKSPACE.getByName(workspaceId).endSession(sessionId);
  if (!ended.ok && ended.problem.code !== "not_found") unwrap(ended);
  forgetCredentials(workspaceId);
};

sessions.route("GET /v1/session", {
  summary: "Who is signed in by this browser's cookie",
  access: "session",
  answers: [z.object({ session: Session.nullable() }), "The session, or null"],
  problems: ["foreign_origin"],
  handle: async ({ context }) => {
    requireOwnOrigin(context.req.raw, context.env.PUBLIC_ORIGIN);
    return { session: await sessionOf(context, await claimsIn(context)) };
  },
});

sessions.route("POST /v1/session", {
  summary: "Sign this browser in by a link's code",
  description:
    "Sets a cookie that no script can read. A browser that is signed in as another person, or as this one but not by the admin who made the link, answers `signed_in` first, and the code stays good: ask that person, then send `replace`.",
  access: "session",
  body: SignIn,
  status: 201,
  answers: [z.object({ session: Session }), "The session"],
  problems: ["unauthorized", "foreign_origin", "signed_in"],
  handle: async ({ context, body: { code, replace } }) => {
    const { env, req } = context;
    requireOwnOrigin(req.raw, env.PUBLIC_ORIGIN);
    const before = await claimsIn(context);
    const issuedAt = systemClock.now();
    const session = { id: crypto.randomUUID(), expiresAt: issuedAt + sessionSeconds * 1000 };
    const { workspaceId, entity, madeBy, ...hangsOn } = await countingStrangers(context, async (beforeLookUp) => {
      beforeLookUp();
      const workspaceId = workspaceOfSignInCode(code) ?? "";
      if (!context.get("ids").isIssued("wsp", workspaceId)) {
        throw new ColloquyError("unauthorized", "That is no sign-in code: take it from a sign-in link, whole.");
      }
      const workspace = env.WORKSPACE.getByName(workspaceId);
      const hash = hashSecretKey(code);
      const current = replace ? null : await sessionOf(context, before);
      if (current) {
        const { entity, madeBy } = offerOf(await workspace.offeredSession(hash));
        if (entity.id !== current.entity.id || (madeBy !== null && madeBy !== current.madeBy?.id)) {
          const maker = await makerIn(workspace, madeBy);
          const how = maker ? ` by ${maker.name}'s link instead, and approve nothing?` : " instead?";
          const detail = `You are signed in as ${current.entity.name}. Sign in as ${entity.name}${how}`;
          throw new ColloquyError("signed_in", detail);
        }
      }
      return { workspaceId, ...offerOf(await workspace.useSignInCode(hash, session)) };
    });
    if (before) await end(context, before);
    const token = await mintToken(env, {
      ...{
        workspaceId,
        entityId: entity.id,
        sessionId: session.id,
        issuedAt,
        expiresAt: session.expiresAt,
        ...hangsOn,
      },
      ...(madeBy !== null && { impersonatedBy: madeBy }),
    });
    setCookie(context, token, sessionSeconds);
    const maker = await makerIn(env.WORKSPACE.getByName(workspaceId), madeBy);
    return { session: { entity, expiresAt: isoTime(session.expiresAt), madeBy: maker } };
  },
});

sessions.route("DELETE /v1/session", {
  summary: "Sign this browser out",
  access: "session",
  description:
    "The session ends: a copy of its cookie counts no more, at once here and within 60 s everywhere, and its sockets close. With `X-Entity-Id`, only where that is who is signed in.",
  problems: ["foreign_origin", "signed_in"],
  handle: async ({ context }) => {
    requireOwnOrigin(context.req.raw, context.env.PUBLIC_ORIGIN);
    const claims = await claimsIn(context);
    const shown = context.req.header("x-entity-id");
    if (claims && shown !== undefined && shown !== claims.entityId) throw sessionOfAnother();
    if (claims) await end(context, claims);
    setCookie(context, "", 0);
  },
});
