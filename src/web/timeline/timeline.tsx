import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { Virtuoso, type VirtuosoHandle } from "react-virtuoso";
import type { LiveSpace, SpaceState } from "../../client/index.ts";
import { Icon } from "../look/icon.tsx";
import { useSignedIn } from "../session/session.ts";
import { useRequest } from "../session/use-request.ts";
import { useToast } from "../toasts/toasts.tsx";
import { useFollowing } from "./following.ts";
import { type Asked, MessageDialog } from "./message-dialogs.tsx";
import { nameOf } from "./presence.ts";
import { type Row, timelineRows } from "./rows.ts";
import { TimelineRow } from "./timeline-row.tsx";
import { TimelineEmpty, TimelineFailed, TimelineLoading, TimelineTop } from "./timeline-states.tsx";
import "./timeline.css";

/** The index of the first row. It shrinks when older rows come before. */
const firstIndex = 1_000_000;

/** A message to scroll to. A new object scrolls there again. */
export type Led = { messageId: string };

type TimelineProps = {
  state: SpaceState;
  live: LiveSpace | null;
  unreadFromSeq: number | null;
  isAtBottom: boolean;
  onAtBottom: (isAtBottom: boolean) => void;
  onReply: (messageId: string) => void;
  led: Led | null;
};

export const Timeline = ({ state, live, unreadFromSeq, isAtBottom, onAtBottom, onReply, led }: TimelineProps) => {
  const rows = useMemo(() => timelineRows(state, unreadFromSeq), [state, unreadFromSeq]);
  if (state.history.status === "failed") {
    return <TimelineFailed message={state.history.message} onRetry={() => live?.reloadHistory()} />;
  }
  if (state.history.status === "loading") return <TimelineLoading />;
  if (rows.length === 0) return <TimelineEmpty {...state} />;
  return <TimelineList {...{ state, live, rows, isAtBottom, onAtBottom, onReply, led }} />;
};

type TimelineListProps = Omit<TimelineProps, "unreadFromSeq"> & { rows: readonly Row[] };

const TimelineList = ({ state, live, rows, isAtBottom, onAtBottom, onReply, led }: TimelineListProps) => {
  const list = useRef<VirtuosoHandle>(null);
  const toast = useToast();
  const [seenSeq, setSeenSeq] = useState<number | null>(null);
  // The first row when the list began. The number of rows before it now moves the first index.
  const [anchor, setAnchor] = useState(rows[0]?.key);
  const before = rows.findIndex((row) => row.key === anchor);
  if (before < 0) setAnchor(rows[0]?.key);

  const names = useMemo(() => state.members.map((member) => member.name), [state.members]);
  const newestSeq = state.messages.at(-1)?.seq ?? 0;
  const unseen = state.messages.filter(
    (message) => seenSeq !== null && message.seq > seenSeq && message.sender.id !== state.you?.id,
  ).length;

  const followed = useRef({ newestSeq, onAtBottom });
  useEffect(() => {
    followed.current = { newestSeq, onAtBottom };
  }, [newestSeq, onAtBottom]);
  const { scrollerRef, follows, leaveEnd, isLedTo } = useFollowing(
    useCallback(() => list.current?.scrollTo({ top: Number.MAX_SAFE_INTEGER }), []),
    useCallback((isFollowing: boolean) => {
      setSeenSeq(isFollowing ? null : followed.current.newestSeq);
      followed.current.onAtBottom(isFollowing);
    }, []),
  );
  const loadOlder = useCallback(() => {
    live?.loadOlder().catch((error: unknown) => toast(`Older messages could not be loaded. ${String(error)}`));
  }, [live, toast]);

  const { client, entityId } = useSignedIn();
  const { answer: you } = useRequest(useCallback(() => client.getEntity(entityId), [client, entityId]));
  const isAdmin = you?.role === "admin";
  const [asked, setAsked] = useState<Asked | null>(null);
  const [targetId, setTargetId] = useState<string | null>(null);
  const shownRows = useRef(rows);
  useEffect(() => {
    shownRows.current = rows;
  }, [rows]);
  const actions = useMemo(
    () => ({
      onReply,
      onChange: setAsked,
      onGoTo: (messageId: string) => {
        const index = shownRows.current.findIndex((row) => row.kind === "message" && row.message.id === messageId);
        if (index < 0) return;
        leaveEnd(messageId);
        list.current?.scrollToIndex({ index, align: "center" });
        setTargetId(messageId);
      },
      onLeft: () => setTargetId(null),
    }),
    [onReply, leaveEnd],
  );
  useSought(led, rows, actions.onGoTo, isLedTo, state.history, loadOlder);

  return (
    <div className="timeline">
      <Virtuoso
        key={anchor}
        ref={list}
        className="timeline-list"
        data={rows}
        computeItemKey={(_, row) => row.key}
        firstItemIndex={firstIndex - Math.max(0, before)}
        initialTopMostItemIndex={{ index: "LAST", align: "end" }}
        alignToBottom
        increaseViewportBy={{ top: 800, bottom: 400 }}
        scrollerRef={scrollerRef}
        followOutput={() => (rows.at(-1)?.kind === "outgoing" || follows() ? "auto" : false)}
        startReached={loadOlder}
        context={{ state }}
        components={{ Header: TimelineHeader, Footer: TimelineFooter }}
        itemContent={(_, row) => <TimelineRow {...{ row, state, live, names, targetId, isAdmin, actions }} />}
      />
      {asked && live && (
        <MessageDialog
          {...{ asked, live }}
          nameOf={(agentId) => nameOf(state, agentId, "An agent that left")}
          onClose={() => setAsked(null)}
        />
      )}
      {!isAtBottom && (
        <JumpButton
          count={unseen}
          onJump={() => list.current?.scrollToIndex({ index: "LAST", align: "end", behavior: "auto" })}
        />
      )}
    </div>
  );
};

