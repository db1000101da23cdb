import * as z from "zod";
import type { DurableEvent } from "./events.ts";
import { endpointId, spaceId } from "./ids.ts";
import { component, strictComponent, Timestamp } from "./text.ts";

/** The types of a space's log. */
export const spaceEvents = [
  ...(["space.message", "space.message.updated", "message.updated", "message.deleted", "message.routed"] as const),
  ...(["member.joined", "member.left", "member.renamed", "member.read"] as const),
  ...(["space.updated", "agent.budget_exhausted"] as const),
] as const satisfies DurableEvent["type"][];

/** The end of a run, for each space whose messages it took: where the log has its receipt. */
export const runEvents = ["run.completed", "run.failed"] as const;

/** What the workspace itself tells. */
export const workspaceEvents = [
  ...(["tool_call.waiting", "agent.created", "agent.updated", "agent.removed"] as const),
  ...(["entity.created", "entity.updated", "entity.removed", "audit.entry"] as const),
] as const;
export type WorkspaceEvent = (typeof workspaceEvents)[number];

const families = [
  "space.*",
  "message.*",
  "member.*",
  "run.*",
  "tool_call.*",
  "agent.*",
  "entity.*",
  "audit.*",
] as const;

const EndpointType = z.enum([...spaceEvents, ...runEvents, ...workspaceEvents, ...families]);
export type EndpointType = z.infer<typeof EndpointType>;

/** Whether one of `types`, a name or a family such as `run.*`, means this event. */
export const isMeant = (types: readonly EndpointType[], event: string): boolean =>
  types.some((type) => type === event || type === `${event.slice(0, event.indexOf("."))}.*`);

const named = {
  url: z.url().max(2048).meta({ description: "https. It is checked as addresses of tools are" }),
  types: z.array(EndpointType).min(1).max(40).meta({ description: "Names of events, or families such as `run.*`" }),
  spaceIds: z.array(spaceId).min(1).max(100).meta({
    description: "Of these spaces alone. What is said in a confidential space goes out only where it is named",
  }),
  description: z.string().trim().min(1).max(200),
};
const batch = z.boolean().meta({ description: "Up to 20 events of one space in one delivery" });

export const CreateEndpoint = strictComponent("CreateEndpoint", {
  ...{ url: named.url, types: named.types, batch: batch.default(false) },
  ...{ spaceIds: named.spaceIds.optional(), description: named.description.optional() },
});
export type CreateEndpoint = z.infer<typeof CreateEndpoint>;

export const UpdateEndpoint = strictComponent("UpdateEndpoint", {
  ...{ url: named.url.optional(), types: named.types.optional(), batch: batch.optional() },
  ...{ spaceIds: named.spaceIds.nullable().optional(), description: named.description.nullable().optional() },
  enabled: z.boolean().optional().meta({ description: "`true` goes on from where a disabled one stopped" }),
});
export type UpdateEndpoint = z.infer<typeof UpdateEndpoint>;

const maxOverlapSeconds = 7 * 24 * 60 * 60;
export const RollEndpoint = strictComponent("RollEndpoint", {
  overlapSeconds: z.int().min(0).max(maxOverlapSeconds).default(86_400).meta({
    description: "How long deliveries are signed with the secret until now too",
  }),
});

export const Redeliver = strictComponent("Redeliver", {
  from: Timestamp.meta({ description: "All that was sent since then is sent again, in order, under the same ids" }),
});

/** `by` hand, or since its server took nothing for three days. */
const Disabled = z.object({ at: Timestamp, reason: z.enum(["asked", "refused"]), detail: z.string().optional() });
export type Disabled = z.infer<typeof Disabled>;

export const Endpoint = component("Endpoint", {
  id: endpointId,
  url: z.string(),
  types: z.array(EndpointType),
  spaceIds: z.array(spaceId).optional(),
  description: z.string().optional(),
  batch: z.boolean(),
  createdAt: Timestamp,
  disabled: Disabled.optional().meta({ description: "Since when nothing is sent, and why" }),
  previousSecretUntil: Timestamp.optional().meta({ description: "Until then deliveries bear two signatures" }),
});
export type Endpoint = z.infer<typeof Endpoint>;

/** One try. */
export const EndpointDelivery = component("EndpointDelivery", {
  id: z.string().meta({ description: "Its `webhook-id`, the same at each try" }),
  type: z.string().meta({ description: "The event's type; `batch` of several" }),
  events: z.int(),
  spaceId: spaceId.optional().meta({ description: "Left out: an event of the workspace" }),
  at: Timestamp,
  attempt: z.int(),
  isDelivered: z.boolean(),
  status: z.int().optional().meta({ description: "Of the answer; left out where none came" }),
  ms: z.int(),
  answer: z.string().optional().meta({
    description: "How the answer began. It is forgotten once a message of that space is edited or deleted",
  }),
  error: z.string().optional(),
});
export type EndpointDelivery = z.infer<typeof EndpointDelivery>;
