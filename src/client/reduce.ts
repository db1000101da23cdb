import type { z } from "zod";
import type {
  MessageEvent,
  MessageUpdatedEvent,
  ServerFrame,
  StreamSnapshot,
  WelcomeFrame,
} from "../protocol/events.ts";
import type { Message } from "../protocol/message.ts";
import { reduceLocal } from "./reduce-local.ts";
import { leftBackingOff, reducePresence } from "./reduce-presence.ts";
import { noteOfRead, noteOfRouter, noteOfRun, withNote } from "./run-notes.ts";
import type { LocalFrame, ReadMark, RunningStream, SpaceFrame, SpaceState } from "./space-state.ts";
import { mergeMessages, replaceMessage } from "./timeline.ts";

/**
 * What a space looks like to one person, as a pure function of the frames that came.
 *
 * Invariants
 * 1. `messages` ascends by `seq` without doubles or holes, whatever is replayed, repeated or loaded beside it.
 * 2. `cursor` grows by durable events only, never by a welcome that resumed: what is replayed after the welcome is
 *    asked for again if the connection drops in between.
 * 3. A stream is in `streams` from its start until its message, its error, or a welcome without it.
 * 4. An outgoing message leaves `outgoing` only by its message in the log, or by the person's hand.
 * 5. A frame that changes nothing answers the same state.
 * 6. A message is shown as the newest of its events tells it, whatever older one or older page comes after.
 */
export const reduce = (state: SpaceState, frame: SpaceFrame, now: number): SpaceState =>
  isLocal(frame) ? reduceLocal(state, frame, now) : advance(reduceServer(state, frame, now), frame);

/** How long a person shows as typing after the last sign of it. */
export const typingMs = 6000;

const isLocal = (frame: SpaceFrame): frame is LocalFrame => frame.type.startsWith("local.");

const advance = (state: SpaceState, frame: ServerFrame): SpaceState =>
  frame.type !== "welcome" && "cursor" in frame && (state.cursor === null || frame.cursor > state.cursor)
    ? { ...state, cursor: frame.cursor }
    : state;

const reduceServer = (state: SpaceState, frame: ServerFrame, now: number): SpaceState => {
  switch (frame.type) {
    case "welcome":
      return welcome(state, frame);
    case "space.message":
      return message(state, frame);
    case "space.message.updated":
      return updated(state, frame);
    case "member.joined": {
      const others = state.members.filter((member) => member.id !== frame.member.id);
      return { ...state, members: [...others, frame.member] };
    }
    case "member.left":
      return {
        ...state,
        members: state.members.filter((member) => member.id !== frame.entityId),
        typing: state.typing.filter((typing) => typing.entityId !== frame.entityId),
      };
    case "member.renamed":
      return {
        ...state,
        members: state.members.map((member) =>
          member.id === frame.entityId ? { ...member, name: frame.name } : member,
        ),
      };
    case "member.read":
      return read(state, frame);
    case "message.routed":
      return withNote(state, noteOfRouter(frame, seqOf(state, frame.messageId)));
    case "space.updated":
      return { ...state, space: frame.space };
    case "tool-call.start":
      return openStream(state, { ...streamOf(frame), text: "" });
    case "stream.snapshot":
      return openStream(state, { ...streamOf(frame), text: frame.text });
    case "tool-input-delta":
      return growStream(state, frame.streamId, frame.textDelta ?? frame.inputDelta ?? "");
    case "tool-call.error":
      return closeStream(state, frame.streamId);
    case "tool-call.complete":
      return state; // the stream goes with its message, so that its words never blink
    case "agent.active":
    case "agent.inactive":
      return reducePresence(state, frame);
    case "member.typing":
      return frame.entityId === state.you?.id
        ? state
        : {
            ...state,
            typing: [
              ...state.typing.filter((typing) => typing.entityId !== frame.entityId),
              { entityId: frame.entityId, until: now + typingMs },
            ],
          };
    case "error":
      return frame.clientKey === undefined
        ? state
        : reduceLocal(
            state,
            { type: "local.refused", clientKey: frame.clientKey, code: frame.code, message: frame.detail },
            now,
          );
    default: {
      const note = noteOfRun(frame, newestSeq(state));
      return withNote(leftBackingOff(state, frame.runId), note);
    }
  }
};

const newestSeq = (state: SpaceState): number => state.messages.at(-1)?.seq ?? state.cursor ?? 0;

