import { mintToken } from "../auth/tokens.ts";
import { CreateToken, Token } from "../protocol/workspace.ts";
import { isoTime, systemClock } from "../shared/clock.ts";
import { ColloquyError, unwrap } from "../shared/errors.ts";
import { workspaceOf } from "./http-context.ts";
import { Resource } from "./route.ts";

export const tokens = new Resource("Entities");

tokens.route("POST /v1/tokens", {
  summary: "Mint a token for a person or a service",
  access: "workspace",
  body: CreateToken,
  status: 201,
  answers: [Token, "The token"],
  problems: ["unknown_reference"],
  handle: async ({ context, workspaceId, body: { entityId, expiresInSeconds } }) => {
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
    return { token, expiresAt: isoTime(expiresAt) };
  },
});
