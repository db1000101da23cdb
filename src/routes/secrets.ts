import { createRoute, z } from "@hono/zod-openapi";
import { seal } from "../auth/sealing.ts";
import { Label } from "../protocol/text.ts";
import { PutSecret } from "../protocol/workspace.ts";
import { unwrap } from "../shared/errors.ts";
import { access } from "./access.ts";
import { createRoutes, workspaceOf } from "./house.ts";
import { answers, badBody, jsonBody, listOf, nothing, onePage, problems } from "./route-parts.ts";

const tags = ["Keys and secrets"];
const params = z.object({ name: Label.meta({ description: "The secret's name", example: "OPENAI_API_KEY" }) });

/** What tools and models may use: written here, never read back. */
export const secrets = createRoutes();

secrets.openapi(
  createRoute({
    method: "get",
    path: "/v1/workspace/secrets",
    tags,
    summary: "The names of the workspace's secrets",
    ...access("secretKey"),
    responses: { 200: answers(listOf(z.object({ name: Label })), "The names, never the values"), ...problems() },
  }),
  async (context) => {
    const names = unwrap(await workspaceOf(context).secretNames());
    return context.json(onePage(names.map((name) => ({ name }))), 200);
  },
);

secrets.openapi(
  createRoute({
    method: "put",
    path: "/v1/workspace/secrets/{name}",
    tags,
    summary: "Write a secret",
    ...access("secretKey"),
    request: { params, body: jsonBody(PutSecret) },
    responses: { 204: nothing, ...problems("limit_reached", ...badBody) },
  }),
  async (context) => {
    const { name } = context.req.valid("param");
    const { workspaceId } = context.var.principal;
    const sealed = await seal(context.env.SIGNING_SECRET, workspaceId, name, context.req.valid("json").value);
    unwrap(await workspaceOf(context).putSecret(name, sealed));
    return context.body(null, 204);
  },
);

secrets.openapi(
  createRoute({
    method: "delete",
    path: "/v1/workspace/secrets/{name}",
    tags,
    summary: "Delete a secret",
    ...access("secretKey"),
    request: { params },
    responses: { 204: nothing, ...problems("not_found", "invalid_request") },
  }),
  async (context) => {
    unwrap(await workspaceOf(context).deleteSecret(context.req.valid("param").name));
    return context.body(null, 204);
  },
);
