import type { Message } from "../../../protocol/message.ts";
import { dateWords } from "./date-words.ts";
import type { Findable } from "./entry.ts";

const textOf = ({ text, toolCall }: Message): string =>
  toolCall ? `${toolCall.name} ${JSON.stringify(toolCall.input)}` : (text ?? "");

/** A message of a space, found by what it says, who said it, where and when. */
export const messageFindable = (message: Message, space: { id: string; name: string }, agentId: string): Findable => {
  const at = Date.parse(message.createdAt);
  return {
    type: "message",
    ref: message.id,
    role: message.sender.id === agentId ? "assistant" : "user",
    spaceId: space.id,
    messageId: message.id,
    authorId: message.sender.id,
    authorName: message.sender.name,
    at,
    head: `${message.sender.name} · ${space.name} · ${dateWords(at)}`,
    text: textOf(message),
  };
};
