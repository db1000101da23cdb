import type { ChannelFrame, ChannelOpen } from "../../protocol/events.ts";
import type { SpaceRpc } from "../../protocol/rpc.ts";
import { log } from "../../shared/log.ts";
import { settledWithin } from "../../shared/timeouts.ts";

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
