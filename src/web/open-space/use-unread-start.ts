import { useState } from "react";
import type { SpaceState } from "../../client/index.ts";
import { firstUnreadSeq } from "../timeline/rows.ts";

/** Where the unread messages began when the space was opened; it stays there until the space is left. */
export const useUnreadStart = (state: SpaceState, unreadCount: number): number | null => {
  const [countAtOpening] = useState(unreadCount);
  const [start, setStart] = useState<{ seq: number | null } | null>(null);
  if (start === null && state.history.status === "ready") {
    setStart({ seq: firstUnreadSeq(state, countAtOpening) });
  }
  return start?.seq ?? null;
};
