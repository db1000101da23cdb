import type { runEventTypes, ServerFrame, WelcomeFrame } from "../protocol/events.ts";
import type { Message } from "../protocol/message.ts";
import { isPassing } from "../shared/errors.ts";
import type {
  ActiveAgent,
  LocalFrame,
  Note,
  OutgoingMessage,
  ReadMark,
  RunningStream,
  SpaceFrame,
  SpaceState,
} from "./space-state.ts";

type Changed = Frame<"space.message.updated" | "message.updated" | "message.deleted">;
type Frame<Type extends ServerFrame["type"]> = Extract<ServerFrame, { type: Type }>;

/**
 * The state of a space for one person, as a pure function of the received frames.
 *
 * Invariants
 * 1. `messages` ascends by `seq` without doubles or gaps, whatever is replayed, repeated or loaded.
 * 2. `cursor` grows by durable events only, never by a welcome that resumed. The replay after that welcome must be
 *    requested again if the connection drops before it is complete.
 * 3. A stream is in `streams` from its start until its message, its error, or a welcome without it.
 * 4. An outgoing message leaves `outgoing` only when it is in the log, or when the person discards it.
 * 5. A frame that changes nothing returns the same state.
 * 6. A message is shown as in the newest of its events, whatever older event or page comes later.
 */
export const reduce = (state: SpaceState, frame: SpaceFrame, now: number): SpaceState =>
  isLocal(frame) ? reduceLocal(state, frame, now) : advance(reduceServer(state, frame, now), frame);

/** How long a person shows as typing after the last sign of it. */
const typingMs = 6000;

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
    case "message.updated":
    case "message.deleted":
      return updated(state, frame);
    case "member.joined": {
      const others = state.members.filter((member) => member.id !== frame.member.id);
      return { ...state, members: [...others, frame.member] };
    }
    case "member.left": {
      const members = state.members.filter((member) => member.id !== frame.entityId);
      return { ...state, members, typing: withoutEntity(state.typing, frame.entityId) };
    }
    case "member.renamed": {
      const { entityId, name } = frame;
      const members = state.members.map((member) => (member.id === entityId ? { ...member, name } : member));
      return { ...state, members };
    }
    case "member.read":
      return read(state, frame);
    case "message.routed":
      return routed(state, frame);
    case "space.updated":
      return { ...state, space: frame.space };
    case "agent.budget_exhausted":
      return spent(state, frame);
    case "tool-call.start":
    case "stream.snapshot": {
      const { type: _, ...stream } = frame;
      return openStream(state, { text: "", ...stream });
    }
    case "tool-input-delta":
      return growStream(state, frame.streamId, frame.textDelta ?? frame.inputDelta ?? "");
    case "tool-call.error":
      return without(state, "streams", (stream) => stream.streamId === frame.streamId);
    case "tool-call.complete":
      return state; // the stream goes when its message comes, so that the text does not blink
    case "agent.active":
    case "agent.inactive":
      return presence(leftBackingOff(state, frame.runId), frame);
    case "member.typing": {
      const { entityId } = frame;
      if (entityId === state.you?.id) return state;
      return { ...state, typing: [...withoutEntity(state.typing, entityId), { entityId, until: now + typingMs }] };
    }
    case "error": {
      const { clientKey, code, detail } = frame;
      return clientKey === undefined ? state : withStatus(state, clientKey, { kind: "failed", code, message: detail });
    }
    default:
      return runEvent(leftBackingOff(state, frame.runId), frame);
  }
};

