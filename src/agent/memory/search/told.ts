import * as z from "zod";
import type { JournalMeta } from "../../../protocol/exported-history.ts";
import type { JournalRow } from "../../journal.ts";
import type { RunRow } from "../../runs.ts";
import { byAgent, dateWords, type Findable, headOf, isOfSpace, type Page, type SearchServices } from "./sources.ts";

/**
 * An agent's own life beside its thoughts: the messages that its runs were told, read or said, and what it did with
 * built-in tools. They follow the journal with a cursor of their own, so that an index from before they were followed
 * is brought up by itself.
 */
const Said = z.object({ messageId: z.string() });
const Saying = z.object({ text: z.string() });
/** A page of a space's messages, as the agent asked for it. */
const Entry = z.object({ id: z.string(), senderName: z.string(), timestamp: z.string(), content: z.string() });
const Read = z.union([z.object({ history: z.array(Entry) }), z.object({ messages: z.array(Entry) })]);

/** Old journals hold lines that no form reads: their words are found all the same. */
const unquoted = (line: string): string =>
  line.replaceAll(/\\(?:u([0-9a-fA-F]{4})|(.))/g, (_, code?: string, letter = "") => {
    if (code !== undefined) return String.fromCharCode(Number.parseInt(code, 16));
    return "nrtbf".includes(letter) ? " " : letter;
  });

const asFindable =
  ({ spaceOf, spaces }: SearchServices, lived: string) =>
  ({ id: ref, senderName: authorName, timestamp, content: text }: z.infer<typeof Entry>): Findable => {
    const [spaceId, at] = [spaceOf(ref), Date.parse(timestamp)];
    const head = headOf([authorName, spaces.get(spaceId)?.snapshot.name, dateWords(at)]);
    return { type: "message", ref, lived, role: "user", spaceId, authorName, at, head, text };
  };

/** What a run's event told, message by message. */
const heard = (services: SearchServices, row: JournalRow, lines: string[], lived: string): Findable[] =>
  lines.flatMap((line): Findable[] => {
    const at = row.createdAt;
    const told = services.messageIn(line);
    if (!told) {
      if (!isOfSpace(services, line)) return [];
      const { spaceId } = services.resultIn(line);
      return [
        { type: "consciousness", ref: lived, role: "user", spaceId, at, head: dateWords(at), text: unquoted(line) },
      ];
    }
    const { messageId: ref, spaceId, spaceName, senderId: authorId, senderName: authorName, text } = told;
    const head = headOf([authorName, spaceName, dateWords(at)]);
    const role = authorId === byAgent(services).authorId ? "assistant" : "user";
    return [{ type: "message", ref, lived, role, spaceId, authorId, authorName, at, head, text }];
  });

/** What a run said or read in a space, or changed by a built-in tool, which may be gone again. */
const done = (
  services: SearchServices,
  row: JournalRow,
  meta: Extract<JournalMeta, { kind: "result" }>,
  run: RunRow | undefined,
  lived: string,
  isFromElsewhere: boolean,
): Findable[] => {
  if (meta.error) return [];
  const step = services.journal.madeBy(row, run?.journalFrom ?? row.seq)?.meta;
  const call = step?.kind === "assistant" ? step.calls.find(({ callId }) => callId === meta.callId) : undefined;
  const [at, author] = [row.createdAt, byAgent(services)];
  const text = call && services.deedText(meta.toolName, call.input);
  if (text !== undefined) {
    return [{ type: "consciousness", ref: lived, role: "assistant", ...author, at, head: dateWords(at), text }];
  }
  if (isFromElsewhere || !services.isBuiltin(meta.toolName)) return [];
  const { content } = row;
  const [answer] = "content" in content && Array.isArray(content.content) ? content.content : [];
  const value = answer?.type === "tool-result" && answer.output.type === "json" ? answer.output.value : undefined;
  const read = Read.safeParse(value).data;
  if (read) return ("history" in read ? read.history : read.messages).map(asFindable(services, lived));
  const [id, words] = [Said.safeParse(value), Saying.safeParse(call?.input)];
  if (!id.success || !words.success || !services.isSpeech(meta.toolName)) return [];
  const spaceId = services.spaceOf(id.data.messageId);
  const spaceName = services.spaces.get(spaceId)?.snapshot.name;
  const head = headOf([author.authorName, spaceName, dateWords(at)]);
  const said = { role: "assistant", spaceId, ...author, at, head, text: words.data.text } as const;
  return [{ type: "message", ref: id.data.messageId, lived, ...said }];
};

/**
 * The next rows of the journal, as messages of the agent's life, and what it changed. The messages of an import are
 * found as its journal's own lines. What an event shows in part while a cycle runs comes in full with a later one.
 */
export const toldPage = (services: SearchServices, after: number, limit: number): Page => {
  const imported = services.importedJournalEnd();
  const rows = services.journal.after(after, limit);
  const runs = new Map(
    services.runs.those([...new Set(rows.map(({ runOrdinal }) => runOrdinal))]).map((run) => [run.ordinal, run]),
  );
  const found = rows.flatMap((row): Findable[] => {
    const run = runs.get(row.runOrdinal);
    const lived = `${run?.id ?? ""}:${row.seq}`;
    if (run?.fed) return [];
    if (row.meta?.kind === "result") return done(services, row, row.meta, run, lived, row.seq <= imported);
    if (row.meta?.kind !== "inbox" || row.seq <= imported) return [];
    const input = "content" in row.content && typeof row.content.content === "string" ? row.content.content : "";
    const shown = services.heardIn(input).map(asFindable(services, lived));
    return [...heard(services, row, row.meta.lines, lived), ...shown];
  });
  const isDeleted = ({ spaceId }: Findable): boolean => services.spaces.get(spaceId ?? "")?.snapshot.deleted === true;
  return {
    ...{ rows: rows.length, upTo: rows.at(-1)?.seq ?? after, more: rows.length >= limit },
    found: found.filter((each) => !isDeleted(each)),
  };
};
