import { useEffect, useState } from "react";
import type { LiveSpace, SpaceState } from "../../client/index.ts";
import { useWatching } from "../shell/use-watching.ts";

/** A glance is not reading: the end must stay in view for this long. It also makes one mark of a burst. */
const settleMs = 500;

export type Reading = { isWatched: boolean; readSeq: number | null };

/**
 * Moves the person's read mark to the newest message while its end is in view and the tab has the focus.
 * Answers whether it is in view, and up to which `seq` it was marked.
 */
export const useReading = (state: SpaceState, live: LiveSpace | null, isAtBottom: boolean): Reading => {
  const isWatched = useWatching() && isAtBottom && state.history.status === "ready";
  const [marked, setMarked] = useState<{ seq: number; newestSeq: number } | null>(null);
  const isOpen = state.connection.status === "open";
  const newest = state.messages.at(-1);
  const newestOfOthers = state.messages.findLast((message) => message.sender.id !== state.you?.id);
  const seq = newestOfOthers?.seq ?? 0;
  const newestId = newest?.id;
  const newestSeq = newest?.seq ?? 0;
  const markedSeq = marked?.seq ?? 0;

  useEffect(() => {
    if (!isWatched || !isOpen || newestId === undefined || seq <= markedSeq) return;
    const timer = setTimeout(() => {
      setMarked({ seq, newestSeq });
      live?.markRead(newestId);
    }, settleMs);
    return () => clearTimeout(timer);
  }, [isWatched, isOpen, newestId, newestSeq, seq, markedSeq, live]);

  return { isWatched, readSeq: marked?.newestSeq ?? null };
};
