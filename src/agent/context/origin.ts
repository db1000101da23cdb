import type { Origin } from "../../protocol/message.ts";
import { quote } from "./quote.ts";

/** Why a message was sent here, as far as the space that it came from shares that. */
export const originNote = (origin: Origin): string => {
  const where = origin.sourceSpaceName === undefined ? "another space" : quote(origin.sourceSpaceName);
  if (origin.sourceSenderName === undefined) return `[sent because of an event in ${where}]`;
  const asked = origin.sourceEvent === undefined ? "asked" : `asked ${quote(origin.sourceEvent)}`;
  return `[sent because ${quote(origin.sourceSenderName)} ${asked} in ${where}]`;
};
