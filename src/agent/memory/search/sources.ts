import type { ModelMessage } from "ai";
import type { Env } from "../../../env/env.ts";
import type { Block, BlockDetail } from "../../../protocol/block.ts";
import type { Message } from "../../../protocol/message.ts";
import type { SearchRole } from "../../../protocol/search.ts";
import type { Clock } from "../../../shared/clock.ts";
import { unwrap } from "../../../shared/errors.ts";
import type { Timers } from "../../../timers/timers.ts";
import type { Identity } from "../../identity.ts";
import { isMessage, type Journal, type JournalRow } from "../../journal.ts";
import type { Budget } from "../../ledger.ts";
import type { Redactions } from "../../redaction/redactions.ts";
import type { Runs } from "../../runs.ts";
import type { Spaces } from "../../spaces.ts";
import type { Archival } from "../archival.ts";
import type { Blocks } from "../blocks/blocks.ts";
import type { SharedBlocks } from "../blocks/shared-blocks.ts";
import { render } from "../documents/render.ts";
import type { searchEntries } from "./schema.ts";

/** The sources of what search finds, and how each reads. */

export type SearchServices = {
  env: Env;
  clock: Clock;
  timers: Timers;
  budget: Budget;
  identity: Identity;
  spaces: Spaces;
  journal: Journal;
  runs: Runs;
  blocks: Blocks;
  sharedBlocks: Pick<SharedBlocks, "list" | "read" | "load">;
  archival: Archival;
  redactions: Pick<Redactions, "clean" | "during">;
  isBuiltin: (toolName: string) => boolean;
  isSpeech: (toolName: string) => boolean;
  /** A call of a built-in tool that changes something and says nothing, as it is found. */
  deedText: (toolName: string, input: unknown) => string | undefined;
  /** The message that a line of an inbox or a trigger tells of. */
  messageIn: (line: string) => ToldMessage | undefined;
  /** The tool whose result a line tells, or the space of a question that nobody answered. */
  resultIn: (line: string) => { tool?: string; spaceId?: string };
  /** The messages of others that an input showed, beside its events. */
  heardIn: (input: string) => { id: string; senderName: string; timestamp: string; content: string }[];
  /** The space that a message is in. */
  spaceOf: (messageId: string) => string;
  /** The name of an id from before the agent was imported. */
  originName: (id: string) => string | undefined;
  /** Up to which row the journal was lived through elsewhere, in spaces that the agent cannot be asked to read. */
  importedJournalEnd: () => number;
};

/** A message as an agent was told it. */
export type ToldMessage = {
  messageId: string;
  spaceId: string;
  spaceName: string;
  senderId: string;
  senderName: string;
  text: string;
};

/** One passage that search finds. */
export type EntryRow = typeof searchEntries.$inferSelect;

/** Something to be found, before its text is cut into passages. */
export type Findable = Omit<typeof searchEntries.$inferInsert, "id" | "part">;

/** The next rows of a source, and the cursor behind them. */
export type Page = { rows: number; upTo: number; found: Findable[]; more: boolean };

export const asText = (value: unknown): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""));

const words = new Intl.DateTimeFormat("en", {
  timeZone: "UTC",
  weekday: "long",
  day: "numeric",
  month: "long",
  year: "numeric",
});

/** A time as people name its day, in UTC, so that it is found by it: `Sunday, November 22, 2026`. */
export const dateWords = (at: number): string => words.format(at);

export const betweenParts = " · ";

export const headOf = (parts: (string | null | undefined)[]): string =>
  parts.filter((part) => part != null).join(betweenParts);

export const byAgent = ({ identity }: SearchServices): Pick<Findable, "authorId" | "authorName"> => {
  const { id, config } = identity.get();
  return { authorId: id, authorName: config.name };
};

