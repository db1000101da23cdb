import type { ChannelFrame, ChannelOpen, LiveFrame, StreamSnapshot, WelcomeFrame } from "../../protocol/events.ts";
import { maxTextBytes, textBytes } from "../../protocol/text.ts";
import type { Clock } from "../../shared/clock.ts";
import { ColloquyError, type ErrorCode, isPassing } from "../../shared/errors.ts";
import { maxChannels, maxEndedStreams, maxStreamsPerChannel, maxToolInputBytes } from "../bounds.ts";
import { Coalescer, Pace } from "./coalescer.ts";

/**
 * The presence of agents in this space, and their unfinished messages. Memory only: it ends with
 * the object, whose sockets end with it.
 *
 * Invariants
 * 1. A stream that was started ends in exactly one of its message (`said`), before which all its text was told, or
 *    `tool-call.error`.
 * 2. A channel that stops in whatever way leaves no stream open and nobody active.
 * 3. A snapshot holds what has been told and no more: who gets it gets the rest as deltas.
 */
type Stream = {
  id: string;
  toolName: string;
  speaks: boolean;
  channel: Channel;
  told: string;
  bytes: number;
  coalescer: Coalescer;
  timer: ReturnType<typeof setTimeout> | undefined;
};

export type Channel = {
  open: ChannelOpen;
  active: boolean;
  streams: Map<string, Stream>;
  /** Set once it is over, whatever its other end still says. */
  stopped: { code: ErrorCode; message: string } | undefined;
  /** Makes who reads the channel notice that it is over. */
  onStop: () => void;
};

type Waiting = NonNullable<WelcomeFrame["waiting"]>[number];

/** Keeps the newest `maxEndedStreams`. */
const remember = (streams: Set<string>, streamId: string): void => {
  streams.add(streamId);
  if (streams.size > maxEndedStreams) streams.delete(streams.values().next().value ?? "");
};

export class LiveStreams {
  readonly #clock: Clock;
  readonly #tell: (frame: LiveFrame) => void;
  /** By run: a run has one channel. */
  readonly #channels = new Map<string, Channel>();
  readonly #streams = new Map<string, Stream>();
  /** Streams whose message came, oldest first: an append overtakes its stream's last frames, or all of them. */
  readonly #said = new Set<string>();
  /** Streams that were given up, oldest first: their speaker may say it after all. */
  readonly #givenUp = new Set<string>();
  /** By run: what stopped for an error that may pass, and was not heard of since. As many as there may be channels. */
  readonly #waiting = new Map<string, Waiting>();
  readonly #pace = new Pace();
  #measuring = false;

  constructor(clock: Clock, tell: (frame: LiveFrame) => void) {
    this.#clock = clock;
    this.#tell = tell;
  }

  /** A run begins to speak. A channel that the run had before is over: its agent started again. */
  open(open: ChannelOpen, onStop: () => void): Channel {
    const earlier = this.#channels.get(open.runId);
    if (!earlier && this.#channels.size >= maxChannels) {
      const detail = `${maxChannels} runs speak here, which is the most (maxChannels): try later`;
      throw new ColloquyError("limit_reached", detail);
    }
    const channel: Channel = { open, active: earlier?.active ?? false, streams: new Map(), stopped: undefined, onStop };
    if (earlier) {
      earlier.active = false;
      this.stop(earlier, "interrupted", "The agent started again");
    }
    this.#channels.set(open.runId, channel);
    this.#waiting.delete(open.runId);
    return channel;
  }

  /** One frame of a channel. One that is over is not heard. */
  receive(channel: Channel, frame: Exclude<ChannelFrame, { type: "read" }>): void {
    if (channel.stopped) return;
    const { agentId: entityId, runId } = channel.open;
    switch (frame.type) {
      case "active":
        channel.active = true;
        this.#tell({ type: "agent.active", entityId, runId });
        return;
      case "run": {
        const { event: type, outcome, reason, error, reads } = frame;
        this.#tell({ type, runId, entityId, outcome, reason, error, reads });
        return;
      }
      case "start":
        this.#start(channel, frame);
        return;
      case "delta":
        this.#delta(channel.streams.get(frame.streamId), frame.text);
        return;
      case "drop":
        this.#giveUp(channel.streams.get(frame.streamId), frame.code, frame.message);
        return;
      case "end":
        this.stop(channel, "interrupted", "The agent stopped before it had finished", frame.reason, frame.events);
        return;
    }
  }

