import type { ModelMessage } from "ai";
import type { Message } from "../../../protocol/message.ts";
import { historyFacts, historyMessage, historyTurn, marks as markTexts, quoteLines, sender } from "../grammar.ts";
import { contentOf, originNote } from "../message-content.ts";
import { callLine, quote } from "../quote.ts";
import { type Cut, keepFitting, linesTokens } from "../sections.ts";
import { shortTime } from "../time.ts";
import type { History, HistoryEntry, TimelineSnapshot } from "./snapshot.ts";

/** The marks in a history: own messages, the trigger, and the answers that the run waited for. */
export type Marks = { agentId: string; triggerId: string | null; replyIds: ReadonlySet<string> };

export const marksOf = ({ state, trigger, resume }: TimelineSnapshot): Marks => ({
  agentId: state.agentId,
  triggerId: trigger.type === "space_message" ? trigger.delivered.message.id : null,
  replyIds: new Set(resume?.replies.map(({ messageId }) => messageId)),
});

/** What is known of a message beside what it says. `marks`: `[NEW] ← TRIGGER` and its kin. */
const factsOf = (message: Message, seen: boolean, marks: Marks) => {
  const isOwn = message.sender.id === marks.agentId;
  const ends = [
    seen || isOwn ? markTexts.seen : markTexts.new,
    ...(message.id === marks.triggerId ? [markTexts.trigger] : []),
    ...(marks.replyIds.has(message.id) ? [markTexts.reply] : []),
  ];
  const { id, createdAt } = message;
  return { isOwn, id, time: shortTime(createdAt), content: contentOf(message), marks: ends.join(" ") };
};

/** Notes below a message: the message that it answers, and why it was sent here. */
const notesOf = (message: Message): string[] => [
  ...(message.replyTo === undefined ? [] : [`      [reply to ${message.replyTo}]`]),
  ...(message.origin === undefined ? [] : [`      ${originNote(message.origin)}`]),
];

const actionLine = (entry: Extract<HistoryEntry, { kind: "action" }>): string =>
  `[${shortTime(entry.at)}] You: ${callLine(entry.action)}`;

/** An entry as lines of the prompt. */
export const entryLines = (entry: HistoryEntry, marks: Marks): string[] => {
  if (entry.kind === "action") return [`  ${actionLine(entry)}`];
  const { message, seen } = entry;
  const { isOwn, ...facts } = factsOf(message, seen, marks);
  const from = isOwn ? "You" : sender.write(message.sender);
  return [`  ${historyMessage.write({ ...facts, from })}`, ...notesOf(message)];
};

type Turn = { role: "user" | "assistant"; lines: string[] };

/**
 * An entry as a turn. The agent's own messages are the assistant's, all others the user's, with their sender. Everything
 * stays quoted. Silent actions are the user's too: in the assistant's words they would look like the way to make a call.
 */
const turnOf = (entry: HistoryEntry, marks: Marks): Turn => {
  if (entry.kind === "action") return { role: "user", lines: [actionLine(entry)] };
  const { message, seen } = entry;
  const { isOwn, ...facts } = factsOf(message, seen, marks);
  const isSpoken = isOwn && message.toolCall === undefined;
  const said = isOwn
    ? `${isSpoken ? "" : "You: "}${facts.content}  ${historyFacts.write(facts)}`
    : historyTurn.write({ ...message.sender, ...facts });
  return { role: isSpoken ? "assistant" : "user", lines: [said, ...notesOf(message)] };
};

/**
 * The histories as turns between `head` and `tail`, both the user's. Neighbours of one role are one message, so that
 * roles alternate, the user's first.
 */
export const asMessages = (head: string, shown: Shown[], tail: string, marks: Marks): ModelMessage[] => {
  const turns: Turn[] = [{ role: "user", lines: [head] }];
  const add = (turn: Turn): void => {
    const last = turns.at(-1);
    if (last?.role === turn.role) last.lines.push(...turn.lines);
    else turns.push(turn);
  };
  for (const each of shown) {
    add({ role: "user", lines: ["", ...headingLines(each)] });
    for (const entry of each.entries) add(turnOf(entry, marks));
  }
  add({ role: "user", lines: turns.at(-1)?.role === "user" ? ["", tail] : [tail] });
  return turns.map(({ role, lines }) => ({ role, content: lines.join("\n").replace(/^\n+/, "") }));
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

const messagesIn = (entries: HistoryEntry[]): number => entries.filter(({ kind }) => kind === "message").length;

/** The heading, how many messages are not shown, and a summary of those, if there is one. */
const headingLines = (shown: Shown): string[] => {
  const { history, entries, earlier } = shown;
  const heading = `SPACE HISTORY (${quote(history.space.name)}):`;
  if (earlier === 0) return entries.length === 0 ? [heading, "  (no messages)"] : [heading];
  const how = `read_messages with offset ${messagesIn(entries)} reads them`;
  return [heading, `  (${earlier} earlier messages are not shown: ${how})`, ...summaryLines(shown)];
};

/** The shown part of one history, its section, and what was left out by which rule. */
export type HistorySection = Cut & { shown: Shown };

/** The tokens of a model message beside its text. */
const turnTokens = 4;

/** The newest entries with at most `messages` messages among them. */
const newest = (entries: HistoryEntry[], messages: number): HistoryEntry[] => {
  let count = 0;
  const from = entries.findLastIndex((entry) => {
    if (entry.kind === "message") count += 1;
    return count > messages;
  });
  return entries.slice(from + 1);
};

/** `room`: the tokens that the rest of the input leaves; `tokens`: those that the config allows. */
type Limits = { room: number; tokens: number; messages: number; asTurns: boolean };

const historySection = (history: History, marks: Marks, limits: Limits): HistorySection => {
  const entries = newest(history.entries, limits.messages);
  const linesOf = (entry: HistoryEntry): string[] =>
    limits.asTurns ? turnOf(entry, marks).lines : entryLines(entry, marks);
  const lines = new Map(entries.map((entry) => [entry, linesOf(entry)]));
  const tokensOf = (entry: HistoryEntry): number =>
    linesTokens(lines.get(entry) ?? []) + (limits.asTurns ? turnTokens : 0);
  const longestHeading = linesTokens(headingLines({ history, entries: [], earlier: history.total }));
  const room = Math.min(limits.room, limits.tokens) - longestHeading;
  const { kept, left, tokens } = keepFitting(entries, room, tokensOf, (_, index) => -index);
  const shown: Shown = { history, entries: kept, earlier: Math.max(0, history.total - messagesIn(kept)) };
  const heading = headingLines(shown);
  const text = [...heading, ...kept.flatMap((entry) => lines.get(entry) ?? [])].join("\n");
  const rule = left.length === 0 ? "historyMessages" : limits.room < limits.tokens ? "maxTokens" : "historyTokens";
  const reason = `${shown.earlier} earlier messages are beyond context.${rule}`;
  return {
    shown,
    section: { name: "history", text, tokens: tokens + linesTokens(heading) },
    dropped: shown.earlier === 0 ? [] : [{ name: "history", reason }],
  };
};

/** The histories share the room evenly. */
export const historySections = (snapshot: TimelineSnapshot, marks: Marks, room: number): HistorySection[] => {
  const { histories, context, correction } = snapshot;
  return histories.map((history) =>
    historySection(history, marks, {
      room: room / histories.length,
      tokens: context.historyTokens / correction / histories.length,
      messages: context.historyMessages,
      asTurns: context.history === "messages",
    }),
  );
};