/** A label may be used again: its versions begin anew, its times do not. */
export const versionOf = ({ updatedAt, version }: Pick<Block, "updatedAt" | "version">): number =>
  Date.parse(updatedAt) * 1000 + (version % 1000);

/** A block as it is now, with all of its text: its `charLimit` bounds that. One without text is found by its label. */
export const blockFindable = (services: SearchServices, ref: string, block: BlockDetail): Findable => {
  const { label, description, schema, value, sharedFrom: from } = block;
  const text = render(schema, value, { whole: true });
  return {
    ...{ type: "block", ref, version: versionOf(block), at: Date.parse(block.updatedAt) },
    ...(from ? { authorId: from.agentId, authorName: from.agentName } : byAgent(services)),
    head: headOf([label, description, from?.agentName]),
    text: text.trim() === "" ? label : text,
  };
};

/** Whether an indexed block is another agent's. */
export const isShared = (ref: string): boolean => ref.includes("@");

/** The label of an indexed block. */
export const labelOf = (ref: string): string => ref.split("@", 1)[0] ?? ref;

/** Archival entries, each with who said it, and where: names from before an import too. */
export const archivalPage = ({ archival, spaces, originName }: SearchServices, after: number, limit: number): Page => {
  const rows = archival.after(after, limit);
  if (rows.length === 0) return { rows: 0, upTo: after, found: [], more: false };
  const known = new Map(spaces.followed().map(({ id, snapshot }) => [id, snapshot]));
  const found = rows.map(({ id: ref, content: text, metadata, source, createdAt: at }): Findable => {
    const { spaceId = null, messageId = null, authorId = null } = source;
    const space = known.get(spaceId ?? "");
    const member = space?.members.find(({ id }) => id === authorId);
    const authorName = authorId === null ? null : (member?.name ?? originName(authorId) ?? null);
    const place = spaceId === null ? null : (space?.name ?? originName(spaceId));
    const about = Object.keys(metadata).length === 0 ? null : JSON.stringify(metadata);
    const head = headOf([about, authorName, place, dateWords(at)]);
    return { type: "archival", ref, spaceId, messageId, authorId, authorName, at, head, text };
  });
  return { rows: rows.length, upTo: rows.at(-1)?.ordinal ?? after, found, more: rows.length >= limit };
};

/** Whether a line tells of a space's message, though it be in a form of old, or of a question without an answer there. */
export const isOfSpace = ({ messageIn, resultIn }: SearchServices, line: string): boolean =>
  line.startsWith('["') || messageIn(line) !== undefined || resultIn(line).spaceId !== undefined;

/** The words of a message: what was thought, or what a tool answered. */
const textIn = ({ content }: ModelMessage): string => {
  if (typeof content === "string") return content;
  const texts = content.flatMap((part) => {
    if (part.type === "text") return [part.text];
    return part.type === "tool-result" && "value" in part.output ? [asText(part.output.value)] : [];
  });
  return texts.join("\n");
};

const livedText = (
  row: JournalRow,
  services: SearchServices,
  isFromElsewhere: boolean,
): { role: SearchRole; text: string } | undefined => {
  const { meta } = row;
  const { isBuiltin, isSpeech } = services;
  if (!isMessage(row)) return undefined;
  switch (meta?.kind) {
    case "assistant": {
      const calls = meta.calls
        .filter(({ toolName }) => !isBuiltin(toolName) || (isFromElsewhere && isSpeech(toolName)))
        .map(({ toolName, input }) => `${toolName} ${asText(input)}`);
      const said = [textIn(row.content), ...calls].filter((text) => text.trim() !== "");
      return { role: "assistant", text: said.join("\n") };
    }
    case "result":
      if (isBuiltin(meta.toolName)) return undefined;
      return { role: "tool", text: `${meta.toolName} ${textIn(row.content)}` };
    case "inbox":
      return {
        role: "user",
        text: meta.lines
          .filter((line) => !isBuiltin(services.resultIn(line).tool ?? ""))
          .filter((line) => isFromElsewhere || !isOfSpace(services, line))
          .join("\n"),
      };
    default:
      return undefined;
  }
};

