import type { ModelMessage } from "ai";
import { historyFacts, historyTurn } from "../grammar.ts";
import { shortTime } from "../time.ts";
import { actionLine, contentOf, endOf, headingLines, isOwn, type Marks, notesOf, type Shown } from "./history.ts";
import type { HistoryEntry } from "./snapshot.ts";

export type Turn = { role: "user" | "assistant"; lines: string[] };

/**
 * An entry as a turn. The agent's own messages are the assistant's, all others the user's, with their sender. Everything
 * stays quoted. Silent actions are the user's too: in the assistant's words they would look like the way to make a call.
 */
export const turnOf = (entry: HistoryEntry, marks: Marks): Turn => {
  if (entry.kind === "action") return { role: "user", lines: [actionLine(entry).trim()] };
  const { message, seen } = entry;
  const own = isOwn(message, marks);
  const spoken = own && message.toolCall === undefined;
  const facts = { id: message.id, time: shortTime(message.createdAt), marks: endOf(message, seen, marks) };
  const content = contentOf(message);
  const said = own
    ? `${spoken ? "" : "You: "}${content}  ${historyFacts.write(facts)}`
    : historyTurn.write({ ...message.sender, content, ...facts });
  return { role: spoken ? "assistant" : "user", lines: [said, ...notesOf(message)] };
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