/** So many pages are loaded to find a message that a link leads to. */
const maxPagesSought = 20;
const goesAgainMs = [200, 500, 1000, 2000];

/** Goes to the message that the address or a card leads to, once: older pages are loaded until it is there. */
const useSought = (
  led: Led | null,
  rows: readonly Row[],
  goTo: (messageId: string) => void,
  isLedTo: (messageId: string) => boolean,
  history: SpaceState["history"],
  loadOlder: () => void,
): void => {
  const sought = useRef<{ led: Led; pages: number } | null>(null);
  useEffect(() => {
    sought.current = led && { led, pages: 0 };
  }, [led]);
  useEffect(() => {
    const { current } = sought;
    if (!current) return;
    const { messageId } = current.led;
    if (rows.some((row) => row.kind === "message" && row.message.id === messageId)) {
      sought.current = null;
      // The list first takes in the rows that came before, and finds their heights: it goes there anew meanwhile.
      requestAnimationFrame(() => requestAnimationFrame(() => goTo(messageId)));
      for (const ms of goesAgainMs) setTimeout(() => isLedTo(messageId) && goTo(messageId), ms);
    } else if (history.status !== "ready" || !history.hasOlder || current.pages >= maxPagesSought)
      sought.current = null;
    else if (!history.loadingOlder) {
      current.pages += 1;
      loadOlder();
    }
  }, [led, rows, goTo, isLedTo, history, loadOlder]);
};

const TimelineHeader = ({ context }: { context?: { state: SpaceState } }) =>
  context ? <TimelineTop history={context.state.history} space={context.state.space} /> : null;

const TimelineFooter = () => <div style={{ height: 12 }} />;

/** Leads back to the newest message, and counts those that came meanwhile. */
const JumpButton = ({ count, onJump }: { count: number; onJump: () => void }) => {
  const words = count === 0 ? "Jump to the newest message" : `${count} new ${count === 1 ? "message" : "messages"}`;
  return (
    <button type="button" className="jump row small soft raised" data-count={count} onClick={onJump} aria-label={words}>
      {count > 0 && <span>{words}</span>}
      <Icon name="down" size={18} />
    </button>
  );
};
