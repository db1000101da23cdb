import type { Message } from "../protocol/message.ts";
import type { ToolCall } from "../protocol/tool-call.ts";
import { isOwnedBy } from "../shared/ids.ts";
import { isFieldName, saidIn, type Was } from "../shared/stretches.ts";
import type { LogRow } from "./log/log.ts";

/** Each text in a value, and each key that holds words. */
const textsIn = (value: unknown): string[] => {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null) return [];
  if (Array.isArray(value)) return value.flatMap(textsIn);
  return Object.entries(value).flatMap(([key, held]) => [...(isFieldName(key) ? [] : [key]), ...textsIn(held)]);
};

/** Each text in a value that says something, once. */
export const wordsIn = (value: unknown): string[] => [...new Set(textsIn(value).filter((each) => each.trim() !== ""))];

/** The words of a message: its text, its tool call, and the words of its origin. */
export const wordsOf = ({ text, toolCall, origin }: Pick<Message, "text" | "toolCall" | "origin">): string[] => {
  const { input, output, error, awaits, answer }: Partial<ToolCall> & { answer?: unknown } = toolCall ?? {};
  const told = origin && "sourceEvent" in origin ? origin.sourceEvent : "";
  return wordsIn([text ?? "", input, output, error, awaits, answer, told]);
};

/** The same, as it is taken away. An edit's words, answers of people and what came of them are later than the message. */
export const wasOf = (message: Message, { routing }: Pick<LogRow, "routing">): Was[] => {
  const { awaits, output: _, error: _error, ...shown } = message.toolCall ?? {};
  const [answer] = awaits?.answers ?? [];
  const [[, writtenAt] = []] = routing?.saidAt ?? [];
  const asked = new Set(wordsIn([message.text, shown, { ...awaits, answers: [] }]));
  return wordsOf(message).flatMap((each): Was[] => {
    if (each === message.text && routing?.saidAt) return saidIn(each, routing.saidAt);
    if (answer && !asked.has(each)) return [[each, Date.parse(answer.at)]];
    return writtenAt !== undefined && asked.has(each) ? [[each, writtenAt]] : [each];
  });
};

/** Where in the log the old words were said, and the mind that has them as its own and hears nothing there. */
export const fromOf = (row: LogRow, { sender, toolCall }: Message): { wasAt: number; by: string | null } => {
  // Among an agent's minds, only the one that said it has it (C17).
  const isOpenMinds = toolCall ? isOwnedBy(toolCall.id, sender.id) : row.routing?.own === "outside";
  return { wasAt: row.changedSeq ?? row.seq, by: isOpenMinds ? sender.id : (row.routing?.letOutBy ?? null) };
};
