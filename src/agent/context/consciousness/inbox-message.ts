import * as z from "zod";
import type { HeadBlocks, InboxData, ToldState, Unanswered } from "../../records.ts";
import type { ShownBlock } from "../blocks.ts";
import { ownNotes } from "../deeds.ts";
import {
  activeSpace,
  answerTo,
  becameConfidential,
  expectsReply,
  inboxEvents,
  inboxHeading,
  noActiveSpace,
  nowLine,
  quoted,
} from "../grammar.ts";
import { contentOf, duration, excerpt, jsonOf, originNote, plain, quote, quoteJson, shortTime } from "../wording.ts";
import { renderState, renderStateChanges } from "./state.ts";

type OtherEvent = Exclude<InboxData, { type: "space_message" }>;

const quoteAll = (names: string[]): string => names.map(quote).join(", ");

/** The line about who did not answer a question of the agent's own. */
const unansweredLine = (unanswered: Unanswered, activeSpaceId: string | null): string => {
  const { question, spaceName, late, left, afterMs, formerSpaceId, confidential } = unanswered;
  const until = confidential ? `: ${becameConfidential}` : ` after ${duration(afterMs)}`;
  const inTime = late.length === 0 ? [] : [`${quoteAll(late)}${until}`];
  const gone = left.length === 0 ? [] : [`${quoteAll(left)}${late.length === 0 ? ", who left" : " left"}`];
  const { messageId, text } = question;
  const isAway = formerSpaceId !== undefined;
  return inboxEvents.unanswered.write({
    silent: isAway
      ? `${quoteAll([...late, ...left])}: you are no longer in the space`
      : [...inTime, ...gone].join("; "),
    ...{ spaceName, spaceId: formerSpaceId ?? activeSpaceId ?? "", messageId, question: text },
  });
};

/** An event that is no message, on one line. `shown` cuts an instruction, and `json` tells a payload or a result. */
const otherLine = (event: OtherEvent, shown: (text: string) => string, json: (value: unknown) => string): string => {
  if (event.type === "plan") {
    return inboxEvents.plan.write({ name: event.planName, instruction: shown(event.instruction) });
  }
  if (event.type === "service") {
    return inboxEvents.service.write({ service: event.serviceName, payload: json(event.payload) });
  }
  if (event.unanswered) return unansweredLine(event.unanswered, event.activeSpaceId);
  const { tool, toolCallId, result } = event;
  return inboxEvents.toolResult.write({ tool: plain(tool), toolCallId, result: json(result) });
};

/**
 * One event of the inbox on one line. Everything that a participant wrote is quoted. An agent that `canWait` is told where
 * a sender waits too.
 */
export const eventLine = (event: InboxData, canWait = false): string => {
  if (event.type !== "space_message") return otherLine(event, (text) => text, quoteJson);
  const { message, triggerSource, own } = event.delivered;
  const answers = (event.answers ?? []).map(({ messageId, text }) => answerTo.write({ messageId, question: text }));
  const replyNote = message.replyTo === undefined ? "" : ` [reply to ${message.replyTo}]`;
  const waits = canWait && message.expectsReply === true && triggerSource !== "proactive_router";
  return inboxEvents.message.write({
    answers: answers.join(""),
    spaceName: event.spaceName,
    spaceId: message.spaceId,
    senderName: message.sender.name,
    senderType: message.sender.type,
    senderId: message.sender.id,
    messageId: message.id,
    content: contentOf(message),
    // Its space's policy would have woken nobody: that it was awaited does.
    triggerSource: answers.length > 0 && triggerSource === "none" ? "answer" : triggerSource,
    notes: [
      ...(own ? [` ${ownNotes[own]}`] : []),
      ...(message.origin === undefined ? [replyNote] : [replyNote, ` ${originNote(message.origin)}`]),
      ...(waits ? [expectsReply] : []),
    ].join(""),
  });
};

const Told = z.object({
  type: z.literal("space_message"),
  spaceName: z.string(),
  delivered: z.object({
    message: z.object({
      id: z.string(),
      spaceId: z.string(),
      sender: z.object({ id: z.string(), name: z.string() }),
      text: z.string().optional(),
      toolCall: z.object({ name: z.string(), input: z.unknown() }).optional(),
    }),
  }),
});

