import { initialSpaceState, type Message, reduce, type SpaceFrame, type SpaceState } from "../../src/client/index.ts";
import type { DurableEvent, WelcomeFrame } from "../../src/protocol/events.ts";
import { createIds } from "../../src/shared/ids.ts";

/** The people and the frames of the reducer's tests. */
const ids = createIds("for tests of the reducer only");

const createdAt = "2026-02-18T15:06:55.000Z";
export const spaceId = ids.derive("spc", "alpha");

const participant = (name: string, type: "human" | "agent") => ({ id: ids.derive("ent", name), name, type });
export const husam = participant("Husam", "human");
export const sara = participant("Sara", "human");
export const nova = participant("Nova", "agent");

export const streamId = (name: string): string => ids.derive("str", name);
export const runId = (name: string): string => ids.deriveOwned("run", nova.id, name);
export const messageId = (seq: number): string => ids.deriveOwned("msg", spaceId, seq);

export const message = (seq: number, extra: Partial<Message> = {}): Message => ({
  id: messageId(seq),
  seq,
  spaceId,
  kind: "text",
  sender: sara,
  text: `message ${seq}`,
  createdAt,
  ...extra,
});

export const said = (seq: number, extra: Partial<Message> = {}): DurableEvent => ({
  type: "space.message",
  cursor: seq,
  message: message(seq, extra),
});

/** A message with an agent's call. Its output is the number of its changes. */
export const called = (output: number): Partial<Message> => ({
  kind: "tool_call",
  sender: nova,
  toolCall: { id: ids.deriveOwned("tc", nova.id, "call"), name: "choose", input: {}, output, status: "running" },
});

export const updated = (cursor: number, message: Message): DurableEvent => ({
  type: "space.message.updated",
  cursor,
  message,
});

export const space = {
  id: spaceId,
  name: "Project Alpha",
  wakePolicy: "every_message",
  shareOrigin: "reference",
  createdAt,
} as const;

export const welcome = (cursor: number, extra: Partial<WelcomeFrame> = {}): WelcomeFrame => ({
  type: "welcome",
  space,
  members: [husam, sara, nova].map((member) => ({ ...member, joinedAt: createdAt })),
  you: husam,
  cursor,
  resumed: true,
  streams: [],
  active: [],
  ...extra,
});

export const start = (name: string) =>
  ({
    type: "tool-call.start",
    streamId: streamId(name),
    runId: runId(name),
    entityId: nova.id,
    toolName: "send_message",
    speaks: true,
  }) as const;

export const delta = (name: string, textDelta: string) =>
  ({ type: "tool-input-delta", streamId: streamId(name), textDelta }) as const;

export const snapshot = (name: string, text: string) => ({ ...start(name), type: "stream.snapshot", text }) as const;

export const loaded = (messages: readonly Message[], hasOlder = false) =>
  ({ type: "local.page", messages, hasOlder }) as const;

/** The initial state reduced with these frames, at time 0. */
export const after = (...frames: SpaceFrame[]): SpaceState =>
  frames.reduce((state, frame) => reduce(state, frame, 0), initialSpaceState(spaceId));

export const seqs = (state: SpaceState): number[] => state.messages.map((one) => one.seq);
