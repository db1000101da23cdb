import { z } from "zod";
import { EntityType } from "./entity.ts";
import { entityId, messageId, runId, spaceId, streamId } from "./ids.ts";
import { runResult } from "./run.ts";
import { component, MessageText, strictComponent, Timestamp } from "./text.ts";
import { ToolCall } from "./tool-call.ts";

const SpaceOrigin = z
  .object({
    sourceSpaceId: spaceId,
    sourceSpaceName: z.string().optional(),
    sourceSenderName: z.string().optional(),
    sourceEvent: z.string().optional(),
  })
  .meta({ id: "SpaceOrigin", description: "A message in another space, as far as that space shares it" });

const RunOrigin = z
  .object({
    sourceType: z
      .enum(["plan", "service", "several"])
      .describe("several: the run answered more than one event, and which of them this is said for is not known"),
    sourceRunId: runId.describe("The agent's run that said it"),
    sourceName: z
      .string()
      .optional()
      .describe("Of a service, or of a plan that the workspace set. What the agent named itself is not told"),
    sourceEvent: z
      .string()
      .optional()
      .describe(
        "The instruction, the payload's beginning, or the several events as JSON. Only the agent itself is told, in its inputs",
      ),
  })
  .meta({ id: "RunOrigin", description: "A plan that was due, a service's event, or one of several" });

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
  expectsReply: z.boolean().optional(),
  streamId: streamId.optional(),
  clientKey: z.string().optional(),
  createdAt: Timestamp,
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
