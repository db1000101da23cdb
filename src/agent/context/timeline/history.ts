import type { Message } from "../../../protocol/message.ts";
import { callLine, shownCall } from "../call-line.ts";
import { historyMessage, marks as markTexts, quoteLines, sender } from "../grammar.ts";
import { originNote } from "../origin.ts";
import { quote } from "../quote.ts";
import { shortTime } from "../time.ts";
import type { History, HistoryEntry, TimelineSnapshot } from "./snapshot.ts";

/** The marks in a history: own messages, the trigger, and the answers that the run waited for. */
export type Marks = { agentId: string; triggerId: string | null; replyIds: ReadonlySet<string> };

export const marksOf = ({ state, trigger, resume }: TimelineSnapshot): Marks => ({
  agentId: state.agentId,
  triggerId: trigger.type === "space_message" ? trigger.messageId : null,
  replyIds: new Set(resume?.replies.map(({ messageId }) => messageId)),
});

export const isOwn = (message: Message, marks: Marks): boolean => message.sender.id === marks.agentId;

export const contentOf = ({ text, toolCall }: Message): string => (toolCall ? shownCall(toolCall) : quote(text ?? ""));

/** `[NEW] ← TRIGGER` and its kin. */
export const endOf = (message: Message, seen: boolean, marks: Marks): string =>
  [
    seen || isOwn(message, marks) ? markTexts.seen : markTexts.new,
    ...(message.id === marks.triggerId ? [markTexts.trigger] : []),
    ...(marks.replyIds.has(message.id) ? [markTexts.reply] : []),
  ].join(" ");

/** Notes below a message: the message that it answers, and why it was sent here. */
export const notesOf = (message: Message): string[] => [
  ...(message.replyTo === undefined ? [] : [`      [reply to ${message.replyTo}]`]),
  ...(message.origin === undefined ? [] : [`      ${originNote(message.origin)}`]),
];

export const actionLine = (entry: Extract<HistoryEntry, { kind: "action" }>): string =>
  `  [${shortTime(entry.at)}] You: ${callLine(entry.action)}`;

/** An entry as lines of the prompt. */
export const entryLines = (entry: HistoryEntry, marks: Marks): string[] => {
  if (entry.kind === "action") return [actionLine(entry)];
  const { message, seen } = entry;
  const said = historyMessage.write({
    id: message.id,
    time: shortTime(message.createdAt),
    from: isOwn(message, marks) ? "You" : sender.write(message.sender),
    content: contentOf(message),
    marks: endOf(message, seen, marks),
  });
  return [`  ${said}`, ...notesOf(message)];
};

/** The part of a history that is shown: its newest entries. */
export type Shown = { history: History; entries: HistoryEntry[]; earlier: number };

const summaryLines = ({ history: { summary, total }, earlier }: Shown): string[] => {
  // Messages that are shown need no summary.
  if (!summary || earlier === 0) return [];
  const since = total - summary.upTo;
  return [
    `  SUMMARY of ${summary.messages} earlier messages, written for you (all but the newest ${since}):`,
    ...quoteLines(summary.text)
      .split("\n")
      .map((line) => `  ${line}`),
  ];
};

/** The heading, how many messages are not shown, and a summary of those, if there is one. */
export const headingLines = (shown: Shown): string[] => {
  const { history, entries, earlier } = shown;
  const offset = entries.filter(({ kind }) => kind === "message").length;
  const heading = `SPACE HISTORY (${quote(history.space.name)}):`;
  if (earlier > 0) {
    const unread = `  (${earlier} earlier messages are not shown: read_messages with offset ${offset} reads them)`;
    return [heading, unread, ...summaryLines(shown)];
  }
  return entries.length === 0 ? [heading, "  (no messages)"] : [heading];
};
