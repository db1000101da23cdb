import type { LineEvent, NeedsYou, SpaceSummary } from "../protocol/line.ts";
import type { Settings } from "../protocol/notifications.ts";
import type { SpaceListItem } from "../protocol/space.ts";
import type { ColloquyError } from "../shared/errors.ts";

/** A person's spaces, what needs them, and what they were told one by one and have not read. Spaces come newest first. */
export type LineState =
  | { status: "loading" }
  | {
      status: "ready";
      spaces: readonly SpaceSummary[];
      needsYou: readonly NeedsYou[];
      notifications: readonly NotificationEvent[];
      /** The count of the newest notification that there ever was, as the last opening told it. */
      cursor: number;
      /** As they were last changed while the line was open. */
      settings: Settings | null;
      /** Why the line is closed now; it is opened again by itself. */
      problem: ColloquyError | null;
    }
  | { status: "failed"; problem: ColloquyError };

export type NotificationEvent = Extract<LineEvent, { type: "notification" }>;
type Ready = Extract<LineState, { status: "ready" }>;

const byActivity = (spaces: readonly SpaceSummary[]): SpaceSummary[] =>
  [...spaces].sort((one, other) => other.at.localeCompare(one.at) || one.spaceId.localeCompare(other.spaceId));

const change = (state: Ready, event: LineEvent): Ready => {
  switch (event.type) {
    case "space.summary": {
      const { type: _, ...summary } = event;
      const known = state.spaces.find(({ spaceId }) => spaceId === summary.spaceId);
      if (known && known.seq > summary.seq) return state;
      return { ...state, spaces: byActivity([...state.spaces.filter((space) => space !== known), summary]) };
    }
    case "space.left":
      return {
        ...state,
        spaces: state.spaces.filter(({ spaceId }) => spaceId !== event.spaceId),
        needsYou: state.needsYou.filter(({ spaceId }) => spaceId !== event.spaceId),
      };
    case "needs_you":
      return { ...state, needsYou: [...state.needsYou.filter(({ id }) => id !== event.item.id), event.item] };
    case "needs_you.done":
      return { ...state, needsYou: state.needsYou.filter(({ id }) => id !== event.id) };
    case "notification":
      return { ...state, notifications: [...state.notifications.filter(({ id }) => id !== event.id), event] };
    case "notification.cleared":
      return { ...state, notifications: state.notifications.filter(({ id }) => !event.ids.includes(id)) };
    case "settings":
      return { ...state, settings: event.settings };
    default:
      return state;
  }
};

/** A space as a request tells it, of which less is known. */
export const summaryOf = (space: SpaceListItem): SpaceSummary => {
  const { id: spaceId, name, confidential, unreadCount: unread = 0, lastMessage, createdAt } = space;
  const { id: messageId, seq, sender, text, toolCall } = lastMessage ?? { seq: 0 };
  return {
    ...{ spaceId, name, seq, unread, mentions: 0, working: [], needsYou: 0, at: lastMessage?.createdAt ?? createdAt },
    ...(confidential && { confidential: true as const }),
    ...(messageId && sender && { preview: { messageId, sender, text: text ?? toolCall?.name ?? "" } }),
  };
};

const empty = { status: "ready" as const, needsYou: [], notifications: [], cursor: 0, settings: null, problem: null };

/** The state of a line that did not open. */
export const listed = (spaces: SpaceSummary[]): LineState => {
  return { ...empty, spaces: byActivity(spaces) };
};

/** The state after a frame of the line. A welcome tells all, and all unread notifications follow it. */
export const reduceLine = (state: LineState, event: LineEvent): LineState => {
  if (event.type === "welcome") {
    const { spaces, needsYou, cursor } = event;
    return { ...empty, spaces: byActivity(spaces), needsYou, cursor };
  }
  return state.status === "ready" ? change(state, event) : state;
};
