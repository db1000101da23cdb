import { withoutQuote } from "../../models/failure.ts";
import type { ChannelFrame, ChannelOpen } from "../../protocol/events.ts";
import type { SpaceRpc } from "../../protocol/rpc.ts";
import { backoff, type Pauses } from "../../shared/backoff.ts";
import type { ErrorCode } from "../../shared/errors.ts";
import { log } from "../../shared/log.ts";
import { pause, settledWithin } from "../../shared/timeouts.ts";
import { withoutNulls } from "../../shared/without-nulls.ts";
import { endWaitMs } from "../bounds.ts";
import { readsFor } from "../calls/reads.ts";
import { excerpt } from "../context/wording.ts";
import type { RunRow } from "../runs.ts";
import { maySpeakIn } from "../tools/confidential.ts";
import type { RunServices } from "./run-services.ts";

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
   * Sends the end, with how many events wait for a guest's program, and waits until the space has read it or is gone, for `waitMs` at most. False if the space crashed: it
   * may have missed the last frames.
   */
  async end(reason: string | undefined, waitMs: number, events = 0): Promise<boolean> {
    this.send({ type: "end", ...(reason === undefined ? {} : { reason }), ...(events > 0 && { events }) });
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

export type Channels = ReturnType<typeof openChannels>;

/**
 * The channels of one run: to the spaces whose events it took, and to those that it enters. Only the former are told
 * the run's status. They show the agent's presence, unless the run `hasEnded`.
 */
export const openChannels = (services: RunServices, run: RunRow, hasEnded = false) => {
  const { identity, env, spaces } = services;
  const { id: agentId, workspaceId, compartmentId } = identity.get();
  const open = { workspaceId, agentId, mindId: compartmentId ?? undefined, runId: run.id };
  const triggerSpaces = run.spaceIds.filter((spaceId) => spaces.isMember(spaceId) && maySpeakIn(services, spaceId));
  const channels = new Map<string, Channel>();
  return {
    /** The channel to a space, opened if there is none or it broke. */
    to(spaceId: string): Channel {
      const known = channels.get(spaceId);
      if (known && !known.dead) return known;
      const channel = new Channel(env.SPACE.getByName(spaceId), open);
      if (!hasEnded) channel.send({ type: "active" });
      channels.set(spaceId, channel);
      return channel;
    },
    tellRun(frame: Omit<Extract<ChannelFrame, { type: "run" }>, "type" | "reason">, ended?: RunRow): void {
      for (const spaceId of triggerSpaces) {
        const reason = ended && reasonFor(services, ended, spaceId);
        this.to(spaceId).send({ type: "run", ...frame, reason, ...readsFor(services, run, spaceId) });
      }
    },
    /** Answers the spaces that crashed: they may have missed the last frames. */
    async end(reason?: string): Promise<string[]> {
      hasEnded = true;
      const ending = [...channels];
      channels.clear();
      const unheard = ending.map(async ([spaceId, channel]) => ((await channel.end(reason, endWaitMs)) ? [] : spaceId));
      return (await Promise.all(unheard)).flat();
    },
  };
};

/** A compartment's people see that it waits to try again, as they see it of a run. Without `reason` it waits no more. */
export const tellWaiting = ({ ids, env, identity }: RunServices, reason?: ErrorCode): Promise<unknown> => {
  const { id: agentId, workspaceId, compartmentSpaceId } = identity.get();
  const mindId = identity.mindId();
  const open = { workspaceId, agentId, mindId, runId: ids.deriveOwned("run", mindId, "feed") };
  const channel = new Channel(env.SPACE.getByName(compartmentSpaceId ?? ""), open);
  channel.send({ type: "active" });
  return channel.end(reason, endWaitMs);
};

const reasonCharacters = 500;

/**
 * Why a run was silent, in the model's own words. They may tell of each space that it took messages of: they are for those
 * whose members are in all of these (C7).
 */
const reasonFor = ({ spaces }: RunServices, { spaceIds, reason }: RunRow, spaceId: string): string | undefined => {
  const [here = [], ...others] = [spaceId, ...spaceIds].map((id) => spaces.get(id)?.snapshot.members);
  const isForAll = here.every(({ id }) => others.every((there) => there?.some((member) => member.id === id)));
  return isForAll ? (reason ?? undefined) : undefined;
};

/** A run's error as its spaces are told: an input tells of other spaces, and a provider may quote it (C7). */
const errorOf = ({ error }: RunRow): RunRow["error"] => error && { ...error, message: withoutQuote(error.message) };

const mostTries = 5;
const pauses: Pauses = { firstMs: 100, longestMs: 1000 };

/**
 * Tells each space the agent's read mark there, with the run's outcome, and ends the channels. A space that crashes
 * meanwhile is told again, up to `mostTries` times in all. After that, the mark of a later run says that it was read.
 * All are told again after a restart that may have come before. A space ignores a mark that it has.
 */
export const tellReceipts = async (
  services: RunServices,
  run: RunRow,
  channels = openChannels(services, run, true),
): Promise<void> => {
  const { outcome } = run;
  // A run that was cut has no outcome: it counts as silent, and the reason says why.
  const ours = errorOf(run)?.message ?? (outcome === null ? "the run was canceled" : undefined);
  let untold = run.receipts ?? [];
  for (let attempt = 0; attempt === 0 || (untold.length > 0 && attempt < mostTries); attempt += 1) {
    if (attempt > 0) await pause(backoff(attempt, pauses));
    for (const { spaceId, ...messages } of untold) {
      if (!services.spaces.isMember(spaceId) || !maySpeakIn(services, spaceId)) continue;
      const why = reasonFor(services, run, spaceId) ?? ours;
      const reason = why === undefined ? {} : { reason: excerpt(why, reasonCharacters) };
      channels.to(spaceId).send({
        type: "read",
        ...messages,
        outcome: outcome ?? "silent",
        ...reason,
        ...readsFor(services, run, spaceId),
      });
    }
    const unheard = await channels.end();
    untold = untold.filter(({ spaceId }) => unheard.includes(spaceId));
  }
};

/** Tells the spaces how a run has ended, and ends the channels. */
export const tellEnd = (services: RunServices, ended: RunRow, channels = openChannels(services, ended, true)) => {
  const { status, outcome } = ended;
  const event =
    status === "failed" || status === "canceled" || status === "absorbed"
      ? (`run.${status}` as const)
      : "run.completed";
  channels.tellRun({ event, ...withoutNulls({ outcome, error: errorOf(ended) }) }, ended);
  return tellReceipts(services, ended, channels);
};
