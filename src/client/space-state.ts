import type { Member } from "../protocol/entity.ts";
import type { Budget, ServerFrame, StreamSnapshot, WelcomeFrame } from "../protocol/events.ts";
import type { Message } from "../protocol/message.ts";
import type { RunOutcome } from "../protocol/run.ts";
import type { ErrorCode } from "../shared/errors.ts";

/** A tool call that an agent is writing. `text` grows. Where it `speaks` that is a message, otherwise raw JSON. */
export type RunningStream = Omit<StreamSnapshot, "type">;

/** `personId`: whose share is used up, of the day's tokens or of an hour's `runs`; left out: the agent's whole day is. */
export type SpentBudget = { entityId: string; personId?: string; resetsAt: string; budget?: Budget };

/** `away`: it is a guest whose program is away, and so many events wait for it. */
export type ActiveAgent = { entityId: string; runId: string; away?: number };

/** `until` is in milliseconds, by the `now` that `reduce` was given. */
export type Typing = { entityId: string; until: number };

/** `seq` is the message's; 0 if the message was not loaded when the mark came. */
export type ReadMark = { messageId: string; seq: number; outcome?: RunOutcome; reason?: string };

/**
 * Something that left no message, shown after the message at `afterSeq`. A run failed, was canceled or stayed silent, a
 * router failed on this message, or an agent has no tokens for today.
 */
export type Note = { reason?: string; afterSeq: number } & (
  | { runId: string; entityId: string; kind: "failed" | "silent" | "canceled" }
  | { messageId: string; kind: "unrouted" }
  | ({ kind: "spent" } & SpentBudget)
);

/** A message of this person that is not in the log yet. */
export type OutgoingMessage = {
  clientKey: string;
  text: string;
  replyTo?: string;
  /** ISO 8601. */
  createdAt: string;
  status: { kind: "pending" } | { kind: "failed"; code: ErrorCode; message: string };
};

/** `removed`: the person left the space. `deleted`: the space is gone. `signed_out`: no valid token is left. */
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
  /** A window of the timeline without gaps, oldest first, each `seq` once. */
  messages: readonly Message[];
  history: HistoryState;
  /** Updates of messages outside the window, by id. The page that is loading may hold their older versions. */
  unplaced: Readonly<Record<string, Message>>;
  /** Messages that this person changes, as the log has them: they show as if it were done. */
  changing: Readonly<Record<string, Message>>;
  /** In the order of their starts. */
  streams: readonly RunningStream[];
  active: readonly ActiveAgent[];
  /** Agents whose model cannot be reached; they try again by themselves. And guests whose program is away. */
  backingOff: readonly ActiveAgent[];
  typing: readonly Typing[];
  reads: Readonly<Record<string, ReadMark>>;
  notes: readonly Note[];
  outgoing: readonly OutgoingMessage[];
  /** The newest log event in this state; null before the first welcome. */
  cursor: number | null;
  connection: ConnectionState;
  /** Its workspace is: no connection opens until it is resumed, and the history is there. */
  isSuspended: boolean;
};

/** Frames of the client itself, beside the server's. */
export type LocalFrame =
  | { type: "local.connection"; connection: ConnectionState }
  | { type: "local.suspended"; isSuspended: boolean }
  | { type: "local.page.begin" }
  | { type: "local.page"; messages: readonly Message[]; hasOlder: boolean }
  | { type: "local.page.failed"; message: string }
  | ({ type: "local.send" } & Omit<OutgoingMessage, "status">)
  | { type: "local.change"; messageId: string; shown: Partial<Message> }
  | { type: "local.changed"; messageId: string; message: Message }
  | { type: "local.change.failed"; messageId: string }
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
  changing: {},
  streams: [],
  active: [],
  backingOff: [],
  typing: [],
  reads: {},
  notes: [],
  outgoing: [],
  cursor,
  connection: { status: "connecting" },
  isSuspended: false,
});
