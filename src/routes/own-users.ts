import * as z from "zod";
import { fetchJwks } from "../auth/jwks.ts";
import { forgetCredentials } from "../auth/verdicts.ts";
import { actorOf } from "../protocol/audit.ts";
import { Auth, PutAuth } from "../protocol/own-users.ts";
import { isoTime, systemClock } from "../shared/clock.ts";
import { ColloquyError, unwrap } from "../shared/errors.ts";
import { type HttpContext, workspaceOf } from "./http-context.ts";
import { Resource } from "./route.ts";

/** Whose JWTs a workspace takes beside its own tokens. */
export const ownUsers = new Resource("Workspace");

const OneAuth = z.object({ auth: Auth.nullable() });

/** A set that cannot be read is refused while somebody is there to mend it. */
const requireReadable = async ({ env }: HttpContext, jwksUrl: string | undefined): Promise<void> => {
  if (jwksUrl === undefined) return;
  try {
    const fetch: typeof globalThis.fetch = (...request) => globalThis.fetch(...request);
    await fetchJwks(jwksUrl, { fetch, allowLoopback: env.ENVIRONMENT === "development" });
  } catch (cause) {
    const message = `cannot be read as a JWKS: ${cause instanceof Error ? cause.message : "it failed"}`;
    throw new ColloquyError("invalid_request", `In the body: jwksUrl ${message}.`, {
      issues: [{ path: "jwksUrl", message }],
      cause,
    });
  }
};

ownUsers.route("PUT /v1/workspace/auth", {
  summary: "Take the JWTs of your own users",
  description:
    "Of RS256, ES256 or EdDSA, with `exp` and `sub`, which is the person's `externalId`. A JWT is sent as the bearer, with `X-Workspace-Id` or a claim `wsp`, or to a host that the deployment maps. With `firstSight: {role}` a person who is not there is made, named by the claim `name`. A changed setting ends who came by the one before. The same again changes nothing.",
  access: "secretKey",
  body: PutAuth,
  answers: [OneAuth, "The setting"],
  handle: async ({ context, principal, workspaceId, body }) => {
    await requireReadable(context, body.jwksUrl);
    const auth = { ...body, id: crypto.randomUUID(), changedAt: isoTime(systemClock.now()) };
    const stored = unwrap(await workspaceOf(context).putAuth(auth, actorOf(principal)));
    forgetCredentials(workspaceId);
    return { auth: stored };
  },
});

ownUsers.route("GET /v1/workspace/auth", {
  summary: "Whose JWTs the workspace takes",
  access: "secretKey",
  answers: [OneAuth, "The setting, or null"],
  handle: async ({ context }) => ({ auth: unwrap(await workspaceOf(context).auth()) }),
});

ownUsers.route("DELETE /v1/workspace/auth", {
  summary: "Take no JWTs any more",
  description: "Who came by one is out: at once here, within 60 s everywhere, on open sockets too. The people stay.",
  access: "secretKey",
  handle: async ({ context, principal, workspaceId }) => {
    unwrap(await workspaceOf(context).deleteAuth(actorOf(principal)));
    forgetCredentials(workspaceId);
  },
});
