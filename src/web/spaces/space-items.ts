import type { SpaceListItem, SpaceState } from "../../client/index.ts";

/** What the open space's own stream says of it, which is newer than the list. `isWatched`: its end is being read. */
export type OpenSpace = { state: SpaceState; isWatched: boolean };

/** The list with the open space as its stream shows it. */
export const withOpenSpace = (spaces: readonly SpaceListItem[], open: OpenSpace | null): readonly SpaceListItem[] => {
  if (!open) return spaces;
  const { state, isWatched } = open;
  return spaces.map((space) => {
    if (space.id !== state.spaceId) return space;
    const newest = state.messages.at(-1);
    const lastMessage = newest && newest.seq >= (space.lastMessage?.seq ?? 0) ? newest : space.lastMessage;
    return {
      ...space,
      name: state.space?.name ?? space.name,
      ...(lastMessage ? { lastMessage } : {}),
      ...(isWatched ? { unreadCount: 0 } : {}),
    };
  });
};

const activity = (space: SpaceListItem): string => space.lastMessage?.createdAt ?? space.createdAt;

/** What moved last comes first. */
export const byActivity = (spaces: readonly SpaceListItem[]): SpaceListItem[] =>
  [...spaces].sort((one, other) => activity(other).localeCompare(activity(one)));

/** A message in one line of plain text. */
export const preview = (space: SpaceListItem, youId: string): string => {
  const message = space.lastMessage;
  if (!message) return "Nothing said yet";
  const text = message.text ?? `called ${message.toolCall?.name ?? "a tool"}`;
  const plain = text
    .replace(/```[^\n]*\n?/g, " ")
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/^\s{0,3}(#{1,6}|>|[-*+]|\d+[.)])\s+/gm, "")
    .replace(/[*_`~|]+/g, "")
    .replace(/\s+/g, " ")
    .trim();
  return `${message.sender.id === youId ? "You" : message.sender.name}: ${plain.slice(0, 120)}`;
};
