import type { RunTrigger } from "../../protocol/run.ts";
import { excerpt } from "../context/quote.ts";
import { homeOf, type InboxRow } from "../inbox/inbox.ts";

const triggerTextCharacters = 200;

/** What begins a run that takes this batch: its newest event that wakes. */
export const triggerOf = (batch: InboxRow[]): RunTrigger => {
  const newest = batch.findLast((row) => row.wakes) ?? batch.at(-1);
  if (!newest) throw new Error("a run begins with at least one event");
  const common = { type: newest.type, eventId: newest.eventId, eventCount: batch.length };
  if (newest.data.type === "plan") {
    const { planName, instruction } = newest.data;
    return { ...common, senderName: planName, text: excerpt(instruction, triggerTextCharacters) };
  }
  if (newest.data.type === "service") return { ...common, senderName: newest.data.serviceName };
  if (newest.data.type === "tool_result") return { ...common, senderName: newest.data.tool };
  const { message } = newest.data.delivered;
  return {
    ...common,
    spaceId: message.spaceId,
    senderName: message.sender.name,
    text: excerpt(message.text ?? "", triggerTextCharacters),
  };
};

/** The spaces that these events came from. */
export const eventSpaces = (batch: InboxRow[]): string[] => [
  ...new Set(batch.flatMap(({ data }) => homeOf(data) ?? [])),
];
