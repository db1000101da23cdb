import type { SpaceState } from "../../client/index.ts";
import { nameOf } from "./presence.ts";

/** A message as another one quotes it; `text` is null while the message is not loaded. */
export type Quoted = { id: string; name: string; text: string | null };

const longest = 300;

/** The quote of a message, by its id; null for no id. */
export const quotedIn = (
  state: Pick<SpaceState, "members" | "messages">,
  messageId: string | undefined,
): Quoted | null => {
  if (messageId === undefined) return null;
  const message = state.messages.find(({ id }) => id === messageId);
  if (!message) return { id: messageId, name: "an earlier message", text: null };
  if (message.deleted) return { id: messageId, name: "a deleted message", text: null };
  const words = plainText(message.text ?? "").slice(0, longest);
  return { id: messageId, name: nameOf(state, message.sender.id, message.sender.name), text: words };
};

/** A text in Markdown as one line of plain text. */
export const plainText = (markdown: string): string =>
  markdown
    .replace(/```[^\n]*\n?/g, " ")
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/^\s{0,3}(#{1,6}|>|[-*+]|\d+[.)])\s+/gm, "")
    .replace(/[*_`~|]+/g, "")
    .replace(/\s+/g, " ")
    .trim();
