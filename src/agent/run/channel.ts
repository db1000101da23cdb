import type { ChannelFrame, ChannelOpen } from "../../protocol/events.ts";
import type { SpaceRpc } from "../../protocol/rpc.ts";
import { log } from "../../shared/log.ts";
import { settledWithin } from "../../shared/timeouts.ts";
import { endWaitMs } from "../bounds.ts";

export type ReadFrame = Extract<ChannelFrame, { type: "read" }>;

/**
 * The channel of one run to one space: NDJSON frames on a ReadableStream.
 *
 * Invariants
 * 1. `send` never waits and never throws: a slow or dead space holds up no model.
 * 2. At most one write is under way. Frames that come meanwhile are written together next.
 * 3. Every write is raced with the RPC's end: once the space has returned, a write never settles.
 */
export class Channel {
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #answered: Promise<void>;
  readonly #encoder = new TextEncoder();
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
   * Sends the end and waits until the space has read it or is gone, for `waitMs` at most. False if the space crashed: it
   * may have missed the last frames.
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

export type Channels = ReturnType<typeof openChannels>;

/**
 * The channels of one run: to the spaces whose events it took, and to those that it enters. Only the former are told
 * the run's status.
 */
export const openChannels = (
  spaceOf: (spaceId: string) => Pick<SpaceRpc, "speak">,
  open: ChannelOpen,
  triggerSpaces: string[],
) => {
  const channels = new Map<string, Channel>();
  return {
    /** The channel to a space, opened if there is none or it broke. */
    to(spaceId: string): Channel {
      const known = channels.get(spaceId);
      if (known && !known.dead) return known;
      const channel = new Channel(spaceOf(spaceId), open);
      channel.send({ type: "active" });
      channels.set(spaceId, channel);
      return channel;
    },
    tellRun(frame: Omit<RunFrame, "type">): void {
      for (const spaceId of triggerSpaces) this.to(spaceId).send({ type: "run", ...frame });
    },
    /** Answers the spaces that crashed: they may have missed the last frames. */
    async end(reason?: string): Promise<string[]> {
      const ending = [...channels];
      channels.clear();
      const unheard = ending.map(async ([spaceId, channel]) => ((await channel.end(reason, endWaitMs)) ? [] : spaceId));
      return (await Promise.all(unheard)).flat();
    },
  };
};
