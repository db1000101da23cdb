import { useEffect, useRef } from "react";
import type { LiveSpace, SpaceState } from "../../client/index.ts";
import { useWatching } from "../shell/use-watching.ts";

/** A glance is not reading: the end must stay in view for this long. */
const settleMs = 400;

/**
 * Moves the person's read mark to the newest message while its end is in view and the tab has the focus.
 * Answers whether that is so.
 */
export const useReading = (state: SpaceState, live: LiveSpace | null, isAtBottom: boolean): boolean => {
  const isWatched = useWatching() && isAtBottom && state.history.status === "ready";
  const marked = useRef(0);
  const isOpen = state.connection.status === "open";
  const newest = state.messages.at(-1);
  const newestOfOthers = state.messages.findLast((message) => message.sender.id !== state.you?.id);
  const seq = newestOfOthers?.seq ?? 0;
  const newestId = newest?.id;

  useEffect(() => {
    if (!isWatched || !isOpen || newestId === undefined || seq <= marked.current) return;
    const timer = setTimeout(() => {
      marked.current = seq;
      live?.markRead(newestId);
    }, settleMs);
    return () => clearTimeout(timer);
  }, [isWatched, isOpen, newestId, seq, live]);

  return isWatched;
};