  /** The channel is over: what it left open is given up, and its agent is not active any more. */
  stop(channel: Channel, code: ErrorCode, message: string, reason?: string, events?: number): void {
    if (channel.stopped) return;
    channel.stopped = { code, message };
    const { agentId: entityId, runId } = channel.open;
    if (this.#channels.get(runId) === channel) this.#channels.delete(runId);
    for (const stream of channel.streams.values()) this.#giveUp(stream, code, message);
    if (channel.active) this.#tell({ type: "agent.inactive", entityId, runId, reason, events });
    if (channel.active && reason !== undefined && isPassing(reason) && this.#waiting.size < maxChannels) {
      this.#waiting.set(runId, { entityId, runId, reason, events });
    }
    channel.onStop();
  }

  stopAgent(agentId: string, code: ErrorCode, message: string): void {
    for (const channel of this.#channels.values()) {
      if (channel.open.agentId === agentId) this.stop(channel, code, message, code);
    }
    for (const { entityId, runId } of this.#waiting.values()) if (entityId === agentId) this.#waiting.delete(runId);
  }

  stopAll(code: ErrorCode, message: string): void {
    for (const channel of this.#channels.values()) this.stop(channel, code, message, code);
  }

  /** Before a stream's message is told: all its text is out. */
  flush(streamId: string, agentId: string): void {
    const stream = this.#streams.get(streamId);
    if (stream?.channel.open.agentId === agentId) this.#send(stream, true);
  }

  /** The stream's message has been told. */
  said(streamId: string, agentId: string): void {
    const stream = this.#streams.get(streamId);
    if (stream && stream.channel.open.agentId !== agentId) return;
    if (stream) this.#close(stream);
    remember(this.#said, streamId);
  }

  /** The stream that a message is to be the end of; undefined where that was given up, since a stream ends once. */
  endedBy(streamId: string | undefined): string | undefined {
    return streamId === undefined || this.#givenUp.has(streamId) ? undefined : streamId;
  }

  /** A replayed run repeats a message that is in the log already. */
  repeated(streamId: string, agentId: string): void {
    const stream = this.#streams.get(streamId);
    if (stream?.channel.open.agentId === agentId) this.#giveUp(stream, "gone", "This was said already");
    this.said(streamId, agentId);
  }

  snapshots(): StreamSnapshot[] {
    return [...this.#streams.values()].map(({ id, toolName, speaks, told, channel: { open } }) => ({
      type: "stream.snapshot",
      streamId: id,
      runId: open.runId,
      entityId: open.agentId,
      toolName,
      speaks,
      text: told,
    }));
  }

  active(): { entityId: string; runId: string }[] {
    const active = [...this.#channels.values()].filter((channel) => channel.active);
    return active.map(({ open }) => ({ entityId: open.agentId, runId: open.runId }));
  }

  waiting = (): Waiting[] => [...this.#waiting.values()];

  #start(channel: Channel, { streamId: id, toolName, speaks }: Extract<ChannelFrame, { type: "start" }>): void {
    if (this.#said.has(id) || this.#streams.has(id)) return;
    const { agentId: entityId, runId } = channel.open;
    this.#tell({ type: "tool-call.start", streamId: id, runId, entityId, toolName, speaks });
    const stream = { id, toolName, speaks, channel, told: "", bytes: 0, coalescer: new Coalescer(), timer: undefined };
    this.#givenUp.delete(id);
    this.#streams.set(id, stream);
    channel.streams.set(id, stream);
    if (channel.streams.size > maxStreamsPerChannel) {
      this.#giveUp(
        stream,
        "limit_reached",
        `A run has at most ${maxStreamsPerChannel} streams open in a space (maxStreamsPerChannel)`,
      );
    }
  }

  #delta(stream: Stream | undefined, text: string): void {
    if (!stream) return;
    stream.bytes += textBytes(text);
    const { speaks } = stream;
    if (stream.bytes > (speaks ? maxTextBytes : maxToolInputBytes)) {
      const bound = speaks ? `${maxTextBytes} bytes (maxTextBytes)` : `${maxToolInputBytes} bytes (maxToolInputBytes)`;
      this.#giveUp(stream, "text_too_long", `What is streamed here has at most ${bound} of UTF-8`);
      return;
    }
    stream.coalescer.push(text);
    if (stream.timer !== undefined) return;
    const waitMs = stream.coalescer.waitMs(this.#clock.now(), this.#pace.intervalMs(this.#streams.size));
    if (waitMs === 0) this.#send(stream, false);
    else if (waitMs !== undefined) stream.timer = setTimeout(() => this.#send(stream, false), waitMs);
  }

  #send(stream: Stream, final: boolean): void {
    clearTimeout(stream.timer);
    stream.timer = undefined;
    const text = stream.coalescer.take(this.#clock.now(), final);
    if (text.length === 0) return;
    stream.told += text;
    const delta = stream.speaks ? { textDelta: text } : { inputDelta: text };
    this.#tell({ type: "tool-input-delta", streamId: stream.id, ...delta });
    this.#measure();
  }

  /** Measures what the frame costs: the clock stands still in a turn, and a timer fires once the frame is written. */
  #measure(): void {
    if (this.#measuring) return;
    this.#measuring = true;
    const sentAt = this.#clock.now();
    setTimeout(() => {
      this.#measuring = false;
      this.#pace.sent(Math.max(0, this.#clock.now() - sentAt));
    }, 0);
  }

  #giveUp(stream: Stream | undefined, code: string, message: string): void {
    if (!stream) return;
    this.#close(stream);
    remember(this.#givenUp, stream.id);
    this.#tell({ type: "tool-call.error", streamId: stream.id, code, message });
  }

  #close(stream: Stream): void {
    clearTimeout(stream.timer);
    this.#streams.delete(stream.id);
    stream.channel.streams.delete(stream.id);
  }
}