/** The client's own frames: loaded pages, outgoing messages, the connection, time. */
const reduceLocal = (state: SpaceState, frame: LocalFrame, now: number): SpaceState => {
  const { history } = state;
  switch (frame.type) {
    case "local.connection":
      // Streams stay until a welcome brings their full text: deltas that were missed meanwhile would leave gaps.
      return frame.connection.status === "open" ? state : { ...state, connection: frame.connection, typing: [] };
    case "local.suspended":
      return state.isSuspended === frame.isSuspended ? state : { ...state, isSuspended: frame.isSuspended };
    case "local.page.begin":
      if (history.status === "loading") return state;
      return { ...state, history: history.status === "ready" ? { ...history, loadingOlder: true } : loading };
    case "local.page":
      return withPage(state, frame.messages, frame.hasOlder);
    case "local.page.failed": {
      const failed = { status: "failed", message: frame.message } as const;
      return { ...state, history: history.status === "ready" ? { ...history, loadingOlder: false } : failed };
    }
    case "local.send": {
      const { type: _, ...sent } = frame;
      return { ...state, outgoing: [...withoutKey(state.outgoing, sent.clientKey), { ...sent, status: pending }] };
    }
    case "local.change": {
      const known = state.messages.find(({ id }) => id === frame.messageId);
      if (!known) return state;
      const changing = { ...state.changing, [known.id]: state.changing[known.id] ?? known };
      return { ...state, messages: replaced(state, { ...known, ...frame.shown }), changing };
    }
    case "local.changed":
    case "local.change.failed": {
      const before = state.changing[frame.messageId];
      // Its event was here before.
      if (!before) return state;
      const message = frame.type === "local.changed" ? frame.message : before;
      return { ...state, messages: replaced(state, message), changing: withoutId(state.changing, frame.messageId) };
    }
    case "local.retry":
      return withStatus(state, frame.clientKey, pending);
    case "local.discard":
      return { ...state, outgoing: withoutKey(state.outgoing, frame.clientKey) };
    case "local.tick":
      return without(state, "typing", (typing) => typing.until <= now);
  }
};

const pending = { kind: "pending" } as const;
const loading = { status: "loading" } as const;

const welcome = (state: SpaceState, frame: WelcomeFrame): SpaceState =>
  (frame.spent ?? []).reduce(spent, welcomed(state, frame));

const welcomed = (state: SpaceState, frame: WelcomeFrame): SpaceState => {
  const { resumed, space, members, you, cursor, streams, active, waiting, reads = [] } = frame;
  const kept = resumed
    ? state
    : { ...state, messages: [], unplaced: {}, changing: {}, notes: [], reads: {}, history: loading };
  return {
    ...kept,
    space,
    members,
    you,
    active,
    cursor: resumed && state.cursor !== null ? state.cursor : cursor,
    streams: streams.map(({ type: _, ...stream }) => stream),
    backingOff: waiting?.map(backing) ?? (resumed ? state.backingOff : []),
    reads: { ...kept.reads, ...Object.fromEntries(reads.map((mark) => [mark.entityId, readMark(kept, mark)])) },
    connection: { status: "open" },
    isSuspended: false,
  };
};

const message = (state: SpaceState, { message }: Frame<"space.message">): SpaceState => {
  const { clientKey, sender, streamId } = message;
  return {
    ...state,
    messages: placed(state, message),
    streams: state.streams.filter((stream) => stream.streamId !== streamId),
    typing: withoutEntity(state.typing, sender.id),
    outgoing: sender.id === state.you?.id ? withoutKey(state.outgoing, clientKey) : state.outgoing,
  };
};

/**
 * The window with a received message. A repeated message from before the window is left out, since it would leave a
 * gap behind it. A repeated message in the window may have been updated since, so the known version wins.
 */
const placed = ({ cursor, messages }: SpaceState, message: Message): readonly Message[] => {
  if (cursor === null || message.seq > cursor) return mergeMessages(messages, [message]);
  const first = messages[0];
  return first !== undefined && message.seq >= first.seq ? mergeMessages([message], messages) : messages;
};

/** A repeated update changes nothing: the message may have been updated again since. */
const updated = (state: SpaceState, { cursor, message }: Changed): SpaceState => {
  const { history, messages } = state;
  if (state.cursor !== null && cursor <= state.cursor) return state;
  const changing = withoutId(state.changing, message.id);
  if (messages.some((one) => one.id === message.id)) return { ...state, messages: replaced(state, message), changing };
  const isLoading = history.status === "loading" || (history.status === "ready" && history.loadingOlder);
  return isLoading ? { ...state, unplaced: { ...state.unplaced, [message.id]: message } } : state;
};

