import { createRoute, z } from "@hono/zod-openapi";
import { ArchivalEntry, CreateArchival } from "../protocol/archival.ts";
import { unwrap } from "../shared/errors.ts";
import { access } from "./access.ts";
import { agentAt } from "./agents.ts";
import { createRoutes } from "./house.ts";
import { idempotently } from "./idempotent.ts";
import {
  answers,
  badBody,
  badRepeat,
  IdempotencyHeaders,
  jsonBody,
  listOf,
  nothing,
  pageQuery,
  pathId,
  problems,
} from "./route-parts.ts";

const tags = ["Mind"];
const path = "/v1/agents/{agentId}/archival";
const params = z.object({ agentId: pathId("ent", "the agent") });
const entryParams = params.extend({ archivalId: pathId("arch", "the archival entry") });

/** Facts that an agent keeps beyond its context, each with its source. Search finds them. */
export const archival = createRoutes();

archival.openapi(
  createRoute({
    method: "post",
    path,
    tags,
    summary: "Keep a fact in an agent's archive",
    description: "With who said it, where and with which message, as far as that is known. Search finds it.",
    ...access("workspace"),
    request: { params, headers: IdempotencyHeaders, body: jsonBody(CreateArchival) },
    responses: {
      201: answers(ArchivalEntry, "The entry"),
      ...problems("not_found", "limit_reached", "text_too_long", ...badBody, ...badRepeat),
    },
  }),
  async (context) => {
    const { agentId } = context.req.valid("param");
    const { workspaceId } = context.var.principal;
    const body = context.req.valid("json");
    const answer = await idempotently(context, { body, schema: ArchivalEntry }, async (newId) => {
      const id = context.var.ids.deriveOwned("arch", agentId, newId("key"));
      return unwrap(await agentAt(context, agentId).archive(workspaceId, id, body));
    });
    return context.json(answer, 201);
  },
);

archival.openapi(
  createRoute({
    method: "get",
    path,
    tags,
    summary: "An agent's archival entries, newest first",
    ...access("workspace"),
    request: { params, query: pageQuery() },
    responses: {
      200: answers(listOf(ArchivalEntry), "A page"),
      ...problems("not_found", "invalid_request", "invalid_cursor"),
    },
  }),
  async (context) => {
    const stub = agentAt(context, context.req.valid("param").agentId);
    const { workspaceId } = context.var.principal;
    return context.json(unwrap(await stub.archival(workspaceId, context.req.valid("query"))), 200);
  },
);

archival.openapi(
  createRoute({
    method: "delete",
    path: `${path}/{archivalId}`,
    tags,
    summary: "Delete an archival entry",
    ...access("workspace"),
    request: { params: entryParams },
    responses: { 204: nothing, ...problems("not_found") },
  }),
  async (context) => {
    const { agentId, archivalId } = context.req.valid("param");
    unwrap(await agentAt(context, agentId).deleteArchival(context.var.principal.workspaceId, archivalId));
    return context.body(null, 204);
  },
);
