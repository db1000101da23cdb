import { z } from "zod";
import { runEventTypes } from "./events.ts";
import { messageId, type runId, streamId } from "./ids.ts";
import { RunOutcome, runResult } from "./run.ts";

/**
 * One channel for each (run, space): newline-delimited JSON in a ReadableStream from the agent to the space.
 * A channel that breaks without `end` means that the agent crashed: the space gives up its streams and says so.
 */
export const ChannelFrame = z.discriminatedUnion("type", [
  z.object({ type: z.literal("active") }),
  z.object({
    type: z.literal("run"),
    event: z.enum(runEventTypes),
    ...runResult,
    error: z.object({ code: z.string(), message: z.string() }).optional(),
  }),
  /** `speaks`: its text is a message that is being written. Without, it is a tool's input, raw JSON. */
  z.object({ type: z.literal("start"), streamId, toolName: z.string(), speaks: z.boolean() }),
  z.object({ type: z.literal("delta"), streamId, text: z.string() }),
  /** The stream is given up: clients drop its text. */
  z.object({ type: z.literal("drop"), streamId, code: z.string(), message: z.string() }),
  /** The run is done with the messages from `firstMessageId` (or this one alone) to this one: the agent's read mark. */
  z.object({
    type: z.literal("read"),
    messageId,
    firstMessageId: messageId.optional(),
    ...runResult,
    outcome: RunOutcome,
  }),
  z.object({ type: z.literal("end"), reason: z.string().optional() }),
]);
export type ChannelFrame = z.infer<typeof ChannelFrame>;

/** The opener of a channel. The space checks workspace and membership before it reads the stream. */
export type ChannelOpen = { workspaceId: string; agentId: string; runId: z.infer<typeof runId> };
