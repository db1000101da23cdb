import type { ModelMessage } from "ai";
import type { Message } from "../../../protocol/message.ts";
import type { SearchRole } from "../../../protocol/search.ts";
import { isMessage, type JournalRow } from "../../journal.ts";
import type { ArchivalRow } from "../archival.ts";
import type { searchEntries } from "./schema.ts";

/** One passage that search finds. */
export type EntryRow = typeof searchEntries.$inferSelect;

/** Something to be found, before its text is cut into passages. */
export type Findable = Omit<typeof searchEntries.$inferInsert, "id" | "part">;

type Named = { id: string; name: string };
type NameOf = (id: string) => string | undefined;

const asText = (value: unknown): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""));

const words = new Intl.DateTimeFormat("en", {
  timeZone: "UTC",
  weekday: "long",
  day: "numeric",
  month: "long",
  year: "numeric",
});

/** A time as people name its day, in UTC, so that it is found by it: `Sunday, November 22, 2026`. */
export const dateWords = (at: number): string => words.format(at);

const headOf = (parts: (string | undefined)[]): string => parts.filter((part) => part !== undefined).join(" · ");

/** An archival entry. `spaces` are the agent's, by id; `originName` knows names from before an import. */
export const archivalFindable = (
  { id: ref, content: text, metadata, source, createdAt: at }: ArchivalRow,
  spaces: Map<string, { name: string; members: Named[] }>,
  originName: NameOf,
): Findable => {
  const { spaceId = null, messageId = null, authorId = null } = source;
  const space = spaces.get(spaceId ?? "");
  const authorName =
    authorId === null ? null : (space?.members.find(({ id }) => id === authorId)?.name ?? originName(authorId) ?? null);
  const place = spaceId === null ? undefined : (space?.name ?? originName(spaceId));
  const about = Object.keys(metadata).length === 0 ? undefined : JSON.stringify(metadata);
  const head = headOf([about, authorName ?? undefined, place, dateWords(at)]);
  return { type: "archival", ref, spaceId, messageId, authorId, authorName, at, head, text };
};

/** Properties of a tool, by its name. */
export type ToolFacts = Record<"isBuiltin" | "isSpeech", (toolName: string) => boolean>;

const thought = (message: ModelMessage): string => {
  if (message.role !== "assistant") return "";
  if (typeof message.content === "string") return message.content;
  return message.content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
};

const answered = (message: ModelMessage): string =>
  message.role === "tool"
    ? message.content
        .flatMap((part) => (part.type === "tool-result" && "value" in part.output ? [asText(part.output.value)] : []))
        .join("\n")
    : "";

/** The kind of event that a timeline's run began with, as its line tells it in JSON. */
const isOfSpace = (line: string): boolean => line.startsWith('["') || line.startsWith('{"type":"space_message"');

const livedText = (
  row: JournalRow,
  tools: ToolFacts,
  isFromElsewhere: boolean,
): { role: SearchRole; text: string } | undefined => {
  const { meta } = row;
  const isFound = (toolName: string): boolean =>
    !tools.isBuiltin(toolName) || (isFromElsewhere && tools.isSpeech(toolName));
  if (!isMessage(row)) return undefined;
  switch (meta?.kind) {
    case "assistant": {
      const calls = meta.calls
        .filter(({ toolName }) => isFound(toolName))
        .map(({ toolName, input }) => `${toolName} ${asText(input)}`);
      const said = [thought(row.content), ...calls].filter((text) => text.trim() !== "");
      return { role: "assistant", text: said.join("\n") };
    }
    case "result":
      if (tools.isBuiltin(meta.toolName)) return undefined;
      return { role: "tool", text: `${meta.toolName} ${answered(row.content)}` };
    case "inbox":
      return { role: "user", text: meta.lines.filter((line) => isFromElsewhere || !isOfSpace(line)).join("\n") };
    default:
      return undefined;
  }
};

/**
 * A row of the journal that is found as consciousness: the agent's thoughts, its calls of tools that are not builtin,
 * and what services, plans and tools told it. A space's messages are found as messages, and the answers of builtin tools
 * are stored elsewhere. Messages from before an import are found here, because no space can be asked for them.
 */
export const journalFindable = (
  row: JournalRow,
  runId: string,
  tools: ToolFacts,
  agent: Named,
  isFromElsewhere: boolean,
): Findable | undefined => {
  const said = livedText(row, tools, isFromElsewhere);
  if (!said || said.text.trim() === "") return undefined;
  const author = said.role === "assistant" ? { authorId: agent.id, authorName: agent.name } : {};
  const at = row.createdAt;
  return { type: "consciousness", ref: `${runId}:${row.seq}`, ...said, ...author, at, head: dateWords(at) };
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

/** A message of a space, found by what it says, who said it, where and when, and what it answers. */
export const messageFindable = (message: Message, earlier: Message[], space: Named, agentId: string): Findable => {
  const { id, sender, replyTo } = message;
  const at = Date.parse(message.createdAt);
  const before = earlier.find((each) => each.id === replyTo) ?? earlier.at(-1);
  return {
    type: "message",
    ref: id,
    role: sender.id === agentId ? "assistant" : "user",
    spaceId: space.id,
    messageId: id,
    authorId: sender.id,
    authorName: sender.name,
    at,
    head: headOf([sender.name, space.name, dateWords(at), answeredBy(message, before)]),
    text: messageText(message),
  };
};

/** A passage is indexed as one: long texts are several, so that a hit shows the place, and a vector means something. */
const passageCharacters = 2000;
/** The overlap of two neighbours: a phrase at their border is whole in one of them. */
const overlapCharacters = 100;

/** The place to cut before `end`: after a paragraph, a sentence or a word that ends in the last quarter. */
const cutBefore = (text: string, from: number, end: number): number => {
  const earliest = from + Math.floor((end - from) * 0.75);
  for (const border of ["\n\n", "\n", ". ", " "]) {
    const at = text.lastIndexOf(border, end - border.length);
    if (at >= earliest) return at + border.length;
  }
  return /[\udc00-\udfff]/.test(text[end] ?? "") ? end - 1 : end;
};

/** A text in passages of at most 2,000 characters, in order; none of a blank one. */
export const passagesOf = (text: string): string[] => {
  if (text.trim() === "") return [];
  const passages: string[] = [];
  for (let from = 0; from < text.length; ) {
    const end = from + passageCharacters;
    if (end >= text.length) return [...passages, text.slice(from)];
    const cut = cutBefore(text, from, end);
    passages.push(text.slice(from, cut));
    const back = cut - overlapCharacters;
    const word = text.indexOf(" ", back);
    from = word !== -1 && word < cut ? word + 1 : cut;
  }
  return passages;
};
