import type { WebSocket } from "ws";
import type { Entity, Member } from "../../../src/protocol/entity.ts";
import {
  type ClientFrame,
  closeCodes,
  type DurableEvent,
  type ServerFrame,
  type WelcomeFrame,
} from "../../../src/protocol/events.ts";
import type { SpaceSummary } from "../../../src/protocol/line.ts";
import type { Message, Origin, PostMessage } from "../../../src/protocol/message.ts";
import type { Space, SpaceListItem } from "../../../src/protocol/space.ts";
import { createIds } from "../../../src/shared/ids.ts";

export const ids = createIds("the peer's secret, for tests only");

type Participant = Pick<Entity, "id" | "name" | "type">;
type WithoutCursor<Event> = Event extends unknown ? Omit<Event, "cursor"> : never;
type Stream = WelcomeFrame["streams"][number];

/** One stream of an agent, driven by a test. */
export type PeerStream = {
  id: string;
  delta(text: string): void;
  say(): Message;
  fail(code: string, message: string): void;
};

/**
 * One space of the in-memory peer: a log, members and sockets, with the frames of `src/protocol`. It keeps only the
 * rules that a client can see: durable events in order, replay after a cursor, one message for each clientKey.
 */
export class PeerSpace {
  readonly space: Omit<Space, "members">;
  readonly members = new Map<string, Member>();
  readonly log: DurableEvent[] = [];
  readonly sockets = new Map<WebSocket, string>();
  readonly streams = new Map<string, Stream>();
  readonly reads = new Map<string, number>();
  readonly received: ClientFrame[] = [];
  active: { entityId: string; runId: string }[] = [];
  /** Events up to this cursor are not kept: an older cursor does not resume. */
  keptAfter = 0;
  /** Drops received messages, like a connection that dies. */
  swallows = false;

  constructor(name: string, creator: Participant) {
    this.space = {
      id: ids.mint("spc"),
      name,
      wakePolicy: "every_message",
      shareOrigin: "reference",
      createdBy: creator.id,
      createdAt: new Date().toISOString(),
    };
  }

  get head(): number {
    return this.log.length;
  }

  get messages(): Message[] {
    const found = new Map<string, Message>();
    for (const event of this.log) {
      if (event.type === "space.message" || event.type === "space.message.updated") {
        found.set(event.message.id, event.message);
      }
    }
    return [...found.values()].sort((one, other) => one.seq - other.seq);
  }

  append(event: WithoutCursor<DurableEvent>): DurableEvent {
    const durable = { ...event, cursor: this.head + 1 } as DurableEvent;
    this.log.push(durable);
    this.broadcast(durable);
    return durable;
  }

  broadcast(frame: ServerFrame, except?: string): void {
    for (const [socket, entityId] of this.sockets) if (entityId !== except) socket.send(JSON.stringify(frame));
  }

  join(entity: Participant): void {
    const member = { id: entity.id, type: entity.type, name: entity.name, joinedAt: new Date().toISOString() };
    this.members.set(entity.id, member);
    this.append({ type: "member.joined", member });
  }

  leave(entityId: string): void {
    const name = this.members.get(entityId)?.name ?? "";
    this.members.delete(entityId);
    this.append({ type: "member.left", entityId, name });
    for (const [socket, owner] of this.sockets) if (owner === entityId) socket.close(closeCodes.removed);
  }

  post(
    sender: Participant,
    input: PostMessage & { streamId?: string; origin?: Origin; createdAt?: string },
  ): { message: Message; created: boolean } {
    const repeated = this.messages.find((one) => one.sender.id === sender.id && one.clientKey === input.clientKey);
    if (input.clientKey !== undefined && repeated) return { message: repeated, created: false };
    const mentions = [...this.members.values()].filter((member) => input.text.includes(`@${member.name}`));
    const message: Message = {
      id: ids.mintOwned("msg", this.space.id),
      seq: this.head + 1,
      spaceId: this.space.id,
      kind: "text",
      sender: { id: sender.id, name: sender.name, type: sender.type },
      createdAt: new Date().toISOString(),
      ...(mentions.length > 0 ? { mentions: mentions.map((member) => member.id) } : {}),
      ...input,
    };
    this.append({ type: "space.message", message });
    return { message, created: true };
  }

  /** Appends an agent's call that waits for people. */
  ask(agent: Participant, name: string, input: unknown): Message {
    const toolCallId = ids.mintOwned("tc", agent.id);
    const message: Message = {
      id: ids.mintOwned("msg", this.space.id),
      seq: this.head + 1,
      spaceId: this.space.id,
      kind: "tool_call",
      sender: { id: agent.id, name: agent.name, type: agent.type },
      toolCall: { id: toolCallId, name, input, status: "requires_action" },
      createdAt: new Date().toISOString(),
    };
    this.append({ type: "space.message", message });
    return message;
  }