const streamOf = (
  frame: z.infer<typeof StreamSnapshot> | Omit<RunningStream, "text">,
): Omit<RunningStream, "text"> => ({
  streamId: frame.streamId,
  runId: frame.runId,
  entityId: frame.entityId,
  toolName: frame.toolName,
});

const welcome = (state: SpaceState, frame: WelcomeFrame): SpaceState => {
  const kept = frame.resumed ? state : { ...state, messages: [], unplaced: {}, notes: [], reads: {}, history: loading };
  const marks = (frame.reads ?? []).map((mark) => [mark.entityId, readMark(kept, mark)] as const);
  return {
    ...kept,
    space: frame.space,
    members: frame.members,
    you: frame.you,
    cursor: frame.resumed && state.cursor !== null ? state.cursor : frame.cursor,
    streams: frame.streams.map((snapshot) => ({ ...streamOf(snapshot), text: snapshot.text })),
    active: frame.active,
    backingOff: frame.resumed ? state.backingOff : [],
    reads: { ...kept.reads, ...Object.fromEntries(marks) },
    connection: { status: "open" },
  };
};

const loading = { status: "loading" } as const;

const message = (state: SpaceState, { message }: z.infer<typeof MessageEvent>): SpaceState => ({
  ...state,
  messages: placed(state, message),
  streams: state.streams.filter((stream) => stream.streamId !== message.streamId),
  typing: state.typing.filter((typing) => typing.entityId !== message.sender.id),
  outgoing:
    message.sender.id === state.you?.id
      ? state.outgoing.filter((outgoing) => outgoing.clientKey !== message.clientKey)
      : state.outgoing,
});

/**
 * The window with a message that came. A repeated one from before the window would leave a hole behind it (it is
 * found by loading older ones); one that is in it may have been updated since.
 */
const placed = ({ cursor, messages }: SpaceState, message: Message): readonly Message[] => {
  if (cursor === null || message.seq > cursor) return mergeMessages(messages, [message]);
  const first = messages[0];
  return first !== undefined && message.seq >= first.seq ? mergeMessages([message], messages) : messages;
};

/** A repeated update is none: the message may have been updated again since. */
const updated = (state: SpaceState, { cursor, message }: z.infer<typeof MessageUpdatedEvent>): SpaceState => {
  if (state.cursor !== null && cursor <= state.cursor) return state;
  const messages = replaceMessage(state.messages, message);
  if (messages !== state.messages) return { ...state, messages };
  const { history } = state;
  const isLoading = history.status === "loading" || (history.status === "ready" && history.loadingOlder);
  return isLoading ? { ...state, unplaced: { ...state.unplaced, [message.id]: message } } : state;
};

const read = (state: SpaceState, frame: Extract<ServerFrame, { type: "member.read" }>): SpaceState => {
  const mark = readMark(state, frame);
  return withNote({ ...state, reads: { ...state.reads, [frame.entityId]: mark } }, noteOfRead(frame, mark.seq));
};

/** 0 where the message is not loaded. */
const seqOf = (state: SpaceState, messageId: string): number =>
  state.messages.findLast((one) => one.id === messageId)?.seq ?? 0;

const readMark = (state: SpaceState, read: NonNullable<WelcomeFrame["reads"]>[number]): ReadMark => {
  const { messageId, outcome, reason } = read;
  return { messageId, seq: seqOf(state, messageId), ...(outcome ? { outcome } : {}), ...(reason ? { reason } : {}) };
};

/** A stream keeps its place; a second start or a snapshot of it tells its text anew. */
const openStream = (state: SpaceState, stream: RunningStream): SpaceState => {
  const index = state.streams.findIndex((one) => one.streamId === stream.streamId);
  return { ...state, streams: index < 0 ? [...state.streams, stream] : state.streams.with(index, stream) };
};

const growStream = (state: SpaceState, streamId: string, text: string): SpaceState => {
  const index = state.streams.findIndex((one) => one.streamId === streamId);
  const stream = state.streams[index];
  if (stream === undefined || text === "") return state;
  return { ...state, streams: state.streams.with(index, { ...stream, text: stream.text + text }) };
};

const closeStream = (state: SpaceState, streamId: string): SpaceState =>
  state.streams.some((stream) => stream.streamId === streamId)
    ? { ...state, streams: state.streams.filter((stream) => stream.streamId !== streamId) }
    : state;
