import type { Message, SpaceListItem } from "../../client/index.ts";
import { plainText } from "../timeline/quoted.ts";
import { callWords } from "../tool-calls/standing.ts";

/**
 * The open space by its own stream, which is newer than the list. `isWatched`: its end is in view. `readSeq`: the
 * newest `seq` that was marked as read since it was opened.
 */
export type OpenSpace = {
  spaceId: string;
  name: string | undefined;
  confidential?: true | undefined;
  lastMessage: Message | undefined;
  isWatched: boolean;
  readSeq: number | null;
};

/** By space, the newest `seq` that this page marked as read. The list has it only after the next request. */
export type ReadMarks = Readonly<Record<string, number>>;

export const withReadMarks = (spaces: readonly SpaceListItem[], marks: ReadMarks): readonly SpaceListItem[] =>
  spaces.map((space) => {
    const mark = marks[space.id];
    const isRead = mark !== undefined && mark >= (space.lastMessage?.seq ?? 0);
    return isRead && space.unreadCount ? { ...space, unreadCount: 0 } : space;
  });

/** What it means for people that a space is confidential. */
export const confidentialWords = "What is said here stays here: its agents cannot tell it elsewhere.";

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
      ...(open.confidential ? { confidential: true as const } : {}),
      ...(lastMessage ? { lastMessage } : {}),
      ...(isWatched && readSeq !== null ? { unreadCount: 0 } : {}),
    };
  });
};

const activity = (space: SpaceListItem): string => space.lastMessage?.createdAt ?? space.createdAt;

/** Sorted by the newest message, newest first. */
export const byActivity = (spaces: readonly SpaceListItem[]): SpaceListItem[] =>
  [...spaces].sort((one, other) => activity(other).localeCompare(activity(one)));

/** A message in one line of plain text. */
export const preview = (space: SpaceListItem, youId: string): string => {
  const message = space.lastMessage;
  if (!message) return "Nothing said yet";
  const text = message.text ?? (message.toolCall ? callWords(message.toolCall) : "");
  return `${message.sender.id === youId ? "You" : message.sender.name}: ${plainText(text).slice(0, 120)}`;
};
