import * as z from "zod";
import type { FakeRequest, FakeStep } from "../support/fake-openai.ts";
import { answerPieces, type Command, commandsIn, type Said } from "./commands.ts";

/**
 * The model of every agent under load. Like a model, it goes by nothing but what it is given. It carries out the
 * commands for it in its newest inbox message or trigger, unless it has called a tool for them since. So an event that
 * is given twice is done twice, and one that is not given never.
 */
const Turn = z.looseObject({
  role: z.string(),
  content: z.union([z.string(), z.array(z.looseObject({ text: z.string().optional() }))]).nullish(),
  tool_calls: z
    .array(z.looseObject({ id: z.string(), function: z.looseObject({ name: z.string(), arguments: z.string() }) }))
    .optional(),
  tool_call_id: z.string().optional(),
});
type Turn = z.infer<typeof Turn>;

const textOf = ({ content }: Turn): string =>
  typeof content === "string" ? content : (content ?? []).map(({ text }) => text ?? "").join("");

/** The part of a user message that says what came, without history, state and previews. */
const askIn = (turn: Turn): string | undefined =>
  turn.role === "user" ? /^(INBOX \(|TRIGGER:)[\s\S]*?(?=^ACTIVE SPACE:)/m.exec(textOf(turn))?.[0] : undefined;

const maxEffectsAtOnce = 3;
const maxAnswersAtOnce = 3;

/** What one request gave to the model: who reads it, what came, and the messages in it by their ids. */
export type Reading = { agent: string; ask: string; messageIds: string[] };

export const readingOf = ({ body, model }: FakeRequest): Reading | undefined => {
  const turns = z.array(Turn).parse(body.messages);
  const ask = turns.map(askIn).findLast((found) => found !== undefined);
  if (ask === undefined) return undefined;
  const ids = ask.startsWith("INBOX")
    ? [...ask.matchAll(/, (msg_\w+)\):/g)].map(([, id = ""]) => id)
    : [...ask.matchAll(/^ *messageId: (msg_\w+)/gm)].map(([, id = ""]) => id);
  return { agent: model, ask, messageIds: ids };
};

type Done = { name: string; input: string; result: string };

const doneIn = (turns: Turn[]): Done[] =>
  turns.flatMap((turn, index) =>
    (turn.tool_calls ?? []).map((call) => {
      const answered = turns.slice(index).find((later) => later.tool_call_id === call.id);
      return { name: call.function.name, input: call.function.arguments, result: answered ? textOf(answered) : "" };
    }),
  );

const outcomeOf = ({ id, verb }: Command, done: Done[]): Said => {
  if (verb === "say") return "said";
  const result = done.find(({ name, input }) => name === verb && orderOf(input) === id)?.result ?? "";
  if (result.includes("outcome_unknown")) return "unknown";
  return result.includes("refunded") ? "refunded" : "failed";
};

const orderOf = (input: string): unknown => (JSON.parse(input) as { order?: unknown }).order;

/** What the model answers. `delayMs` is between two of its words. */
export const answerTo = ({ body, model }: FakeRequest, delayMs: number): FakeStep => {
  const turns = z.array(Turn).parse(body.messages);
  const asked = turns.findLastIndex((turn) => askIn(turn) !== undefined);
  const ask = turns[asked];
  const common = { delayMs, usage: null };
  if (ask === undefined) return { ...common, text: "There is nothing to do." };
  const commands = commandsIn(askIn(ask) ?? "").filter(({ agent }) => agent === model);
  const done = doneIn(turns.slice(asked + 1));
  if (commands.length === 0) {
    const silent = textOf(ask).includes("INBOX (") && done.length === 0;
    return silent
      ? { ...common, toolCalls: [{ name: "skip", arguments: { reason: "it is for others" } }] }
      : { ...common, text: "It is for others." };
  }
  if (textOf(ask).includes("ACTIVE SPACE: none") && !done.some(({ name }) => name === "enter_space")) {
    const spaceId = /spc_\w+/.exec(askIn(ask) ?? "")?.[0] ?? "";
    return { ...common, toolCalls: [{ name: "enter_space", arguments: { spaceId } }] };
  }
  const effects = commands.filter(
    ({ id, verb }) => verb !== "say" && !done.some(({ name, input }) => name === verb && orderOf(input) === id),
  );
  if (effects.length > 0) {
    const calls = effects.slice(0, maxEffectsAtOnce);
    return { ...common, toolCalls: calls.map(({ id, verb }) => ({ name: verb, arguments: { order: id } })) };
  }
  const unsaid = commands.filter(
    ({ id }) => !done.some(({ name, input }) => name === "send_message" && input.includes(`done ${id} `)),
  );
  if (unsaid.length === 0) return { ...common, text: "That was all." };
  return {
    ...common,
    toolCalls: unsaid.slice(0, maxAnswersAtOnce).map((command) => ({
      name: "send_message",
      arguments: ['{"text":"', ...answerPieces(command.id, outcomeOf(command, done)), '"}'],
    })),
  };
};
