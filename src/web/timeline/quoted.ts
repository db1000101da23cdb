import type { SpaceState } from "../../client/index.ts";
import { plainText } from "../look/plain-text.ts";
import { nameOf } from "./presence.ts";

/** A message as another one quotes it; `text` is null where it is not loaded. */
export type Quoted = { id: string; name: string; text: string | null };

const longest = 300;

/** What a message answers, by its id; null where it answers none. */
export const quotedIn = (
  state: Pick<SpaceState, "members" | "messages">,
  messageId: string | undefined,
): Quoted | null => {
  if (messageId === undefined) return null;
  const message = state.messages.find(({ id }) => id === messageId);
  if (!message) return { id: messageId, name: "an earlier message", text: null };
  const words = plainText(message.text ?? "").slice(0, longest);
  return { id: messageId, name: nameOf(state, message.sender.id, message.sender.name), text: words };
};
