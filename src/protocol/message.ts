import * as z from "zod";
import { EntityType } from "./entity.ts";
import { archivalId, entityId, messageId, runId, spaceId, streamId } from "./ids.ts";
import { reads, runResult } from "./run.ts";
import { component, MessageText, strictComponent, Timestamp } from "./text.ts";
import { ToolCall } from "./tool-call.ts";

const SpaceOrigin = z
  .object({
    spaceId,
    messageId: messageId.optional().describe("Left out where it was stored before origins were references"),
    sourceSpaceName: z.string().optional().describe("Where that space's `shareOrigin` is `name` or `text`"),
    sourceSenderName: z.string().optional().describe("Where it is `text`, and so the next"),
    sourceEvent: z.string().optional(),
  })
  .meta({ id: "SpaceOrigin", description: "A reference to a message in another space, which answers its own members" });

const RunOrigin = z
  .object({
    sourceType: z
      .enum(["plan", "service", "several"])
      .describe("several: the run answered more than one event, and which of them this is said for is not known"),
    sourceRunId: runId.describe("The agent's run that said it"),
  })
  .meta({
    id: "RunOrigin",
    description: "A reference to the run of a plan, of a service's event, or of several events",
  });

export const Origin = z.union([SpaceOrigin, RunOrigin]).meta({ id: "Origin", description: "Why an agent speaks here" });
export type Origin = z.infer<typeof Origin>;

/** A log event that shows in the timeline. `seq` is its place in the space's log, and the cursor. */
export const Message = component("Message", {
  id: messageId,
  seq: z.int(),
  spaceId,
  kind: z.enum(["text", "tool_call"]),
  sender: z.object({ id: entityId, name: z.string(), type: EntityType }),
  text: z.string().optional(),
  toolCall: ToolCall.optional(),
  replyTo: messageId.optional(),
  mentions: z.array(entityId).optional(),
  origin: Origin.optional(),
  reads,
  expectsReply: z.boolean().optional(),
  streamId: streamId.optional(),
  clientKey: z.string().optional(),
  createdAt: Timestamp,
  editedAt: Timestamp.optional(),
  deleted: z
    .object({
      at: Timestamp,
      by: z
        .object({ id: entityId, name: z.string().optional() })
        .optional()
        .describe("Left out: a secret key, or nobody"),
      expired: z.literal(true).optional().describe("Nobody did: it was older than the space's retentionDays"),
    })
    .optional()
    .describe("Of a message that was deleted: who did it, and when. Its words are gone"),
});
export type Message = z.infer<typeof Message>;

/** The sender's own name for a message, so that sending it again stores it once. */
export const ClientKey = z.string().min(1).max(128);

export const PostMessage = strictComponent("PostMessage", {
  text: MessageText,
  replyTo: messageId.optional(),
  expectsReply: z.boolean().optional(),
  clientKey: ClientKey.optional(),
});
export type PostMessage = z.infer<typeof PostMessage>;

export const EditMessage = strictComponent("EditMessage", { text: MessageText });
export type EditMessage = z.infer<typeof EditMessage>;

/** An agent wrote it in a run that knew a message. The message's words may be in it, or what was made of them. */
export const RelatedItem = component("RelatedItem", {
  agentId: entityId,
  spaceId: spaceId
    .optional()
    .describe("Where it is the agent's of a confidential space: `?space=` of the routes that delete it"),
  kind: z.enum(["block", "archival"]),
  label: z.string().optional().describe("Of a block"),
  id: archivalId.optional().describe("Of an archival entry"),
});
export type RelatedItem = z.infer<typeof RelatedItem>;

export const ReadMark = strictComponent("ReadMark", { messageId });

/** A reader of a message, by its read mark; for an agent also the outcome of the run that took the message. */
export const ReadReceipt = component("ReadReceipt", {
  entityId,
  name: z.string(),
  type: EntityType,
  at: Timestamp,
  runId: runId.optional(),
  ...runResult,
});
export type ReadReceipt = z.infer<typeof ReadReceipt>;

/** The decision of the space's router about a message: which agents it wakes. A failed one wakes nobody. */
export const RouterDecision = z.object({
  outcome: z.enum(["woke", "nobody", "failed"]),
  /** The woken agents. */
  agents: z.array(entityId),
  /** Why it failed. */
  error: z.object({ code: z.string(), message: z.string() }).optional(),
});
export type RouterDecision = z.infer<typeof RouterDecision>;

/** The same as it stands now: `pending` until it is decided. */
export const MessageRouting = RouterDecision.extend({
  messageId,
  outcome: z.enum(["pending", ...RouterDecision.shape.outcome.options]),
  at: Timestamp.optional(),
}).meta({ id: "MessageRouting" });
export type MessageRouting = z.infer<typeof MessageRouting>;
