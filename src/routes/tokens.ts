import { createRoute } from "@hono/zod-openapi";
import { mintToken } from "../auth/tokens.ts";
import { CreateToken, Token } from "../protocol/workspace.ts";
import { isoTime, systemClock } from "../shared/clock.ts";
import { ColloquyError, unwrap } from "../shared/errors.ts";
import { access } from "./access.ts";
import { createRoutes, workspaceOf } from "./house.ts";
import { answers, badBody, jsonBody, problems } from "./route-parts.ts";

export const tokens = createRoutes().openapi(
  createRoute({
    method: "post",
    path: "/v1/tokens",
    tags: ["Entities"],
    summary: "Mint a token for a person or a service",
    ...access("workspace"),
    request: { body: jsonBody(CreateToken) },
    responses: { 201: answers(Token, "The token"), ...problems("unknown_reference", ...badBody) },
  }),
  async (context) => {
    const { entityId, expiresInSeconds } = context.req.valid("json");
    const { workspaceId } = context.var.principal;
    const [entity] = unwrap(await workspaceOf(context).resolve([entityId]));
    if (entity?.type === "agent") {
      throw new ColloquyError(
        "unknown_reference",
        "An agent speaks through its runs: tokens are for people and services.",
      );
    }
    const issuedAt = systemClock.now();
    const expiresAt = issuedAt + expiresInSeconds * 1000;
    const token = await mintToken(context.env.SIGNING_SECRET, { workspaceId, entityId, issuedAt, expiresAt });
    return context.json({ token, expiresAt: isoTime(expiresAt) }, 201);
  },
);
