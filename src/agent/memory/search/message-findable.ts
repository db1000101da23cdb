import type { Message } from "../../../protocol/message.ts";
import { dateWords } from "./date-words.ts";
import type { Findable } from "./entry.ts";

const textOf = ({ text, toolCall }: Message): string =>
  toolCall ? `${toolCall.name} ${JSON.stringify(toolCall.input)}` : (text ?? "");

/** An answer says little without its question; one that is older than that is another matter. */
const questionMs = 30 * 60_000;
const questionCharacters = 300;

/** What a message answers, as far as that can be told: the one that it replies to, or a question just before it. */
const answeredBy = (message: Message, before: Message | undefined): string | undefined => {
  if (!before || before.sender.id === message.sender.id) return undefined;
  const isReply = message.replyTo === before.id;
  const isSoon = Date.parse(message.createdAt) - Date.parse(before.createdAt) <= questionMs;
  if (!isReply && !(isSoon && before.text?.includes("?"))) return undefined;
  return textOf(before).slice(0, questionCharacters);
};

/** A message of a space, found by what it says, who said it, where and when, and what it answers. */
export const messageFindable = (
  message: Message,
  earlier: Message[],
  space: { id: string; name: string },
  agentId: string,
): Findable => {
  const at = Date.parse(message.createdAt);
  const before = earlier.find(({ id }) => id === message.replyTo) ?? earlier.at(-1);
  const answers = answeredBy(message, before);
  return {
    type: "message",
    ref: message.id,
    role: message.sender.id === agentId ? "assistant" : "user",
    spaceId: space.id,
    messageId: message.id,
    authorId: message.sender.id,
    authorName: message.sender.name,
    at,
    head: [message.sender.name, space.name, dateWords(at), ...(answers === undefined ? [] : [answers])].join(" · "),
    text: textOf(message),
  };
};
