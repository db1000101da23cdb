import { backoff, type Pauses } from "../../shared/backoff.ts";
import { endWaitMs } from "../bounds.ts";
import { excerpt } from "../context/quote.ts";
import type { RunRow } from "../runs.ts";
import { Channel, type ReadFrame } from "./channel.ts";
import type { RunServices } from "./run-services.ts";

/**
 * Tells each space the agent's read mark there, with the run's outcome. It is told when the run ends, and again after a
 * restart that may have come before. The space ignores a mark that it has.
 */
const reasonCharacters = 500;
/** How many ended runs are told again after a restart: several may have ended side by side. */
const restartRuns = 10;
const mostTries = 4;
const pauses: Pauses = { firstMs: 100, longestMs: 1000 };

/** A run's read marks, one for each space that the agent is still in. */
export const readFramesOf = (services: RunServices, run: RunRow): { spaceId: string; frame: ReadFrame }[] =>
  (run.receipts ?? [])
    .filter(({ spaceId }) => services.spaces.isMember(spaceId))
    .map(({ spaceId, ...messages }) => {
      // A run that was cut has no outcome: it counts as silent, and the reason says why.
      const { outcome } = run;
      const reason = run.reason ?? run.error?.message ?? (outcome === null ? "the run was canceled" : undefined);
      const why = reason === undefined ? {} : { reason: excerpt(reason, reasonCharacters) };
      return { spaceId, frame: { type: "read", ...messages, outcome: outcome ?? "silent", ...why } };
    });

/** Answers the spaces that crashed during the call. */
const tellOnce = async (services: RunServices, run: RunRow): Promise<string[]> => {
  const { id: agentId, workspaceId } = services.identity.get();
  const told = readFramesOf(services, run).map(async ({ spaceId, frame }) => {
    const channel = new Channel(services.env.SPACE.getByName(spaceId), { workspaceId, agentId, runId: run.id });
    channel.send(frame);
    return (await channel.end(undefined, endWaitMs)) ? [] : spaceId;
  });
  return (await Promise.all(told)).flat();
};

/**
 * Tells a run's read marks on channels of their own. A space that crashes meanwhile is told again, up to `mostTries`
 * times; after that, the mark of a later run covers this one.
 */
export const tellReceipts = async (services: RunServices, run: RunRow): Promise<void> => {
  let untold = run.receipts ?? [];
  for (let attempt = 0; untold.length > 0 && attempt < mostTries; attempt += 1) {
    if (attempt > 0) await new Promise((resolve) => setTimeout(resolve, backoff(attempt, pauses)));
    const unheard = await tellOnce(services, { ...run, receipts: untold });
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
