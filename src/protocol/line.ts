import * as z from "zod";
import { EntityType } from "./entity.ts";
import { ErrorFrame, ServerFrame } from "./events.ts";
import { entityId, messageId, spaceId, toolCallId } from "./ids.ts";
import { Notification, Settings } from "./notifications.ts";
import { component, Timestamp } from "./text.ts";

/** A person's line: one stream for all of their spaces. A preview's text is cut here. */
export const maxPreviewCharacters = 200;
/** Of one space, the newest things that need a person. */
export const maxNeeds = 50;
/** Spaces that one line subscribes to at a time. */
export const maxSubscriptions = 5;

/** Something that waits for a person: a call that asks them, an agent's question, a mention or a reply that is unread. */
export const NeedsYou = component("NeedsYou", {
  id: z.string(),
  kind: z.enum(["approval", "answer", "wait", "mention", "reply"]),
  spaceId,
  messageId,
  toolCallId: toolCallId.optional(),
  title: z.string().meta({ description: "The tool's name, or the beginning of the message" }),
  at: Timestamp,
});
export type NeedsYou = z.infer<typeof NeedsYou>;

/** A space of a person, in short. Counts stop at 99. */
export const SpaceSummary = component("SpaceSummary", {
  spaceId,
  name: z.string(),
  confidential: z.literal(true).optional(),
  seq: z.int().describe("The place in the space's log that this tells of: of two, the one with the higher is newer"),
  unread: z.int(),
  mentions: z.int().describe("Unread messages that mention the person or reply to them"),
  preview: z
    .object({
      messageId,
      sender: z.object({ id: entityId, name: z.string(), type: EntityType }),
      text: z.string(),
    })
    .optional()
    .describe("The newest message. Of a tool call the text is the tool's name"),
  working: z.array(entityId).describe("Agents at work there now"),
  needsYou: z.int(),
  at: Timestamp.describe("When the newest message was said, or the space was made"),
});
export type SpaceSummary = z.infer<typeof SpaceSummary>;

/** `cursor`: the line's own count of notifications, for `?cursor=`. */
const cursor = z.int();

export const LineWelcome = z.object({
  type: z.literal("welcome"),
  you: z.object({ id: entityId, type: EntityType, name: z.string() }),
  spaces: z.array(SpaceSummary),
  needsYou: z.array(NeedsYou),
  cursor,
});
export type LineWelcome = z.infer<typeof LineWelcome>;

/** Frames of the line itself. Frames of a subscribed space come as `{spaceId, frame}`. */
export const LineEvent = z.union([
  LineWelcome,
  SpaceSummary.extend({ type: z.literal("space.summary") }),
  /** The person is not in the space any more, or it is gone. */
  z.object({ type: z.literal("space.left"), spaceId }),
  z.object({ type: z.literal("needs_you"), item: NeedsYou }),
  z.object({ type: z.literal("needs_you.done"), id: z.string() }),
  Notification.extend({ type: z.literal("notification"), cursor }),
  z.object({ type: z.literal("notification.cleared"), ids: z.array(z.string()) }),
  z.object({ type: z.literal("settings"), settings: Settings }),
  /** The space closed its stream, as it would have closed a socket of its own. */
  z.object({ type: z.literal("unsubscribed"), spaceId, code: z.int(), reason: z.string() }),
  ErrorFrame.extend({ spaceId: z.string().optional().describe("As the refused frame named it") }),
]);
export type LineEvent = z.infer<typeof LineEvent>;

export const SpaceFrame = z.object({ spaceId, frame: ServerFrame });
export const LineFrame = z.union([LineEvent, SpaceFrame]);

const Subscribe = z.strictObject({
  type: z.literal("subscribe"),
  spaceId,
  cursor: z.int().min(0).optional().describe("As a space's own `?cursor=`"),
});
const Unsubscribe = z.strictObject({ type: z.literal("unsubscribe"), spaceId });

/** Whether the page of this line is looked at. A line that never said so is not. */
export const Visible = z.strictObject({ type: z.literal("visible"), visible: z.boolean() });

/** What else a client says to the line itself. Any frame of a space's stream goes on to it, with its `spaceId`. */
export const LineCommand = z.discriminatedUnion("type", [Subscribe, Unsubscribe]);

/** How much of a space a person is told: all of it while they look, what concerns them while they can be reached. */
export type Follows = "all" | "mine";

/** What a space tells of itself as it stands, for one person. Of two, the one with the higher `seq` is newer. */
export type Standing = { summary: SpaceSummary; needsYou: NeedsYou[] };

/** What concerns the person. `seq`: its place in the log, which a read mark passes. */
export type Notice = Pick<Notification, "kind" | "messageId" | "title" | "body" | "at" | "by"> & { seq: number };
