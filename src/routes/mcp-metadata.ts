import * as z from "zod";
import { workspaceOfHost } from "../auth/own-users.ts";
import { ownOrigin } from "../auth/session-cookie.ts";
import { authOf } from "../auth/verdicts.ts";
import { workspaceId } from "../protocol/ids.ts";
import type { HttpContext } from "./http-context.ts";

/**
 * Whose tokens `/mcp` takes, for clients that find that out by themselves (RFC 9728). A workspace names its own issuer
 * by `PUT /v1/workspace/auth`; without one, tokens are those of `POST /v1/tokens` alone.
 */
export const mcpPath = "/mcp";
export const metadataPath = "/.well-known/oauth-protected-resource";

export const McpQuery = z.object({
  workspace: workspaceId.optional().meta({
    description: "As `X-Workspace-Id`: the workspace of a JWT that does not name it, for clients that set no headers",
  }),
});

export const Metadata = z.object({
  resource: z.string(),
  resource_name: z.string(),
  resource_documentation: z.string(),
  bearer_methods_supported: z.array(z.literal("header")),
  authorization_servers: z.array(z.string()).optional(),
});

/** The workspace as the address names it, so that the metadata's address names it too. */
const inAddress = (named: string | undefined): string =>
  named === undefined ? "" : `?workspace=${encodeURIComponent(named)}`;

const originOf = ({ req, env }: HttpContext): string => ownOrigin(req.raw, env.PUBLIC_ORIGIN);

/** Only an address is an issuer that a client can ask for its own metadata. */
const isAddress = (issuer: string): boolean => /^https?:/.test(URL.parse(issuer)?.protocol ?? "");

export const metadataOf = async (
  context: HttpContext,
  inQuery: string | undefined,
): Promise<z.infer<typeof Metadata>> => {
  const { req, env, var: variables } = context;
  const named = inQuery ?? req.header("x-workspace-id") ?? workspaceOfHost(env.WORKSPACE_HOSTS, req.url) ?? "";
  const isIssued = variables.ids.isIssued("wsp", named);
  const auth = isIssued ? await authOf(env.WORKSPACE.getByName(named), named) : undefined;
  const origin = originOf(context);
  return {
    resource: `${origin}${mcpPath}${inAddress(inQuery)}`,
    resource_name: "Colloquy",
    resource_documentation: `${origin}/docs`,
    bearer_methods_supported: ["header"],
    ...(auth && isAddress(auth.issuer) && { authorization_servers: [auth.issuer] }),
  };
};

/** What a refused client is told in `WWW-Authenticate`: where the metadata is. */
export const challengeOf = (context: HttpContext): string => {
  const { req } = context;
  const address = `${originOf(context)}${metadataPath}${mcpPath}${inAddress(req.query("workspace"))}`;
  const error = req.header("authorization") === undefined ? "" : ', error="invalid_token"';
  return `Bearer realm="colloquy", resource_metadata="${address}"${error}`;
};
