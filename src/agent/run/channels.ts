import type { ChannelFrame } from "../../protocol/events.ts";
import { backoff, type Pauses } from "../../shared/backoff.ts";
import { endWaitMs } from "../bounds.ts";
import { excerpt } from "../context/wording.ts";
import type { RunRow } from "../runs.ts";
import { Channel } from "./channel.ts";
import type { RunServices } from "./run-services.ts";

type RunFrame = Extract<ChannelFrame, { type: "run" }>;

export type Channels = ReturnType<typeof openChannels>;

/**
 * The channels of one run: to the spaces whose events it took, and to those that it enters. Only the former are told
 * the run's status. They show the agent's presence, unless the run `hasEnded`.
 */
export const openChannels = ({ identity, env, spaces }: RunServices, run: RunRow, hasEnded = false) => {
  const { id: agentId, workspaceId } = identity.get();
  const triggerSpaces = run.spaceIds.filter((spaceId) => spaces.isMember(spaceId));
  const channels = new Map<string, Channel>();
  return {
    /** The channel to a space, opened if there is none or it broke. */
    to(spaceId: string): Channel {
      const known = channels.get(spaceId);
      if (known && !known.dead) return known;
      const channel = new Channel(env.SPACE.getByName(spaceId), { workspaceId, agentId, runId: run.id });
      if (!hasEnded) channel.send({ type: "active" });
      channels.set(spaceId, channel);
      return channel;
    },
    tellRun(frame: Omit<RunFrame, "type">): void {
      for (const spaceId of triggerSpaces) this.to(spaceId).send({ type: "run", ...frame });
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

const reasonCharacters = 500;
/** How many ended runs are told again after a restart: several may have ended side by side. */
const restartRuns = 10;
const mostTries = 5;
const pauses: Pauses = { firstMs: 100, longestMs: 1000 };

/**
 * Tells each space the agent's read mark there, with the run's outcome, and ends the channels. A space that crashes
 * meanwhile is told again, up to `mostTries` times in all; after that, the mark of a later run covers this one. All are
 * told again after a restart that may have come before. A space ignores a mark that it has.
 */
export const tellReceipts = async (
  services: RunServices,
  run: RunRow,
  channels = openChannels(services, run, true),
): Promise<void> => {
  const { outcome, error } = run;
  // A run that was cut has no outcome: it counts as silent, and the reason says why.
  const reason = run.reason ?? error?.message ?? (outcome === null ? "the run was canceled" : undefined);
  const why = reason === undefined ? {} : { reason: excerpt(reason, reasonCharacters) };
  let untold = run.receipts ?? [];
  for (let attempt = 0; attempt === 0 || (untold.length > 0 && attempt < mostTries); attempt += 1) {
    if (attempt > 0) await new Promise((resolve) => setTimeout(resolve, backoff(attempt, pauses)));
    for (const { spaceId, ...messages } of untold) {
      if (!services.spaces.isMember(spaceId)) continue;
      channels.to(spaceId).send({ type: "read", ...messages, outcome: outcome ?? "silent", ...why });
    }
    const unheard = await channels.end();
    untold = untold.filter(({ spaceId }) => unheard.includes(spaceId));
  }
};

/** The runs to tell again after a restart in the middle of work: the newest ended run of each space. */
export const runsToTell = (services: RunServices): RunRow[] => {
  const spaces = new Set<string>();
  return services.runs.page(undefined, restartRuns, undefined).map((run) => {
    const receipts = (run.receipts ?? []).filter(({ spaceId }) => !spaces.has(spaceId));
    for (const { spaceId } of receipts) spaces.add(spaceId);
    return { ...run, receipts };
  });
};
