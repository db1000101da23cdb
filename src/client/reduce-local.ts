import type { Message } from "../protocol/message.ts";
import type { LocalFrame, OutgoingMessage, SpaceState } from "./space-state.ts";
import { mergeMessages } from "./timeline.ts";

/** The client's own part of `reduce`: pages that were loaded, messages under way, the connection, time. */
export const reduceLocal = (state: SpaceState, frame: LocalFrame, now: number): SpaceState => {
  switch (frame.type) {
    case "local.connection":
      // Deltas that are missed while the connection is down would leave holes in a text: a welcome tells it whole.
      return frame.connection.status === "open" ? state : { ...state, connection: frame.connection, typing: [] };
    case "local.latest":
      return withPage(state, frame.messages, frame.hasOlder);
    case "local.older.begin":
      return withLoadingOlder(state, true);
    case "local.older":
      if (state.history.status !== "ready") return state; // asked before the window was given up
      return withPage(state, frame.messages, frame.hasOlder);
    case "local.older.failed":
      return withLoadingOlder(state, false);
    case "local.history.failed":
      return { ...state, history: { status: "failed", message: frame.message } };
    case "local.history.retry":
      return { ...state, history: { status: "loading" } };
    case "local.send": {
      const { clientKey, text, replyTo, createdAt } = frame;
      const outgoing = { clientKey, text, createdAt, status: pending, ...(replyTo ? { replyTo } : {}) };
      return { ...state, outgoing: [...state.outgoing.filter((one) => one.clientKey !== clientKey), outgoing] };
    }
    case "local.refused":
      return withStatus(state, frame.clientKey, { kind: "failed", code: frame.code, message: frame.message });
    case "local.retry":
      return withStatus(state, frame.clientKey, pending);
    case "local.discard":
      return { ...state, outgoing: state.outgoing.filter((one) => one.clientKey !== frame.clientKey) };
    case "local.tick":
      return state.typing.every((typing) => typing.until > now)
        ? state
        : { ...state, typing: state.typing.filter((typing) => typing.until > now) };
  }
};

const pending = { kind: "pending" } as const;

/** What came live is newer than what was loaded, and newer than a page is what was updated while it was loading. */
const withPage = (state: SpaceState, page: readonly Message[], hasOlder: boolean): SpaceState => ({
  ...state,
  messages: mergeMessages(
    page.map((message) => state.unplaced[message.id] ?? message),
    state.messages,
  ),
  unplaced: {},
  history: { status: "ready", hasOlder, loadingOlder: false },
});

const withLoadingOlder = (state: SpaceState, loadingOlder: boolean): SpaceState =>
  state.history.status === "ready" ? { ...state, history: { ...state.history, loadingOlder } } : state;

const withStatus = (state: SpaceState, clientKey: string, status: OutgoingMessage["status"]): SpaceState => ({
  ...state,
  outgoing: state.outgoing.map((one) => (one.clientKey === clientKey ? { ...one, status } : one)),
});
