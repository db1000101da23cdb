import { createRoute, z } from "@hono/zod-openapi";
import { TriggerAgent } from "../protocol/agent.ts";
import { eventId } from "../protocol/ids.ts";
import { InboxItem } from "../protocol/run.ts";
import { unwrap } from "../shared/errors.ts";
import { access } from "./access.ts";
import { agentAt } from "./agents.ts";
import { createRoutes } from "./house.ts";
import { idempotently, nameOf } from "./idempotent.ts";
import {
  answers,
  badBody,
  badRepeat,
  IdempotencyHeaders,
  idempotencyHeader,
  jsonBody,
  listOf,
  nothing,
  pageQuery,
  pathId,
  problems,
} from "./route-parts.ts";

const AcceptedEvent = z.object({ eventId });
const tags = ["Inbox"];
const params = z.object({ agentId: pathId("ent", "the agent") });
const eventParams = params.extend({ eventId: pathId("evt", "the event") });

/** What came to an agent: its inbox, and the way in for a customer's own services. */
export const inbox = createRoutes();

inbox.openapi(
  createRoute({
    method: "post",
    path: "/v1/agents/{agentId}/trigger",
    tags,
    summary: "Wake an agent with a service's event",
    ...access("workspace"),
    request: { params, headers: IdempotencyHeaders, body: jsonBody(TriggerAgent) },
    responses: {
      202: answers(AcceptedEvent, "The event is in its inbox"),
      ...problems("not_found", "limit_reached", ...badBody, ...badRepeat),
    },
  }),
  async (context) => {
    const stub = agentAt(context, context.req.valid("param").agentId);
    const { principal } = context.var;
    const body = context.req.valid("json");
    const header = context.req.valid("header")[idempotencyHeader];
    // The workspace tells another body; the agent itself makes one event of one key, whatever crashes between.
    const idempotencyKey = header === undefined ? undefined : `${nameOf(principal)} ${header}`;
    const answer = await idempotently(context, { body, schema: AcceptedEvent, status: 202 }, async () =>
      unwrap(await stub.trigger(principal.workspaceId, body, idempotencyKey)),
    );
    return context.json(answer, 202);
  },
);

inbox.openapi(
  createRoute({
    method: "get",
    path: "/v1/agents/{agentId}/inbox",
    tags,
    summary: "An agent's pending and dead events",
    description: "In the order in which they came; with a `status`, those of it.",
    ...access("workspace"),
    request: { params, query: pageQuery().extend({ status: InboxItem.shape.status.optional() }) },
    responses: {
      200: answers(listOf(InboxItem), "A page"),
      ...problems("not_found", "invalid_request", "invalid_cursor"),
    },
  }),
  async (context) => {
    const stub = agentAt(context, context.req.valid("param").agentId);
    return context.json(unwrap(await stub.inbox(context.var.principal.workspaceId, context.req.valid("query"))), 200);
  },
);

inbox.openapi(
  createRoute({
    method: "post",
    path: "/v1/agents/{agentId}/inbox/{eventId}/retry",
    tags,
    summary: "Try a dead event again",
    ...access("workspace"),
    request: { params: eventParams },
    responses: {
      200: answers(z.object({ item: InboxItem }), "The event, pending"),
      ...problems("not_found", "conflict"),
    },
  }),
  async (context) => {
    const { agentId, eventId: id } = context.req.valid("param");
    const item = unwrap(await agentAt(context, agentId).retryEvent(context.var.principal.workspaceId, id));
    return context.json({ item }, 200);
  },
);

inbox.openapi(
  createRoute({
    method: "delete",
    path: "/v1/agents/{agentId}/inbox/{eventId}",
    tags,
    summary: "Discard a dead event",
    ...access("workspace"),
    request: { params: eventParams },
    responses: { 204: nothing, ...problems("not_found", "conflict") },
  }),
  async (context) => {
    const { agentId, eventId: id } = context.req.valid("param");
    unwrap(await agentAt(context, agentId).discardEvent(context.var.principal.workspaceId, id));
    return context.body(null, 204);
  },
);

// An address inside of /inbox/{eventId} would keep requests from being routed by one expression.
inbox.openapi(
  createRoute({
    method: "post",
    path: "/v1/agents/{agentId}/dead-events/retry",
    tags,
    summary: "Try all dead events again",
    ...access("workspace"),
    request: { params },
    responses: {
      200: answers(z.object({ retried: z.int() }), "How many are pending again"),
      ...problems("not_found"),
    },
  }),
  async (context) => {
    const stub = agentAt(context, context.req.valid("param").agentId);
    return context.json(unwrap(await stub.retryDeadEvents(context.var.principal.workspaceId)), 200);
  },
);
