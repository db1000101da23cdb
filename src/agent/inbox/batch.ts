import type { RunTrigger } from "../../protocol/run.ts";
import { textBytes } from "../../protocol/text.ts";
import { maxBatchBytes } from "../bounds.ts";
import { eventLine } from "../context/consciousness/inbox-message.ts";
import { excerpt, quoteJson } from "../context/wording.ts";
import type { InboxData } from "../records.ts";
import type { InboxRow } from "../schema.ts";
import { estimateText } from "../tokens.ts";

/** The space of a message, or the space where the call of a result was made. */
export const homeOf = (data: InboxData): string | null => {
  if (data.type === "space_message") return data.delivered.message.spaceId;
  return data.type === "tool_result" ? data.activeSpaceId : null;
};

/** The beginning of an event that a run is known by. */
export const triggerTextCharacters = 200;

/** The trigger of a run that takes this batch: its newest event that wakes, with the beginning of what it says. */
export const triggerOf = (batch: InboxRow[]): RunTrigger => {
  const newest = batch.findLast((row) => row.wakes) ?? batch.at(-1);
  if (!newest) throw new Error("a run begins with at least one event");
  const common = { type: newest.type, eventId: newest.eventId, eventCount: batch.length };
  if (newest.data.type === "plan") {
    const { planName, instruction } = newest.data;
    return { ...common, senderName: planName, text: excerpt(instruction, triggerTextCharacters) };
  }
  const json = (value: unknown): string => excerpt(quoteJson(value), triggerTextCharacters);
  if (newest.data.type === "service") {
    const { serviceName, payload } = newest.data;
    return { ...common, senderName: serviceName, text: json(payload) };
  }
  if (newest.data.type === "tool_result") {
    const { tool, result } = newest.data;
    return { ...common, senderName: tool, text: json(result) };
  }
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

/** The first rows that fit `maxBatchBytes` and `maxTokens`, at least one. */
export const fitting = <Row extends { data: InboxData }>(rows: Row[], maxTokens: number): Row[] => {
  let bytes = 0;
  let tokens = 0;
  const end = rows.findIndex(({ data }) => {
    bytes += textBytes(JSON.stringify(data));
    tokens += estimateText(eventLine(data));
    return bytes > maxBatchBytes || tokens > maxTokens;
  });
  return end === -1 ? rows : rows.slice(0, Math.max(1, end));
};

/** The events that a run takes, oldest first, and the messages that it passes over. */
export type Batch = { rows: InboxRow[]; passed: InboxRow[] };

/** A batch of these rows, and of what was `heard` before them as far as it fits. Older messages are passed over. */
export const batchOf = (first: InboxRow[], heard: InboxRow[], maxTokens: number, most: number): Batch => {
  const all = [...new Map([...first, ...heard].map((row) => [row.seq, row])).values()];
  const fit = fitting(all.slice(0, most), maxTokens);
  const newest = Math.max(...fit.map(({ seq }) => seq));
  const left = heard.filter((row) => !fit.includes(row) && row.seq < newest);
  const rows = fit.toSorted((one, other) => one.seq - other.seq);
  return { rows, passed: left.filter(({ type }) => type === "space_message") };
};

/**
 * Whether the event is an answer to the agent, which always wakes it. An expired or late result is none: a server that
 * is always late would make the agent ask for ever (B1).
 */
export const isAnswer = (data: InboxData): boolean => data.type === "tool_result" && !data.expired && !data.late;
