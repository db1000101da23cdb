import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { Virtuoso, type VirtuosoHandle } from "react-virtuoso";
import type { LiveSpace, SpaceState } from "../../client/index.ts";
import { useToast } from "../toasts/toasts.tsx";
import { JumpButton } from "./jump-button.tsx";
import { type Row, timelineRows } from "./rows.ts";
import { TimelineRow } from "./timeline-row.tsx";
import { TimelineEmpty, TimelineFailed, TimelineLoading, TimelineTop } from "./timeline-states.tsx";
import "./timeline.css";

/** Virtuoso counts rows from here, downwards as older ones come before them. */
const firstIndex = 1_000_000;

/** Whoever fills in a form keeps it under the eyes, whatever comes meanwhile. */
const isAnswering = (): boolean => document.activeElement?.closest(".call-people") != null;

/** A message that somebody wants to see; another object wants it anew. */
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
  // The row that was first when the list began: how many stand before it now tells where the count begins.
  const [anchor, setAnchor] = useState(rows[0]?.key);
  const before = rows.findIndex((row) => row.key === anchor);
  if (before < 0) setAnchor(rows[0]?.key);

  const names = useMemo(() => state.members.map((member) => member.name), [state.members]);
  const newestSeq = state.messages.at(-1)?.seq ?? 0;
  const unseen = state.messages.filter(
    (message) => seenSeq !== null && message.seq > seenSeq && message.sender.id !== state.you?.id,
  ).length;

  const atBottomChanged = useCallback(
    (atBottom: boolean) => {
      setSeenSeq(atBottom ? null : newestSeq);
      onAtBottom(atBottom);
    },
    [newestSeq, onAtBottom],
  );
  /** What grows by less than the threshold still counts as being at the bottom, and must not hide its last line. */
  const stayAtBottom = useCallback(() => {
    if (isAtBottom && !isAnswering()) list.current?.scrollTo({ top: Number.MAX_SAFE_INTEGER });
  }, [isAtBottom]);
  // What grows below the list takes its room from it.
  const frame = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const observer = new ResizeObserver(stayAtBottom);
    if (frame.current) observer.observe(frame.current);
    return () => observer.disconnect();
  }, [stayAtBottom]);
  const loadOlder = useCallback(() => {
    live?.loadOlder().catch((error: unknown) => toast(`Older messages could not be loaded. ${String(error)}`));
  }, [live, toast]);

  const [targetId, setTargetId] = useState<string | null>(null);
  const shownRows = useRef(rows);
  useEffect(() => {
    shownRows.current = rows;
  }, [rows]);
  const actions = useMemo(
    () => ({
      onReply,
      onGoTo: (messageId: string) => {
        const index = shownRows.current.findIndex((row) => row.kind === "message" && row.message.id === messageId);
        if (index < 0) return;
        list.current?.scrollToIndex({ index, align: "center" });
        setTargetId(messageId);
      },
      onLeft: () => setTargetId(null),
    }),
    [onReply],
  );
  useEffect(() => {
    if (led) actions.onGoTo(led.messageId);
  }, [led, actions]);

  return (
    <div className="timeline" ref={frame}>
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
        atBottomThreshold={60}
        atBottomStateChange={atBottomChanged}
        followOutput={(atBottom) => (rows.at(-1)?.kind === "outgoing" || (atBottom && !isAnswering()) ? "auto" : false)}
        totalListHeightChanged={stayAtBottom}
        startReached={loadOlder}
        context={{ state }}
        components={{ Header: TimelineHeader, Footer: TimelineFooter }}
        itemContent={(_, row) => <TimelineRow {...{ row, state, live, names, targetId, actions }} />}
      />
      <JumpButton
        isShown={!isAtBottom}
        count={unseen}
        onJump={() => list.current?.scrollToIndex({ index: "LAST", align: "end", behavior: "auto" })}
      />
    </div>
  );
};

const TimelineHeader = ({ context }: { context?: { state: SpaceState } }) =>
  context ? <TimelineTop history={context.state.history} space={context.state.space} /> : null;

const TimelineFooter = () => <div className="timeline-foot" />;
