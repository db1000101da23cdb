import type { ModelMessage } from "ai";
import type { SearchRole } from "../../../protocol/search.ts";
import { isMessage, type JournalRow } from "../../journal.ts";
import { dateWords } from "./embedding.ts";
import type { Findable } from "./entries.ts";

/**
 * The rows of the journal that are found as consciousness: the agent's thoughts, its calls of tools that are not builtin,
 * and what services, plans and tools told it. A space's messages are found as messages, and the answers of builtin tools
 * are stored elsewhere. Messages from before an import are found here, because no space can be asked for them.
 */
export type LivedRow = JournalRow & { runId: string };

type Author = { id: string; name: string };
/** Properties of a tool, by its name. */
type Tools = Record<"isBuiltin" | "isSpeech", (toolName: string) => boolean>;

const asText = (value: unknown): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""));

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

const textOf = (
  row: JournalRow,
  tools: Tools,
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
      return {
        role: "assistant",
        text: [thought(row.content), ...calls].filter((text) => text.trim() !== "").join("\n"),
      };
    }
    case "result":
      return tools.isBuiltin(meta.toolName)
        ? undefined
        : { role: "tool", text: `${meta.toolName} ${answered(row.content)}` };
    case "inbox":
      return { role: "user", text: meta.lines.filter((line) => isFromElsewhere || !isOfSpace(line)).join("\n") };
    default:
      return undefined;
  }
};

/** `elsewhereUpTo`: the last row that was lived through before the agent was imported; 0 if it was not. */
export const journalFindables = (rows: LivedRow[], tools: Tools, agent: Author, elsewhereUpTo = 0): Findable[] =>
  rows.flatMap((row) => {
    const said = textOf(row, tools, row.seq <= elsewhereUpTo);
    if (!said || said.text.trim() === "") return [];
    return [
      {
        type: "consciousness",
        ref: `${row.runId}:${row.seq}`,
        ...said,
        ...(said.role === "assistant" ? { authorId: agent.id, authorName: agent.name } : {}),
        at: row.createdAt,
        head: dateWords(row.createdAt),
      },
    ];
  });

/** The run of a passage of consciousness. */
export const runIdOf = (ref: string): string => ref.slice(0, ref.indexOf(":"));
