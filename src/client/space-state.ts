import type { Member } from "../protocol/entity.ts";
import type { ServerFrame, WelcomeFrame } from "../protocol/events.ts";
import type { Message } from "../protocol/message.ts";
import type { ErrorCode } from "../shared/errors.ts";

/** What an agent is saying right now. `text` grows; for other tools than speech it is raw JSON. */
export type RunningStream = {
  streamId: string;
  runId: string;
  entityId: string;
  toolName: string;
  text: string;
};

export type ActiveAgent = { entityId: string; runId: string };

/** `until` is in milliseconds of the clock that the frames were reduced with. */
export type Typing = { entityId: string; until: number };

export type RunOutcome = "answered" | "silent" | "failed";

/** `seq` is the message's, 0 where it was not loaded when the mark came. */
export type ReadMark = { messageId: string; seq: number; outcome?: RunOutcome; reason?: string };

/** A run that left no message: it failed, was canceled, or its agent chose to say nothing. Stands after `afterSeq`. */
export type RunNote = {
  runId: string;
  entityId: string;
  kind: "failed" | "silent" | "canceled";
  reason?: string;
  afterSeq: number;
};

/** The space's router could not decide about the message at `afterSeq`: no agent was woken by it. */
export type RouterNote = { messageId: string; kind: "unrouted"; reason?: string; afterSeq: number };

export type Note = RunNote | RouterNote;

/** A message of this person that the log does not have yet. */
export type OutgoingMessage = {
  clientKey: string;
  text: string;
  replyTo?: string;
  /** ISO 8601. */
  createdAt: string;
  status: { kind: "pending" } | { kind: "failed"; code: ErrorCode; message: string };
};

/** `removed` from the space, `deleted` with it, or `signed_out`: the token is no good and there is no other. */
export type ClosedReason = "closed" | "removed" | "deleted" | "signed_out";

export type ConnectionState =
  | { status: "connecting" }
  | { status: "open" }
  | { status: "reconnecting"; attempt: number }
  | { status: "offline" }
  | { status: "closed"; reason: ClosedReason };

export type HistoryState =
  | { status: "loading" }
  | { status: "ready"; hasOlder: boolean; loadingOlder: boolean }
  | { status: "failed"; message: string };

export type SpaceState = {
  spaceId: string;
  space: WelcomeFrame["space"] | null;
  you: WelcomeFrame["you"] | null;
  members: readonly Member[];
  /** A window of the timeline without holes, oldest first, each `seq` once. */
  messages: readonly Message[];
  history: HistoryState;
  /** Updates of messages that are not in the window, by id: the page that is loading may hold them as they were. */
  unplaced: Readonly<Record<string, Message>>;
  /** In the order in which they began. */
  streams: readonly RunningStream[];
  active: readonly ActiveAgent[];
  /** Agents whose model is out of reach for now: they try again by themselves. */
  backingOff: readonly ActiveAgent[];
  typing: readonly Typing[];
  reads: Readonly<Record<string, ReadMark>>;
  notes: readonly Note[];
  outgoing: readonly OutgoingMessage[];
  /** The newest event of the log that is in this state; null before the first welcome. */
  cursor: number | null;
  connection: ConnectionState;
};

/** What the client itself reports to its state, beside the server's frames. */
export type LocalFrame =
  | { type: "local.connection"; connection: ConnectionState }
  | { type: "local.latest"; messages: readonly Message[]; hasOlder: boolean }
  | { type: "local.older.begin" }
  | { type: "local.older"; messages: readonly Message[]; hasOlder: boolean }
  | { type: "local.older.failed" }
  | { type: "local.history.failed"; message: string }
  | { type: "local.history.retry" }
  | { type: "local.send"; clientKey: string; text: string; replyTo?: string; createdAt: string }
  | { type: "local.retry"; clientKey: string }
  | { type: "local.discard"; clientKey: string }
  | { type: "local.tick" };

export type SpaceFrame = ServerFrame | LocalFrame;

export const initialSpaceState = (spaceId: string, cursor: number | null = null): SpaceState => ({
  spaceId,
  space: null,
  you: null,
  members: [],
  messages: [],
  history: { status: "loading" },
  unplaced: {},
  streams: [],
  active: [],
  backingOff: [],
  typing: [],
  reads: {},
  notes: [],
  outgoing: [],
  cursor,
  connection: { status: "connecting" },
});