/** The window with this message as it is now. */
const replaced = ({ messages }: SpaceState, message: Message): readonly Message[] =>
  messages.map((one) => (one.id === message.id ? message : one));

const withoutId = (changing: SpaceState["changing"], messageId: string): SpaceState["changing"] => {
  if (!(messageId in changing)) return changing;
  const { [messageId]: _, ...others } = changing;
  return others;
};

/** 0 if the message is not loaded. */
const seqOf = (state: SpaceState, messageId: string): number =>
  state.messages.findLast((one) => one.id === messageId)?.seq ?? 0;

const readMark = (state: SpaceState, read: NonNullable<WelcomeFrame["reads"]>[number]): ReadMark => {
  const { messageId, outcome, reason } = read;
  return { messageId, seq: seqOf(state, messageId), ...(outcome && { outcome }), ...(reason && { reason }) };
};

/** A stream keeps its place; a second start or a snapshot of it replaces its text. */
const openStream = (state: SpaceState, stream: RunningStream): SpaceState => {
  const index = state.streams.findIndex((one) => one.streamId === stream.streamId);
  return { ...state, streams: index < 0 ? [...state.streams, stream] : state.streams.with(index, stream) };
};

const growStream = (state: SpaceState, streamId: string, text: string): SpaceState => {
  const stream = state.streams.find((one) => one.streamId === streamId);
  return stream === undefined || text === "" ? state : openStream(state, { ...stream, text: stream.text + text });
};

const backing = ({ entityId, runId, reason, events = 1 }: Backing) => ({
  ...{ entityId, runId },
  ...(reason === "guest_away" && { away: events }),
});
type Backing = ActiveAgent & { reason?: string | undefined; events?: number | undefined };

/** Which agents are at work here, and which will try again. */
const presence = (state: SpaceState, frame: Frame<"agent.active" | "agent.inactive">): SpaceState => {
  const { type, entityId, runId, reason } = frame;
  const active = state.active.filter((agent) => agent.runId !== runId);
  if (type === "agent.active") {
    return active.length < state.active.length ? state : { ...state, active: [...active, { entityId, runId }] };
  }
  if (!isPassing(reason)) return { ...state, active };
  return { ...state, active, backingOff: [...state.backingOff, backing(frame)] };
};

/** Any news of a run ends its backing off. */
const leftBackingOff = (state: SpaceState, runId: string): SpaceState =>
  without(state, "backingOff", (one) => one.runId === runId);

/** The end of a run without a message leaves a note. */
const runEvent = (state: SpaceState, frame: Frame<(typeof runEventTypes)[number]>): SpaceState => {
  const { type, runId, entityId, outcome, error } = frame;
  // A notice of its own tells for whom the agent has no tokens left, and until when.
  if (error?.code === "budget_exhausted") return state;
  const kind = type === "run.completed" && outcome === "silent" ? outcome : noteKinds[type];
  const afterSeq = state.messages.at(-1)?.seq ?? state.cursor ?? 0;
  return kind ? withNote(state, { runId, entityId, kind, afterSeq }, error?.message ?? frame.reason) : state;
};

const noteKinds: Partial<Record<ServerFrame["type"], "failed" | "canceled">> = {
  "run.failed": "failed",
  "run.canceled": "canceled",
};

/** An agent's durable read mark leaves the same note as its run; it also reaches a client that was away. */
const read = (state: SpaceState, frame: Frame<"member.read">): SpaceState => {
  const { runId, entityId, outcome, reason } = frame;
  const mark = readMark(state, frame);
  const marked = { ...state, reads: { ...state.reads, [entityId]: mark } };
  if (runId === undefined || (outcome !== "silent" && outcome !== "failed") || mark.seq === 0) return marked;
  return withNote(marked, { runId, entityId, kind: outcome, afterSeq: mark.seq }, reason);
};

