import type { ChannelFrame, ChannelOpen } from "../../protocol/channel.ts";
import type { SpaceRpc } from "../../protocol/rpc.ts";
import { endWaitMs } from "../bounds.ts";
import { Channel, type ReadFrame } from "./channel.ts";

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
