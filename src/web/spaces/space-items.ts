import type { Message, SpaceListItem } from "../../client/index.ts";
import { plainText } from "../timeline/quoted.ts";
import { callWords } from "../tool-calls/standing.ts";

/**
 * What the open space's own stream says of it, which is newer than the list. `isWatched`: its end is in view;
 * `readSeq`: up to where it was marked as read since it was opened.
 */
export type OpenSpace = {
  spaceId: string;
  name: string | undefined;
  lastMessage: Message | undefined;
  isWatched: boolean;
  readSeq: number | null;
};

/** By space, up to which `seq` this page marked it as read: the list learns of it only when it is asked again. */
export type ReadMarks = Readonly<Record<string, number>>;

export const withReadMarks = (spaces: readonly SpaceListItem[], marks: ReadMarks): readonly SpaceListItem[] =>
  spaces.map((space) => {
    const mark = marks[space.id];
    const isRead = mark !== undefined && mark >= (space.lastMessage?.seq ?? 0);
    return isRead && space.unreadCount ? { ...space, unreadCount: 0 } : space;
  });

/** The list with the open space as its stream shows it. */
export const withOpenSpace = (spaces: readonly SpaceListItem[], open: OpenSpace | null): readonly SpaceListItem[] => {
  if (!open) return spaces;
  const { isWatched, readSeq } = open;
  return spaces.map((space) => {
    if (space.id !== open.spaceId) return space;
    const newest = open.lastMessage;
    const lastMessage = newest && newest.seq >= (space.lastMessage?.seq ?? 0) ? newest : space.lastMessage;
    return {
      ...space,
      name: open.name ?? space.name,
      ...(lastMessage ? { lastMessage } : {}),
      ...(isWatched && readSeq !== null ? { unreadCount: 0 } : {}),
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
  const text = message.text ?? (message.toolCall ? callWords(message.toolCall) : "");
  return `${message.sender.id === youId ? "You" : message.sender.name}: ${plainText(text).slice(0, 120)}`;
};