  /** The first answer completes the call. A later answer, or one to an unknown call, returns undefined. */
  answer(toolCallId: string, output: unknown): Message | undefined {
    const asked = this.messages.find(({ toolCall }) => toolCall?.id === toolCallId);
    if (asked?.toolCall?.status !== "requires_action") return undefined;
    const message: Message = { ...asked, toolCall: { ...asked.toolCall, status: "complete", output } };
    this.append({ type: "space.message.updated", message });
    return message;
  }

  begin(agent: Participant, toolName = "send_message", speaks = true): PeerStream {
    const runId = ids.mintOwned("run", agent.id);
    const streamId = ids.mint("str");
    const stream: Stream = { type: "stream.snapshot", streamId, runId, entityId: agent.id, toolName, speaks, text: "" };
    this.streams.set(streamId, stream);
    this.broadcast({ type: "tool-call.start", streamId, runId, entityId: agent.id, toolName, speaks });
    return {
      id: streamId,
      delta: (text) => {
        this.streams.set(streamId, { ...stream, text: (this.streams.get(streamId)?.text ?? "") + text });
        this.broadcast({ type: "tool-input-delta", streamId, textDelta: text });
      },
      say: () => {
        const text = this.streams.get(streamId)?.text ?? "";
        this.streams.delete(streamId);
        return this.post(agent, { text, streamId }).message;
      },
      fail: (code, message) => {
        this.streams.delete(streamId);
        this.broadcast({ type: "tool-call.error", streamId, code, message });
      },
    };
  }

  /** An agent becomes active. Returns the function that ends it. */
  work(agent: Participant): () => void {
    const runId = ids.mintOwned("run", agent.id);
    this.active.push({ entityId: agent.id, runId });
    this.broadcast({ type: "agent.active", entityId: agent.id, runId });
    return () => {
      this.active = this.active.filter((one) => one.runId !== runId);
      this.broadcast({ type: "agent.inactive", entityId: agent.id, runId });
    };
  }

  connect(socket: WebSocket, entity: Participant, cursor: number | null): void {
    const resumed = cursor === null || (cursor <= this.head && cursor >= this.keptAfter);
    const welcome: WelcomeFrame = {
      type: "welcome",
      space: this.space,
      members: [...this.members.values()],
      you: { id: entity.id, type: entity.type, name: entity.name },
      cursor: this.head,
      resumed,
      streams: [...this.streams.values()],
      active: this.active,
    };
    socket.send(JSON.stringify(welcome));
    if (resumed && cursor !== null) for (const event of this.log.slice(cursor)) socket.send(JSON.stringify(event));
    this.sockets.set(socket, entity.id);
    socket.on("close", () => this.sockets.delete(socket));
  }

  handle(socket: WebSocket, entity: Participant, frame: ClientFrame): void {
    this.received.push(frame);
    if (frame.type === "typing") this.broadcast({ type: "member.typing", entityId: entity.id }, entity.id);
    if (frame.type === "read") this.read(entity.id, frame.messageId);
    if (frame.type !== "message.send" || this.swallows) return;
    const { type: _, ...input } = frame;
    const { message, created } = this.post(entity, input);
    if (!created) socket.send(JSON.stringify({ type: "space.message", cursor: message.seq, message }));
  }

  read(entityId: string, messageId: string): void {
    this.reads.set(entityId, this.messages.find((one) => one.id === messageId)?.seq ?? 0);
    this.append({ type: "member.read", entityId, messageId });
  }

  /** Cuts every socket, or those of one entity, without a close frame, like a lost network. */
  drop(entityId?: string): void {
    for (const [socket, owner] of this.sockets) if (entityId === undefined || owner === entityId) socket.terminate();
  }

  close(code: number): void {
    for (const socket of this.sockets.keys()) socket.close(code);
  }

  summary(entityId: string): SpaceSummary {
    const { id: spaceId, name, createdAt, unreadCount = 0, lastMessage } = this.item(entityId);
    const at = lastMessage?.createdAt ?? createdAt;
    return { spaceId, name, seq: this.log.length, unread: unreadCount, mentions: 0, working: [], needsYou: 0, at };
  }

  item(entityId: string): SpaceListItem {
    const read = this.reads.get(entityId) ?? 0;
    const unread = this.messages.filter((one) => one.seq > read && one.sender.id !== entityId);
    const lastMessage = this.messages.at(-1);
    return { ...this.space, unreadCount: Math.min(99, unread.length), ...(lastMessage ? { lastMessage } : {}) };
  }
}