/** Only a failed router leaves a note. Where it decided, the woken agents show by themselves. */
const routed = (state: SpaceState, { messageId, outcome, error }: Frame<"message.routed">): SpaceState => {
  const afterSeq = seqOf(state, messageId);
  if (outcome !== "failed" || afterSeq === 0) return state;
  return withNote(state, { messageId, kind: "unrouted", afterSeq }, error?.message);
};

/** An agent has no tokens or runs left for now. It is told once, so a note of it keeps its place. */
const spent = (state: SpaceState, frame: NonNullable<WelcomeFrame["spent"]>[number]): SpaceState => {
  const { entityId, personId, resetsAt, budget, cursor: afterSeq } = frame;
  const whose = { ...(personId && { personId }), ...(budget && { budget }) };
  return withNote(state, { kind: "spent", entityId, resetsAt, afterSeq, ...whose }, undefined);
};

/** Notes help people who watch. The runs API keeps the history. */
const maxNotes = 50;

/** Tells one note from others: by the run or message that it is about, or by whose budget. */
export const keyOfNote = (note: Note): string => {
  if (note.kind === "spent") return [note.entityId, note.personId ?? "", note.resetsAt].join(" ");
  return note.kind === "unrouted" ? note.messageId : note.runId;
};

/** Keeps one note for each run or message, in its first place. A later note only adds missing fields. */
const withNote = (state: SpaceState, bare: Note, reason: string | undefined): SpaceState => {
  const note = { ...bare, ...(reason && { reason }) };
  const index = state.notes.findIndex((one) => keyOfNote(one) === keyOfNote(note));
  const known = state.notes[index];
  const notes = known ? state.notes.with(index, { ...note, ...known }) : [...state.notes, note].slice(-maxNotes);
  return { ...state, notes };
};

/** Live messages are newer than loaded ones. Updates that came while a page was loading are newer than the page. */
const withPage = (state: SpaceState, page: readonly Message[], hasOlder: boolean): SpaceState => {
  const loaded = page.map((message) => state.unplaced[message.id] ?? message);
  const history = { status: "ready", hasOlder, loadingOlder: false } as const;
  return { ...state, messages: mergeMessages(loaded, state.messages), unplaced: {}, history };
};

const withStatus = (state: SpaceState, clientKey: string, status: OutgoingMessage["status"]): SpaceState => ({
  ...state,
  outgoing: state.outgoing.map((one) => (one.clientKey === clientKey ? { ...one, status } : one)),
});

const withoutKey = (outgoing: readonly OutgoingMessage[], clientKey: string | undefined): OutgoingMessage[] =>
  outgoing.filter((one) => one.clientKey !== clientKey);

const withoutEntity = <One extends { entityId: string }>(list: readonly One[], entityId: string): One[] =>
  list.filter((one) => one.entityId !== entityId);

/** The state without the list members for which `isGone` holds; the same state if there are none. */
const without = <Key extends "streams" | "typing" | "backingOff">(
  state: SpaceState,
  key: Key,
  isGone: (one: SpaceState[Key][number]) => boolean,
): SpaceState => {
  const list: readonly SpaceState[Key][number][] = state[key];
  return list.some(isGone) ? { ...state, [key]: list.filter((one) => !isGone(one)) } : state;
};

/**
 * Messages in the order of their `seq`, each once; of two with the same `seq` the one of `newer` wins.
 * Linear where one list follows the other, which is the usual case.
 */
const mergeMessages = (older: readonly Message[], newer: readonly Message[]): readonly Message[] => {
  const first = newer[0];
  const last = older.at(-1);
  if (first === undefined) return older;
  if (last === undefined || last.seq < first.seq) return [...older, ...newer];
  const bySeq = new Map([...older, ...newer].map((message) => [message.seq, message]));
  return [...bySeq.values()].sort((one, other) => one.seq - other.seq);
};
