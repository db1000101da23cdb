import type { Message, Origin } from "../../protocol/message.ts";
import { quote, shownCall } from "./quote.ts";

/** What a message says: its text, quoted, or the tool call that it shows. */
export const contentOf = ({ text, toolCall }: Pick<Message, "text" | "toolCall">): string =>
  toolCall ? shownCall(toolCall) : quote(text ?? "");

/** Why a message was sent here, as far as the space that it came from shares that. */
export const originNote = (origin: Origin): string => {
  const where = origin.sourceSpaceName === undefined ? "another space" : quote(origin.sourceSpaceName);
  if (origin.sourceSenderName === undefined) return `[sent because of an event in ${where}]`;
  const asked = origin.sourceEvent === undefined ? "asked" : `asked ${quote(origin.sourceEvent)}`;
  return `[sent because ${quote(origin.sourceSenderName)} ${asked} in ${where}]`;
};
