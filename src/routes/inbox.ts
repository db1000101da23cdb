import * as z from "zod";
import { openRoot, rootHeader } from "../auth/root-header.ts";
import { TriggerAgent } from "../protocol/agent.ts";
import { eventId } from "../protocol/ids.ts";
import { InboxItem } from "../protocol/run.ts";
import { systemClock } from "../shared/clock.ts";
import { nameOf } from "./idempotent.ts";
import { Resource } from "./route.ts";
import { badPage, listOf, pageQuery, RootHeaders } from "./route-parts.ts";

/** An agent's inbox, and its trigger for a customer's own services. */
export const inbox = new Resource("Inbox");

inbox.route("POST /v1/agents/{agentId}/trigger", {
  summary: "Wake an agent with a service's event",
  description:
    "A request that a tool of an agent set off passes its `Colloquy-Root` on within a day: what it wakes counts for what began it. Without one `maxRunsPerHour` bounds it.",
  access: "workspace",
  scope: "hooks",
  headers: RootHeaders,
  body: TriggerAgent,
  idempotent: true,
  status: 202,
  answers: [z.object({ eventId }), "The event is in its inbox"],
  problems: ["not_found", "limit_reached"],
  handle: async ({ context, agent, principal, workspaceId, body, headers, idempotencyKey, once }) => {
    const root = await openRoot(context.env, workspaceId, headers[rootHeader], systemClock.now());
    // The workspace tells another body; the agent itself makes one event of one key, whatever crashes between.
    const key = idempotencyKey === undefined ? undefined : `${nameOf(principal)} ${idempotencyKey}`;
    return once(async () => agent.trigger(body, key, root));
  },
});

inbox.route("GET /v1/agents/{agentId}/inbox", {
  summary: "An agent's pending and dead events",
  description: "In the order in which they came; with a `status`, those of it.",
  access: "workspace",
  mind: true,
  query: pageQuery().extend({ status: InboxItem.shape.status.optional() }),
  answers: [listOf(InboxItem), "A page"],
  problems: ["not_found", ...badPage],
  handle: async ({ agent, query }) => agent.inbox(query),
});

inbox.route("POST /v1/agents/{agentId}/inbox/{eventId}/retry", {
  summary: "Try a dead event again",
  access: "workspace",
  mind: "told",
  answers: [z.object({ item: InboxItem }), "The event, pending"],
  problems: ["not_found", "conflict"],
  handle: async ({ agent, params }) => ({ item: await agent.retryEvent(params.eventId) }),
});

inbox.route("DELETE /v1/agents/{agentId}/inbox/{eventId}", {
  summary: "Discard a dead event",
  access: "workspace",
  mind: true,
  problems: ["not_found", "conflict"],
  handle: async ({ agent, params }) => agent.discardEvent(params.eventId),
});

// An address inside of /inbox/{eventId} would keep requests from being routed by one expression.
inbox.route("POST /v1/agents/{agentId}/dead-events/retry", {
  summary: "Try all dead events again",
  access: "workspace",
  mind: true,
  answers: [z.object({ retried: z.int() }), "How many are pending again"],
  problems: ["not_found"],
  handle: async ({ agent }) => agent.retryDeadEvents(),
});
