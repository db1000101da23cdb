import * as z from "zod";
import { Problem } from "../shared/errors.ts";
import { Entity, Member } from "./entity.ts";
import { entityId, messageId, runId, streamId, toolCallId } from "./ids.ts";
import { ClientKey, EditMessage, Message, PostMessage, RouterDecision } from "./message.ts";
import { RunOutcome, runResult } from "./run.ts";
import { Space } from "./space.ts";
import { Timestamp } from "./text.ts";

/**
 * The frames of a space's stream. Durable events are the log's: they carry `cursor`, which is their
 * `seq`, and are replayed after it; the others are live only.
 */
const cursor = z.int();

const MemberReadEvent = z.object({
  type: z.literal("member.read"),
  cursor,
  entityId,
  messageId,
  runId: runId.optional(),
  ...runResult,
});

/** An agent's budget, for all or for one person: its own or its workspace's tokens of a day, runs of an hour, room. */
const Budget = z.enum(["tokens", "runs", "workspace", "storage"]);
export type Budget = z.infer<typeof Budget>;

/** An agent has used its tokens of the day; with `personId`, what of its tokens or runs what this person began may use. */
const SpentBudget = z.object({
  entityId,
  personId: entityId.optional(),
  resetsAt: Timestamp,
  budget: Budget.optional().describe("`tokens` where it is left out"),
});

export const DurableEvent = z.discriminatedUnion("type", [
  z.object({ type: z.literal("space.message"), cursor, message: Message }),
  z.object({ type: z.literal("space.message.updated"), cursor, message: Message }),
  /** Its sender has edited a message: the message as it is now. */
  z.object({ type: z.literal("message.updated"), cursor, message: Message }),
  /** A message was deleted: what is left of it, without its words. */
  z.object({ type: z.literal("message.deleted"), cursor, message: Message }),
  z.object({ type: z.literal("member.joined"), cursor, member: Member }),
  z.object({ type: z.literal("member.left"), cursor, entityId, name: z.string() }),
  z.object({ type: z.literal("member.renamed"), cursor, entityId, name: z.string() }),
  MemberReadEvent,
  /** The space's router has decided about a message. */
  RouterDecision.extend({ type: z.literal("message.routed"), cursor, messageId }),
  z.object({ type: z.literal("space.updated"), cursor, space: Space.omit({ members: true }) }),
  SpentBudget.extend({ type: z.literal("agent.budget_exhausted"), cursor }),
]);
export type DurableEvent = z.infer<typeof DurableEvent>;

/** Of a guest that is away: how many events of this space wait for its program. */
const waitingEvents = z.int().optional();

export const StreamSnapshot = z.object({
  type: z.literal("stream.snapshot"),
  streamId,
  runId,
  entityId,
  toolName: z.string(),
  speaks: z.boolean(),
  text: z.string(),
});
export type StreamSnapshot = z.infer<typeof StreamSnapshot>;

export const WelcomeFrame = z.object({
  type: z.literal("welcome"),
  space: Space.omit({ members: true }),
  members: z.array(Member),
  you: Entity.pick({ id: true, type: true, name: true }),
  cursor,
  /** false: the cursor was too old or in the future; reload by HTTP. */
  resumed: z.boolean(),
  /** The streams that run now. Clients drop running streams that are not here. */
  streams: z.array(StreamSnapshot),
  /** Agents at work here now. */
  active: z.array(z.object({ entityId, runId })),
  /** Agents that stopped for an error that may pass, and will try again: `reason` is its code. */
  waiting: z.array(z.object({ entityId, runId, reason: z.string(), events: waitingEvents })).optional(),
  /** The agents whose budget is used up now, and for whom: `cursor` is where it was told. */
  spent: z.array(SpentBudget.extend({ cursor })).optional(),
  /** The members' read marks, those who have one. */
  reads: z.array(MemberReadEvent.omit({ type: true, cursor: true })).optional(),
});

