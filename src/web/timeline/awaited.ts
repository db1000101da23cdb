import type { Message, SpaceState } from "../../client/index.ts";

const list = new Intl.ListFormat("en", { type: "conjunction" });

/** The members whom a message asked and who have said nothing here since; null where it waits for nobody any more. */
export const awaited = (message: Message, state: Pick<SpaceState, "members" | "messages">): string | null => {
  if (!message.expectsReply) return null;
  const later = state.messages.filter(({ seq, sender }) => seq > message.seq && sender.id !== message.sender.id);
  const spoke = new Set(later.map(({ sender }) => sender.id));
  const asked = message.mentions ?? [];
  if (asked.length === 0) return later.length === 0 ? "an answer" : null;
  const names = state.members.filter(({ id }) => asked.includes(id) && !spoke.has(id)).map(({ name }) => name);
  return names.length === 0 ? null : list.format(names);
};
