import { z } from "zod";
import { hashSecretKey, mintSignInCode, workspaceOfSignInCode } from "../auth/credentials.ts";
import { beginSession, endSession, requireOwnOrigin, sessionOfAnother, sessionToken } from "../auth/session-cookie.ts";
import { mintToken, verifyToken } from "../auth/tokens.ts";
import { impersonatorOf } from "../protocol/principal.ts";
import type { OfferedSession } from "../protocol/rpc.ts";
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
 * 1. A browser that is signed in takes no other session before its person has said so; the code is not used up by asking.
 * 2. A code is looked up only in a workspace that was issued here, and not for an address that guesses.
 */
export const sessions = new Resource("Sessions");

sessions.route("POST /v1/entities/{entityId}/sign-in-links", {
  summary: "Make a link that signs a person in to the page",
  description: "It works once, for ten minutes. Send it to that person only.",
  access: "workspace",
  status: 201,
  answers: [SignInLink, "The link"],
  problems: ["not_found", "conflict", "limit_reached"],
  handle: async ({ context, workspaceId, principal, params: { entityId } }) => {
    const code = mintSignInCode(workspaceId);
    const madeBy = impersonatorOf(principal, entityId) ?? null;
    const made = await workspaceOf(context).addSignInCode({ hash: hashSecretKey(code), entityId, madeBy });
    const { expiresAt } = unwrap(made);
    return { link: new URL(`/#sign-in=${code}`, context.req.url).href, expiresAt: isoTime(expiresAt) };
  },
});

/** What a workspace says of a code. One that was never made knows of none. */
const offerOf = (outcome: Outcome<OfferedSession>): OfferedSession => {
  if (outcome.ok || outcome.problem.code !== "not_found") return unwrap(outcome);
  throw new ColloquyError("unauthorized", "The sign-in code is not valid: ask for a new link.");
};

/** Throws `signed_in` where the page takes the session for another person's. */
const requireOwn = ({ req }: HttpContext, session: Session | null): void => {
  const entityId = req.header("x-entity-id");
  if (session && entityId !== undefined && entityId !== session.entity.id) throw sessionOfAnother();
};

/** The session of the request's cookie; null where there is none, it has run out or its person was removed. */
const currentSession = async ({ env, req, get }: HttpContext): Promise<Session | null> => {
  const token = sessionToken(req.raw);
  if (token === undefined) return null;
  try {
    const now = systemClock.now();
    const { workspaceId, entityId, expiresAt } = await verifyToken(env.SIGNING_SECRET, get("ids"), token, now);
    const entity = unwrap(await env.WORKSPACE.getByName(workspaceId).entity(entityId));
    return { entity, expiresAt: isoTime(expiresAt) };
  } catch (error) {
    const isOver =
      error instanceof ColloquyError && ["unauthorized", "token_expired", "not_found"].includes(error.code);
    if (isOver) return null;
    throw error;
  }
};

sessions.route("GET /v1/session", {
  summary: "Who is signed in by this browser's cookie",
  access: "session",
  answers: [z.object({ session: Session.nullable() }), "The session, or null"],
  problems: ["foreign_origin"],
  handle: async ({ context }) => {
    requireOwnOrigin(context.req.raw);
    return { session: await currentSession(context) };
  },
});

sessions.route("POST /v1/session", {
  summary: "Sign this browser in by a link's code",
  description:
    "Sets a cookie that no script can read. A browser that is signed in as another person answers `signed_in` first, and the code stays good: ask that person, then send `replace`.",
  access: "session",
  body: SignIn,
  status: 201,
  answers: [z.object({ session: Session }), "The session"],
  problems: ["unauthorized", "foreign_origin", "signed_in"],
  handle: async ({ context, body: { code, replace } }) => {
    const { env, req } = context;
    requireOwnOrigin(req.raw);
    const { workspaceId, entity, madeBy } = await countingStrangers(context, async (beforeLookUp) => {
      beforeLookUp();
      const workspaceId = workspaceOfSignInCode(code) ?? "";
      if (!context.get("ids").isIssued("wsp", workspaceId)) {
        throw new ColloquyError("unauthorized", "That is no sign-in code: take it from a sign-in link, whole.");
      }
      const workspace = env.WORKSPACE.getByName(workspaceId);
      const hash = hashSecretKey(code);
      const current = replace ? null : await currentSession(context);
      if (current) {
        const { entity } = offerOf(await workspace.offeredSession(hash));
        if (entity.id !== current.entity.id) {
          throw new ColloquyError(
            "signed_in",
            `You are signed in as ${current.entity.name}. Sign in as ${entity.name} instead?`,
          );
        }
      }
      return { workspaceId, ...offerOf(await workspace.useSignInCode(hash)) };
    });
    const issuedAt = systemClock.now();
    const expiresAt = issuedAt + sessionSeconds * 1000;
    const token = await mintToken(env.SIGNING_SECRET, {
      ...{ workspaceId, entityId: entity.id, issuedAt, expiresAt },
      ...(madeBy !== null && { impersonatedBy: madeBy }),
    });
    context.header("set-cookie", beginSession(req.raw, token, sessionSeconds));
    return { session: { entity, expiresAt: isoTime(expiresAt) } };
  },
});

sessions.route("DELETE /v1/session", {
  summary: "Sign this browser out",
  access: "session",
  description: "With `X-Entity-Id`, only where that is who is signed in.",
  problems: ["foreign_origin", "signed_in"],
  handle: async ({ context }) => {
    requireOwnOrigin(context.req.raw);
    requireOwn(context, await currentSession(context));
    context.header("set-cookie", endSession(context.req.raw));
  },
});
