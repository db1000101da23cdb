import type { ModelMessage } from "ai";
import type { KnownMessage } from "../../records.ts";
import type { SpaceRef } from "../agent-state.ts";
import { type Deed, deedLine, ownNotes } from "../deeds.ts";
import {
  historyFacts,
  historyMessage,
  historyTurn,
  marks as markTexts,
  quoted,
  sender,
  withoutBlocks,
} from "../grammar.ts";
import { keepFitting, linesTokens } from "../sections.ts";
import { contentOf, originNote, quote, quoteLines, shortTime } from "../wording.ts";
import { accountOf, type Reason, unshownLine } from "./unshown.ts";

/** One entry of a space's history as this agent reads it. */
export type HistoryEntry =
  /** `seen`: acknowledged by a committed run. The agent's own messages count as seen anyway. */
  | { kind: "message"; message: KnownMessage; seen: boolean; letOut?: boolean }
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
  const { message, seen, letOut = false } = entry;
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
    ...(letOut ? [`      ${ownNotes.let_out}`] : []),
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

/** The heading, how many messages are not shown and why, and a summary of those, if there is one. */
const headingOf = (history: History, shown: number, reason: Reason): string[] => {
  const { space, summary, total } = history;
  const heading = `SPACE HISTORY (${quote(space.name)}):`;
  const unshown = unshownLine(history, shown, reason);
  if (unshown === null) return shown === 0 ? [heading, "  (no messages)"] : [heading];
  if (!summary) return [heading, `  ${unshown}`];
  const since = total - summary.upTo;
  const lines = quoteLines(summary.text).split("\n");
  return [
    heading,
    `  ${unshown}`,
    `  SUMMARY of ${summary.messages} earlier messages, written for you (all but the newest ${since}):`,
    ...lines.map((line) => `  ${line}`),
  ];
};

const messagesIn = (entries: HistoryEntry[]): number => entries.filter(({ kind }) => kind === "message").length;

type HistoryBounds = { newest: number; tokens: number; rule: "maxTokens" | "historyTokens"; asTurns: boolean };

/** The tokens of a model message beside its text. */
const turnTokens = 4;

/** `newest`: how many messages it shows, by the config alone. `tokens`: the most that it may fill, by `rule`. */
export const showHistory = (history: History, marks: Marks, { newest, tokens, rule, asTurns }: HistoryBounds) => {
  const turns = history.entries.map((entry) => turnOf(entry, marks, asTurns));
  const sizes = turns.map(({ lines }) => linesTokens(lines) + (asTurns ? turnTokens : 0));
  const longestHeading = linesTokens(headingOf(history, 0, rule));
  const kept = keepFitting(sizes, tokens - longestHeading);
  const isKept = (_: unknown, index: number): boolean => kept.has(index);
  const entries = history.entries.filter(isKept);
  const shown = turns.filter(isKept);
  const messages = messagesIn(entries);
  const { earlier, between } = accountOf(history, messages);
  const isCut = messages < messagesIn(history.entries);
  const by = isCut ? rule : "historyMessages";
  const heading = headingOf(history, messages, !isCut && history.summary ? "unsummarized" : by);
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
    unshown: {
      ...{ spaceId: history.space.id, total: history.total, between },
      messages: Math.max(earlier, history.total - newest),
    },
  };
};

/** The messages of others that an input shows. Blocks without bars, of an input from before, are passed over (S2). */
export const heardIn = (input: string) =>
  withoutBlocks(input)
    .split("\n")
    .flatMap((each) => {
      const told = historyMessage.read(each.trim());
      const found = told ? { ...told, ...sender.read(told.from), id: told.id } : historyTurn.read(each);
      if (!found || !("name" in found) || found.name === undefined) return [];
      const { id, name: senderName, time: timestamp, content } = found;
      return [{ id, senderName, timestamp, content: quoted.read(content)?.text ?? content }];
    });
