import type { HeadBlocks, ToldState } from "../../records.ts";
import type { ShownBlock } from "../blocks.ts";
import { shownCall } from "../call-line.ts";
import { activeSpace, inboxEvents, inboxHeading, noActiveSpace, nowLine } from "../grammar.ts";
import { originNote } from "../origin.ts";
import { plain } from "../plan-line.ts";
import { excerpt, quote, quoteJson } from "../quote.ts";
import { shortTime } from "../time.ts";
import type { InboxEvent } from "./snapshot.ts";
import { renderState, renderStateChanges } from "./state.ts";

/** One event of the inbox on one line. Everything that a participant wrote is quoted. */
export const eventLine = (event: InboxEvent): string => {
  if (event.type === "service") {
    return inboxEvents.service.write({ service: event.serviceName, payload: quoteJson(event.payload) });
  }
  if (event.type === "plan") return inboxEvents.plan.write({ name: event.planName, instruction: event.instruction });
  if (event.type === "tool_result") return resultLine(event, quoteJson(event.result));
  const { message, triggerSource } = event.delivered;
  const replyNote = message.replyTo === undefined ? "" : ` [reply to ${message.replyTo}]`;
  return inboxEvents.message.write({
    spaceName: event.spaceName,
    spaceId: message.spaceId,
    senderName: message.sender.name,
    senderType: message.sender.type,
    senderId: message.sender.id,
    messageId: message.id,
    content: message.toolCall ? shownCall(message.toolCall) : quote(message.text ?? ""),
    triggerSource,
    notes: `${replyNote}${message.origin === undefined ? "" : ` ${originNote(message.origin)}`}`,
  });
};

const resultLine = ({ tool, toolCallId }: Extract<InboxEvent, { type: "tool_result" }>, result: string): string =>
  inboxEvents.toolResult.write({ tool: plain(tool), toolCallId, result });

export type InboxMessageInput = {
  /** ISO 8601. */
  now: string;
  events: InboxEvent[];
  /** Events of cycles that ended in silence since the last one that was kept, oldest first. */
  silent: { lines: string[]; omitted: number };
  /** Messages that the inbox had no room for, by space. */
  leftToHistory: { id: string; name: string; messages: number }[];
  told: ToldState;
  /** The state that the model was told last in this window; null at the window's start. */
  toldBefore: ToldState | null;
  /** The blocks in this input, and those that the instructions hold already. */
  blocks?: { shown: ShownBlock[]; head: HeadBlocks } | undefined;
  activeSpace: { id: string; name: string } | null;
};

/** The user message at the start of a cycle: from stable to volatile, time last. */
export const renderInboxMessage = (input: InboxMessageInput): string => {
  const parts: string[] = [];
  if (input.silent.lines.length > 0) {
    const omitted = input.silent.omitted > 0 ? [`  (${input.silent.omitted} earlier ones left out)`] : [];
    parts.push(["READ, NOTHING SAID:", ...omitted, ...input.silent.lines.map((line) => `  ${line}`)].join("\n"));
  }
  const count = `${input.events.length} event${input.events.length === 1 ? "" : "s"}`;
  parts.push(
    [
      inboxHeading.write({ count, now: shortTime(input.now) }),
      ...input.leftToHistory.map(
        ({ id, name, messages }) =>
          `  [${quote(name)}, ${id}] (${messages} earlier messages: read_messages shows them)`,
      ),
      ...input.events.map((event) => `  ${eventLine(event)}`),
    ].join("\n"),
  );
  const { shown, head } = input.blocks ?? { shown: [], head: {} };
  const state =
    input.toldBefore === null
      ? renderState(input.told, shown, head)
      : renderStateChanges(input.toldBefore, input.told, shown);
  if (state !== null) parts.push(state);
  parts.push(
    input.activeSpace === null ? noActiveSpace : activeSpace.write({ ...input.activeSpace, why: "" }),
    nowLine.write({ now: shortTime(input.now) }),
  );
  return parts.join("\n");
};

const previewCharacters = 50;

const glanceAt = (event: InboxEvent): string => {
  const glance = (text: string) => quote(excerpt(text, previewCharacters));
  switch (event.type) {
    case "space_message": {
      const { sender, text, toolCall } = event.delivered.message;
      const said = toolCall ? `called ${glance(toolCall.name)} [${toolCall.status}]` : glance(text ?? "");
      return `[${quote(event.spaceName)}] ${quote(sender.name)}: ${said}`;
    }
    case "plan":
      return inboxEvents.plan.write({
        name: event.planName,
        instruction: excerpt(event.instruction, previewCharacters),
      });
    case "service":
      return inboxEvents.service.write({ service: event.serviceName, payload: glance(quoteJson(event.payload)) });
    case "tool_result":
      return resultLine(event, glance(quoteJson(event.result)));
  }
};

/** A short view of the events that arrived during a cycle, so that the model does not act on stale facts. */
export const renderInboxPreview = (events: InboxEvent[], waiting: number): string =>
  [
    `INBOX PREVIEW (${waiting} waiting; they come in full in the next cycle):`,
    ...events.map((event) => `  ${glanceAt(event)}`),
  ].join("\n");
