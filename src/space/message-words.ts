import type { Message } from "../protocol/message.ts";
import type { ToolCall } from "../protocol/tool-call.ts";
import { isOwnedBy } from "../shared/ids.ts";
import type { LogRow } from "./log/log.ts";

/** Each text in a value. */
const textsIn = (value: unknown): string[] => {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsIn) : [];
};

/** Each text in a value that says something, once. */
export const wordsIn = (value: unknown): string[] => [...new Set(textsIn(value).filter((each) => each.trim() !== ""))];

/** What a message says, and the call that it shows. */
export const wordsOf = ({ text, toolCall }: Pick<Message, "text" | "toolCall">): string[] => {
  const { input, output, error, awaits, answer }: Partial<ToolCall> & { answer?: unknown } = toolCall ?? {};
  return wordsIn([text ?? "", input, output, error, awaits, answer]);
};

/** Where in the log the old words were said, and whose open mind has them as its own. */
export const fromOf = (row: LogRow, { sender, toolCall }: Message): { wasAt: number; by: string | null } => {
  // Of an agent's minds only the one that said it has it (C17).
  const isOpenMinds = toolCall ? isOwnedBy(toolCall.id, sender.id) : row.routing?.own === "outside";
  return { wasAt: row.changedSeq ?? row.seq, by: isOpenMinds ? sender.id : null };
};
