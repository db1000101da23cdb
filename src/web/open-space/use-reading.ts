import { useEffect, useState, useSyncExternalStore } from "react";
import type { LiveSpace, SpaceState } from "../../client/index.ts";
import { firstUnreadSeq } from "../timeline/rows.ts";

/** The end must stay in view for this long to count as read. It also makes one mark of a burst. */
const settleMs = 500;

/** Moves the person's read mark to the newest message while its end is in view and the tab has the focus. */
export const useReading = (state: SpaceState, live: LiveSpace | null, isAtBottom: boolean): void => {
  const isPageWatched = useSyncExternalStore(subscribe, () => !document.hidden && document.hasFocus());
  const isWatched = isPageWatched && isAtBottom && state.history.status === "ready";
  const [markedSeq, setMarkedSeq] = useState(0);
  const isOpen = state.connection.status === "open";
  const newest = state.messages.at(-1);
  const newestOfOthers = state.messages.findLast((message) => message.sender.id !== state.you?.id);
  const seq = newestOfOthers?.seq ?? 0;
  const newestId = newest?.id;
  const newestSeq = newest?.seq ?? 0;

  useEffect(() => {
    if (!isWatched || !isOpen || newestId === undefined || seq <= markedSeq) return;
    const timer = setTimeout(() => {
      setMarkedSeq(seq);
      live?.markRead(newestId);
    }, settleMs);
    return () => clearTimeout(timer);
  }, [isWatched, isOpen, newestId, newestSeq, seq, markedSeq, live]);
};

const watchEvents = ["focus", "blur", "visibilitychange", "pageshow"] as const;

const subscribe = (listener: () => void): (() => void) => {
  for (const event of watchEvents) addEventListener(event, listener);
  return () => {
    for (const event of watchEvents) removeEventListener(event, listener);
  };
};

/** Where the unread messages began when the space was opened; it stays there until the space is left. */
export const useUnreadStart = (state: SpaceState, unreadCount: number): number | null => {
  const [countAtOpening] = useState(unreadCount);
  const [start, setStart] = useState<{ seq: number | null } | null>(null);
  if (start === null && state.history.status === "ready") {
    setStart({ seq: firstUnreadSeq(state, countAtOpening) });
  }
  return start?.seq ?? null;
};