export const runEventTypes = [
  "run.started",
  "run.waiting_tool",
  "run.waiting_reply",
  "run.resumed",
  "run.completed",
  "run.failed",
  "run.canceled",
  "run.absorbed",
] as const;
export const ErrorFrame = Problem.omit({ type: true }).extend({
  type: z.literal("error"),
  clientKey: ClientKey.optional(),
  /** The call whose answer is refused. */
  toolCallId: toolCallId.optional(),
  /** The message whose edit or deletion is refused. */
  messageId: messageId.optional(),
});

export const LiveFrame = z.union([
  /** Where it `speaks`, its deltas are the text of a message; otherwise a tool's input, raw JSON. */
  StreamSnapshot.omit({ text: true }).extend({ type: z.literal("tool-call.start") }),
  z.object({
    type: z.literal("tool-input-delta"),
    streamId,
    textDelta: z.string().optional(),
    inputDelta: z.string().optional(),
  }),
  z.object({ type: z.literal("tool-call.complete"), streamId, toolCallId, result: z.unknown() }),
  z.object({ type: z.literal("tool-call.error"), streamId, code: z.string(), message: z.string() }),
  z.object({
    type: z.enum(["agent.active", "agent.inactive"]),
    entityId,
    runId,
    reason: z.string().optional(),
    events: waitingEvents,
  }),
  z.object({
    type: z.enum(runEventTypes),
    runId,
    entityId,
    ...runResult,
    error: z.object({ code: z.string(), message: z.string() }).optional(),
  }),
  z.object({ type: z.literal("member.typing"), entityId }),
]);
export type LiveFrame = z.infer<typeof LiveFrame>;

export const ServerFrame = z.union([WelcomeFrame, DurableEvent, StreamSnapshot, LiveFrame, ErrorFrame]);
export type ServerFrame = z.infer<typeof ServerFrame>;
export type WelcomeFrame = z.infer<typeof WelcomeFrame>;
export type ErrorFrame = z.infer<typeof ErrorFrame>;

export const ClientFrame = z.discriminatedUnion("type", [
  PostMessage.extend({ type: z.literal("message.send"), clientKey: ClientKey }),
  EditMessage.extend({ type: z.literal("message.edit"), messageId }),
  z.strictObject({ type: z.literal("message.delete"), messageId }),
  z.strictObject({ type: z.literal("read"), messageId }),
  z.strictObject({ type: z.literal("typing") }),
  /** Answers a tool call that waits: `result`, or `error` and why there is none. */
  z.strictObject({ type: z.literal("tool.result"), toolCallId, result: z.json() }),
]);
export type ClientFrame = z.infer<typeof ClientFrame>;

/** Stretches of a space's log that one run took, as its receipt tells them. Older messages are then read by no run. */
export const maxReadStretches = 200;

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
  /** The run took the messages from `firstMessageId` (or this one alone) to this one: of these, those in `taken`. */
  z.object({
    type: z.literal("read"),
    messageId,
    firstMessageId: messageId.optional(),
    taken: z
      .array(z.tuple([z.number(), z.number()]))
      .max(maxReadStretches)
      .optional(),
    ...runResult,
    outcome: RunOutcome,
  }),
  z.object({ type: z.literal("end"), reason: z.string().optional(), events: waitingEvents }),
]);
export type ChannelFrame = z.infer<typeof ChannelFrame>;

/** The opener of a channel. The space checks workspace and membership before it reads the stream. */
export type ChannelOpen = { workspaceId: string; agentId: string; mindId?: string | undefined; runId: string };

/** Text frames that are answered without waking the object. */
export const pingText = "ping";
export const pongText = "pong";

export const closeCodes = {
  badFrames: 4400,
  tokenExpired: 4401,
  removed: 4403,
  spaceDeleted: 4404,
  /** Its person's rights have changed. Opened again, the socket tells the new ones. */
  rightsChanged: 4409,
  slowDown: 4429,
  /** Opened again once the workspace is resumed, it goes on. */
  suspended: 4503,
  overloaded: 1013,
} as const;
