import type { ChannelFrame, ChannelOpen } from "../../protocol/channel.ts";
import type { SpaceRpc } from "../../protocol/rpc.ts";
import { log } from "../../shared/log.ts";
import { settledWithin } from "../../shared/timeouts.ts";
import { endWaitMs } from "../bounds.ts";

export type ReadFrame = Extract<ChannelFrame, { type: "read" }>;

/**
 * One (run, space): NDJSON frames on a ReadableStream, from this agent to that space.
 *
 * Invariants
 * 1. `send` never waits and never throws: a slow or dead space holds up no model.
 * 2. At most one write is under way; what comes meanwhile is written together next.
 * 3. Every write is raced with the RPC's own end, since a space that returned leaves a write unsettled for ever.
 */
export class Channel {
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #answered: Promise<void>;
  readonly #encoder = new TextEncoder();
  /** Whose it is, for the log. */
  readonly #ids: Pick<ChannelOpen, "agentId" | "runId">;
  #pending = "";
  #writing: Promise<void> | undefined;
  #dead = false;
  #crashed = false;

  constructor(space: Pick<SpaceRpc, "speak">, open: ChannelOpen) {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    this.#ids = { agentId: open.agentId, runId: open.runId };
    this.#writer = writable.getWriter();
    this.#writer.closed.catch(() => undefined);
    this.#answered = space.speak(open, readable).then(
      (outcome) => {
        this.#dead = true;
        if (!outcome.ok) log.warn("channel.refused", { ...this.#ids, code: outcome.problem.code });
      },
      (error: unknown) => {
        this.#dead = true;
        this.#crashed = true;
        log.warn("channel.broken", { ...this.#ids, error: String(error) });
      },
    );
  }

  get dead(): boolean {
    return this.#dead;
  }

  send(frame: ChannelFrame): void {
    if (this.#dead) return;
    this.#pending += `${JSON.stringify(frame)}\n`;
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
  }

  async #write(): Promise<void> {
    while (this.#pending !== "" && !this.#dead) {
      const chunk = this.#encoder.encode(this.#pending);
      this.#pending = "";
      try {
        await Promise.race([this.#writer.write(chunk), this.#answered]);
      } catch (error) {
        this.#dead = true;
        log.warn("channel.write_failed", { ...this.#ids, error: String(error) });
      }
    }
  }

  /**
   * Says the end and waits until the space has read it, or has gone; past `waitMs` the channel is given up. False where
   * the space crashed: it may not have heard what was said to it last.
   */
  async end(reason: string | undefined, waitMs: number): Promise<boolean> {
    this.send({ type: "end", ...(reason === undefined ? {} : { reason }) });
    const read = (this.#writing ?? Promise.resolve()).then(() => {
      this.#writer.close().catch(() => undefined);
      return this.#answered;
    });
    await settledWithin(waitMs, read);
    if (this.#dead) return !this.#crashed;
    this.#dead = true;
    this.#writer.abort(new Error("the space did not answer")).catch(() => undefined);
    return true;
  }
}

type RunFrame = Extract<ChannelFrame, { type: "run" }>;

/**
 * The channels of one run: to the spaces whose events it took, from the start, and to those that it enters. What
 * becomes of the run is told only to the former.
 */
export class Channels {
  readonly #spaceOf: (spaceId: string) => Pick<SpaceRpc, "speak">;
  readonly #open: ChannelOpen;
  readonly #triggerSpaces: string[];
  readonly #channels = new Map<string, Channel>();

  constructor(spaceOf: (spaceId: string) => Pick<SpaceRpc, "speak">, open: ChannelOpen, triggerSpaces: string[]) {
    this.#spaceOf = spaceOf;
    this.#open = open;
    this.#triggerSpaces = triggerSpaces;
  }

  /** The channel to a space; opened, or opened anew if it broke. */
  to(spaceId: string): Channel {
    const known = this.#channels.get(spaceId);
    if (known && !known.dead) return known;
    const channel = new Channel(this.#spaceOf(spaceId), this.#open);
    channel.send({ type: "active" });
    this.#channels.set(spaceId, channel);
    return channel;
  }

  tellRun(frame: Omit<RunFrame, "type">): void {
    for (const spaceId of this.#triggerSpaces) this.to(spaceId).send({ type: "run", ...frame });
  }

  tellRead(spaceId: string, frame: ReadFrame): void {
    this.to(spaceId).send(frame);
  }

  /** Answers the spaces that crashed, and may not have heard what was said to them last. */
  async end(reason?: string): Promise<string[]> {
    const channels = [...this.#channels];
    this.#channels.clear();
    const unheard = channels.map(async ([spaceId, channel]) => ((await channel.end(reason, endWaitMs)) ? [] : spaceId));
    return (await Promise.all(unheard)).flat();
  }
}