/** The message that a line of an inbox tells of, as `eventLine` wrote it, or a timeline's trigger as JSON. */
export const messageIn = (line: string) => {
  if (!line.startsWith("{")) {
    const [told] = inboxEvents.message.readAll(line);
    return told && { ...told, text: quoted.read(told.content)?.text ?? told.content };
  }
  const trigger = Told.safeParse(jsonOf(line));
  if (!trigger.success) return undefined;
  const { spaceName, delivered } = trigger.data;
  const { id: messageId, spaceId, sender, text, toolCall } = delivered.message;
  const shown = toolCall ? `${toolCall.name} ${JSON.stringify(toolCall.input)}` : (text ?? "");
  return { messageId, spaceId, spaceName, senderId: sender.id, senderName: sender.name, text: shown };
};

const Left = z.object({ formerSpaceId: z.string().optional() });
const Result = z.object({ tool: z.string(), unanswered: Left.optional(), activeSpaceId: z.string().nullish() });

/** Reads a line that is no message: the tool that answered, or the space of a question that nobody answered. */
export const resultIn = (line: string): { tool?: string; spaceId?: string } => {
  const { tool, unanswered, activeSpaceId } = Result.safeParse(jsonOf(line)).data ?? {};
  if (unanswered) return { spaceId: unanswered.formerSpaceId ?? activeSpaceId ?? "" };
  if (tool !== undefined) return { tool };
  return inboxEvents.toolResult.read(line) ?? inboxEvents.unanswered.read(line) ?? {};
};

export type InboxMessageInput = {
  /** ISO 8601. */
  now: string;
  events: InboxData[];
  /** The agent can wait for answers, and is told who waits for its own. */
  canWait?: boolean;
  /** Events of cycles that ended in silence since the last one that was kept, oldest first. */
  silent: { lines: string[]; omitted: number };
  /** Messages that the inbox had no room for, by space. */
  leftToHistory: { id: string; name: string; messages: number }[];
  /** In a compartment: runs outside of its space that it was not fed, and not told of before. */
  unfed?: number;
  told: ToldState;
  /** The state that the model was told last in this window; null at the window's start. */
  toldBefore: ToldState | null;
  /** The blocks in this input, and those that the instructions hold already. */
  blocks?: { shown: ShownBlock[]; head: HeadBlocks } | undefined;
  activeSpace: { id: string; name: string } | null;
};

/** The user message at the start of a cycle: from stable to volatile, time last. */
export const renderInboxMessage = (input: InboxMessageInput): string => {
  const { events, canWait, silent, leftToHistory, unfed = 0, told, toldBefore, activeSpace: active } = input;
  const now = shortTime(input.now);
  const { shown, head } = input.blocks ?? { shown: [], head: {} };
  const state = toldBefore === null ? renderState(told, shown, head) : renderStateChanges(toldBefore, told, shown);
  const omitted = silent.omitted > 0 ? [`  (${silent.omitted} earlier ones left out)`] : [];
  const nothingSaid = ["READ, NOTHING SAID:", ...omitted, ...silent.lines.map((line) => `  ${line}`)];
  return [
    ...(silent.lines.length > 0 ? nothingSaid : []),
    inboxHeading.write({ count: `${events.length} event${events.length === 1 ? "" : "s"}`, now }),
    ...(unfed === 0 ? [] : [`  (${unfed} runs of yours outside of this space were too many to be told here)`]),
    ...leftToHistory.map(
      ({ id, name, messages }) => `  [${quote(name)}, ${id}] (${messages} earlier messages: read_messages shows them)`,
    ),
    ...events.map((event) => `  ${eventLine(event, canWait)}`),
    ...(state === null ? [] : [state]),
    active === null ? noActiveSpace : activeSpace.write({ ...active, why: "" }),
    nowLine.write({ now }),
  ].join("\n");
};

const previewCharacters = 50;

const glanceAt = (event: InboxData): string => {
  const cut = (text: string): string => excerpt(text, previewCharacters);
  if (event.type !== "space_message") return otherLine(event, cut, (value) => quote(cut(quoteJson(value))));
  const { sender, text, toolCall } = event.delivered.message;
  const said = toolCall ? `called ${quote(cut(toolCall.name))} [${toolCall.status}]` : quote(cut(text ?? ""));
  return `[${quote(event.spaceName)}] ${quote(sender.name)}: ${said}`;
};

/** A short view of the events that arrived during a cycle, so that the model does not act on stale facts. */
export const renderInboxPreview = (events: InboxData[], waiting: number): string =>
  [
    `INBOX PREVIEW (${waiting} waiting; they come in full in the next cycle):`,
    ...events.map((event) => `  ${glanceAt(event)}`),
  ].join("\n");
