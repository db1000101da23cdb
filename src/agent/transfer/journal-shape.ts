import { z } from "zod";
import type { CarriedItem } from "../../protocol/exported-agent.ts";

/**
 * What must hold for a row of a journal that comes from elsewhere, since inputs are composed of it as it is. Messages
 * hold what a journal's own do, words, calls and results: a picture's address would be fetched, by us or by a provider.
 */
type Row = CarriedItem<"journal">;

const Begun = z.looseObject({ callId: z.string(), toolName: z.string() });

const Words = z.strictObject({ type: z.literal("text"), text: z.string() });
const Call = z.strictObject({
  type: z.literal("tool-call"),
  toolCallId: z.string(),
  toolName: z.string(),
  input: z.union([z.record(z.string(), z.json()), z.array(z.json())]),
});
const Answer = z.strictObject({
  type: z.literal("tool-result"),
  toolCallId: z.string(),
  toolName: z.string(),
  output: z.strictObject({ type: z.literal("json"), value: z.json() }),
});
const Told = z.strictObject({ role: z.literal("user"), content: z.string() });
/** A timeline may be told of its space as a talk, in which it said something itself. */
const Talk = z.strictObject({ role: z.enum(["user", "assistant"]), content: z.string() });
const Said = z.strictObject({
  role: z.literal("assistant"),
  content: z.union([z.string(), z.array(z.discriminatedUnion("type", [Words, Call]))]),
});
const Answered = z.strictObject({ role: z.literal("tool"), content: z.array(Answer).min(1) });

const messages = {
  inbox: { schema: Talk, role: "user" },
  preview: { schema: Told, role: "user" },
  assistant: { schema: Said, role: "assistant" },
  result: { schema: Answered, role: "tool" },
} as const;
const metas: Record<Row["kind"], readonly (string | null)[]> = {
  inbox: ["inbox"],
  preview: ["preview", "reminder", "told", null],
  assistant: ["assistant"],
  call: [null],
  result: ["result"],
};

/** What is wrong with a row; undefined where nothing is. */
export const journalFault = ({ kind, content, meta }: Row): string | undefined => {
  if (!metas[kind].includes(meta?.kind ?? null)) return `must have the meta of its kind, ${kind}`;
  if (kind === "call") return Begun.safeParse(content).success ? undefined : "must say which call was begun";
  const { schema, role } = messages[kind];
  if (schema.safeParse(content).success) return undefined;
  return `must be a message of the role ${role}, of words, calls or results as JSON`;
};

/** Calls that a message makes, and those that it answers, by their ids. */
export const callsIn = (content: Row["content"]): { made: string[]; answered: string[] } => {
  const said = Said.safeParse(content).data?.content ?? [];
  return {
    made: typeof said === "string" ? [] : said.flatMap((part) => (part.type === "tool-call" ? [part.toolCallId] : [])),
    answered: Answered.safeParse(content).data?.content.map((part) => part.toolCallId) ?? [],
  };
};
