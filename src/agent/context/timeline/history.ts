import type { ModelMessage } from "ai";
import type { Message } from "../../../protocol/message.ts";
import type { SpaceRef } from "../agent-state.ts";
import { historyFacts, historyMessage, historyTurn, marks as markTexts, quoteLines, sender } from "../grammar.ts";
import { keepFitting, linesTokens } from "../sections.ts";
import { contentOf, originNote, quote, shortTime } from "../wording.ts";
import { type Deed, deedLine } from "./past-runs.ts";

/** One entry of a space's history as this agent reads it. */
export type HistoryEntry =
  /** `seen`: acknowledged by a committed run. The agent's own messages count as seen anyway. */
  | { kind: "message"; message: Message; seen: boolean }
  /** What the agent did in silence, or said elsewhere. */
  | Deed;

/** The newest entries of a space, oldest first, of `total` messages that it has in all. */
export type History = {
  space: SpaceRef;
  entries: HistoryEntry[];
  total: number;
  /** A model's summary of `messages` messages, of which the last is the space's `upTo`th. */
  summary?: { text: string; messages: number; upTo: number } | undefined;
};

/** The marks in a history: own messages, the trigger, and the answers that the run waited for. */
type Marks = { agentId: string; triggerId: string | null; replyIds: ReadonlySet<string> };

/** The lines of an entry, and whose turn of a conversation they are. */
type Turn = { role: "user" | "assistant"; lines: string[] };

/** The part of a history that is shown: its newest entries that fit. */
export type ShownHistory = ReturnType<typeof showHistory>;

/**
 * An entry as lines of the prompt, or as a turn. As turns the agent's own messages are the assistant's, all others the
 * user's, with their sender. Everything stays quoted. What the agent did otherwise is the user's too: in the assistant's
 * words it would look like the way to make a call.
 */
const turnOf = (entry: HistoryEntry, marks: Marks, asTurns: boolean): Turn => {
  if (entry.kind !== "message") {
    const line = `[${shortTime(entry.at)}] You: ${deedLine(entry)}`;
    return { role: "user", lines: [asTurns ? line : `  ${line}`] };
  }
  const { message, seen } = entry;
  const { id, sender: by, createdAt, replyTo, origin } = message;
  const isOwn = by.id === marks.agentId;
  const ends = [
    seen || isOwn ? markTexts.seen : markTexts.new,
    ...(id === marks.triggerId ? [markTexts.trigger] : []),
    ...(marks.replyIds.has(id) ? [markTexts.reply] : []),
  ];
  const facts = { id, time: shortTime(createdAt), content: contentOf(message), marks: ends.join(" ") };
  const isSpoken = asTurns && isOwn && message.toolCall === undefined;
  const written = (): string => {
    if (!asTurns) return `  ${historyMessage.write({ ...facts, from: isOwn ? "You" : sender.write(by) })}`;
    if (!isOwn) return historyTurn.write({ ...by, ...facts });
    return `${isSpoken ? "" : "You: "}${facts.content}  ${historyFacts.write(facts)}`;
  };
  const notes = [
    ...(replyTo === undefined ? [] : [`      [reply to ${replyTo}]`]),
    ...(origin === undefined ? [] : [`      ${originNote(origin)}`]),
  ];
  return { role: isSpoken ? "assistant" : "user", lines: [written(), ...notes] };
};

/**
 * The histories as turns between `head` and `tail`, both the user's. Neighbours of one role are one message, so that
 * roles alternate, the user's first.
 */
export const asMessages = (head: string, shown: ShownHistory[], tail: string): ModelMessage[] => {
  const turns: Turn[] = [{ role: "user", lines: [head] }];
  const add = (turn: Turn): void => {
    const last = turns.at(-1);
    if (last?.role === turn.role) last.lines.push(...turn.lines);
    else turns.push({ ...turn, lines: [...turn.lines] });
  };
  for (const each of shown) {
    add({ role: "user", lines: ["", ...each.heading] });
    for (const turn of each.turns) add(turn);
  }
  add({ role: "user", lines: turns.at(-1)?.role === "user" ? ["", tail] : [tail] });
  return turns.map(({ role, lines }) => ({ role, content: lines.join("\n").replace(/^\n+/, "") }));
};

/** The heading, how many messages are not shown, and a summary of those, if there is one. */
const headingOf = ({ space, summary, total }: History, entries: HistoryEntry[], earlier: number): string[] => {
  const heading = `SPACE HISTORY (${quote(space.name)}):`;
  if (earlier === 0) return entries.length === 0 ? [heading, "  (no messages)"] : [heading];
  const how = `read_messages with offset ${messagesIn(entries)} reads them`;
  const notShown = [heading, `  (${earlier} earlier messages are not shown: ${how})`];
  if (!summary) return notShown;
  const since = total - summary.upTo;
  const lines = quoteLines(summary.text).split("\n");
  return [
    ...notShown,
    `  SUMMARY of ${summary.messages} earlier messages, written for you (all but the newest ${since}):`,
    ...lines.map((line) => `  ${line}`),
  ];
};

const messagesIn = (entries: HistoryEntry[]): number => entries.filter(({ kind }) => kind === "message").length;

/** The tokens of a model message beside its text. */
const turnTokens = 4;

/** `tokens`: the most that it may fill, by the limit that `rule` names. */
export const showHistory = (
  history: History,
  marks: Marks,
  { tokens, rule, asTurns }: { tokens: number; rule: "maxTokens" | "historyTokens"; asTurns: boolean },
) => {
  const turns = history.entries.map((entry) => turnOf(entry, marks, asTurns));
  const sizes = turns.map(({ lines }) => linesTokens(lines) + (asTurns ? turnTokens : 0));
  const longestHeading = linesTokens(headingOf(history, [], history.total));
  const kept = keepFitting(sizes, tokens - longestHeading);
  const isKept = (_: unknown, index: number): boolean => kept.has(index);
  const entries = history.entries.filter(isKept);
  const shown = turns.filter(isKept);
  const earlier = Math.max(0, history.total - messagesIn(entries));
  const heading = headingOf(history, entries, earlier);
  const by = shown.length === turns.length ? "historyMessages" : rule;
  return {
    section: {
      name: "history",
      text: [...heading, ...shown.flatMap(({ lines }) => lines)].join("\n"),
      tokens: sizes.filter(isKept).reduce((sum, size) => sum + size, linesTokens(heading)),
    },
    dropped: earlier === 0 ? [] : [{ name: "history", reason: `${earlier} earlier messages are beyond context.${by}` }],
    heading,
    turns: shown,
    /** The ids of the messages and calls that are shown. */
    standing: entries.flatMap((entry) =>
      entry.kind === "message" ? [entry.message.id, entry.message.toolCall?.id ?? ""] : [entry.callId],
    ),
    /** How many messages lie before it. */
    unshown: { spaceId: history.space.id, messages: earlier },
  };
};