/**
 * Rows of the journal, found as consciousness: the agent's thoughts, its calls of non-builtin tools, and what services,
 * plans and tools told it. A space's messages are told in `told.ts`. The answers of builtin tools are stored elsewhere,
 * those that came as events too. Messages from before an import are found here, because no space can be asked for them.
 */
export const journalPage = (services: SearchServices, after: number, limit: number): Page => {
  const { journal, runs } = services;
  const rows = journal.after(after, limit);
  const ordinals = [...new Set(rows.map(({ runOrdinal }) => runOrdinal))];
  const byOrdinal = new Map(runs.those(ordinals).map((run) => [run.ordinal, run]));
  const imported = services.importedJournalEnd();
  const found = rows.flatMap((row): Findable[] => {
    const run = byOrdinal.get(row.runOrdinal);
    // The open mind finds what a compartment was fed.
    const said = run?.fed ? undefined : livedText(row, services, row.seq <= imported);
    if (!said || said.text.trim() === "") return [];
    const ref = `${run?.id ?? ""}:${row.seq}`;
    const author = said.role === "assistant" ? byAgent(services) : {};
    const at = row.createdAt;
    return [{ type: "consciousness", ref, ...said, ...author, at, head: dateWords(at) }];
  });
  return { rows: rows.length, upTo: rows.at(-1)?.seq ?? after, found, more: rows.length >= limit };
};

/** The run of a passage of consciousness. */
export const runIdOf = (ref: string): string => ref.slice(0, ref.indexOf(":"));

const messageText = ({ text, toolCall }: Message): string =>
  toolCall ? `${toolCall.name} ${JSON.stringify(toolCall.input)}` : (text ?? "");

/** An answer says little without its question; one that is older than that is another matter. */
const questionMs = 30 * 60_000;
const questionCharacters = 300;

/** The text that a message answers: the message that it replies to, or a question just before it. */
const answeredBy = (message: Message, before: Message | undefined): string | undefined => {
  if (!before || before.sender.id === message.sender.id) return undefined;
  const isReply = message.replyTo === before.id;
  const isSoon = Date.parse(message.createdAt) - Date.parse(before.createdAt) <= questionMs;
  if (!isReply && !(isSoon && before.text?.includes("?"))) return undefined;
  return messageText(before).slice(0, questionCharacters);
};

/**
 * Messages of a space, found by what they say, who said it, where and when, and what it answers. Null where the agent may
 * not read the space.
 */
export const spacePage = async (
  services: SearchServices,
  spaceId: string,
  after: number,
  limit: number,
): Promise<Page | null> => {
  const { id: agentId, workspaceId, compartmentId: mindId } = services.identity.get();
  const asked = { after, limit };
  const space = services.env.SPACE.getByName(spaceId);
  const answer = await space.history(workspaceId, agentId, asked, mindId ?? undefined);
  if (!answer.ok && (answer.problem.code === "not_a_member" || answer.problem.code === "not_found")) return null;
  const { messages, before, cursor: upTo, more, name } = unwrap(answer);
  const all = before ? [before, ...messages] : messages;
  const found = messages.map((message): Findable => {
    const { id, sender, replyTo } = message;
    const earlier = all.slice(0, all.indexOf(message));
    const answered = earlier.find((each) => each.id === replyTo) ?? earlier.at(-1);
    const at = Date.parse(message.createdAt);
    return {
      ...{ type: "message", ref: id, role: sender.id === agentId ? "assistant" : "user" },
      ...{ spaceId, authorId: sender.id, authorName: sender.name, at },
      head: headOf([sender.name, name, dateWords(at), answeredBy(message, answered)]),
      text: messageText(message),
    };
  });
  return { rows: messages.length, upTo, found, more };
};
