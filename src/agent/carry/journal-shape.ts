import { modelMessageSchema } from "ai";
import { z } from "zod";
import type { CarriedItem } from "../../protocol/exported-agent.ts";

/** What must hold for a row of a journal that comes from elsewhere, since inputs are composed of it as it is. */
type Row = CarriedItem<"journal">;

const Begun = z.looseObject({ callId: z.string(), toolName: z.string() });

const roles: Record<Exclude<Row["kind"], "call">, string> = {
  inbox: "user",
  preview: "user",
  assistant: "assistant",
  result: "tool",
};
const metas: Record<Row["kind"], readonly (string | null)[]> = {
  inbox: ["inbox"],
  preview: ["preview", "reminder"],
  assistant: ["assistant"],
  call: [null],
  result: ["result"],
};

/** What is wrong with a row; undefined where nothing is. */
export const journalFault = ({ kind, content, meta }: Row): string | undefined => {
  if (!metas[kind].includes(meta?.kind ?? null)) return `must have the meta of its kind, ${kind}`;
  if (kind === "call") return Begun.safeParse(content).success ? undefined : "must say which call was begun";
  const message = modelMessageSchema.safeParse(content);
  if (!message.success) return "must be a model message";
  return message.data.role === roles[kind] ? undefined : `must be a message of the role ${roles[kind]}`;
};

/** Calls that a message makes, and those that it answers, by their ids. */
export const callsIn = (content: Row["content"]): { made: string[]; answered: string[] } => {
  const message = modelMessageSchema.safeParse(content);
  const parts = message.success && typeof message.data.content !== "string" ? message.data.content : [];
  return {
    made: parts.flatMap((part) => (part.type === "tool-call" ? [part.toolCallId] : [])),
    answered: parts.flatMap((part) => (part.type === "tool-result" ? [part.toolCallId] : [])),
  };
};
