import { ColloquyError, ok, unwrap } from "../../shared/errors.ts";
import { absentIn, mentionsIn } from "../../shared/mentions.ts";
import { maxWaitingRuns, spaceAnswerMs } from "../bounds.ts";
import { callWithRetry, spaceWindow } from "../call-with-retry.ts";
import { callBlocks } from "../calls/call-blocks.ts";
import { placeWait, takeBackWait } from "../inbox/deliver.ts";
import type { RunRow } from "../runs.ts";
import type { CallPlans, ToolContext } from "../tools/tool.ts";
import { asUnknownOutcome } from "../tools/unknown-outcome.ts";
import { inputTokensLeft } from "./composing.ts";
import type { Execution } from "./configured-call.ts";
import { continuityOf } from "./continuity/continuities.ts";
import { ownRuns } from "./own-runs.ts";
import { originFor, rootOfRun, seenIn, sourceOf } from "./run-events.ts";
import type { RunServices } from "./run-services.ts";

const requireRoomToWait = ({ waits }: RunServices, run: RunRow): void => {
  if (waits.runsBeside(run.ordinal) < maxWaitingRuns) return;
  throw new ColloquyError(
    "limit_reached",
    `maxWaitingRuns (${maxWaitingRuns}) of your runs wait for answers; stop one, or say it without wait`,
  );
};

/** Says a text in a space, under an id that derives from the call. A run that waits opens its wait before it asks. */
const sayIn =
  ({ services, run, call, speech, signal }: Execution): ToolContext["say"] =>
  async (spaceId, text, { replyTo, awaits = [] } = {}) => {
    const { id: agentId, workspaceId } = services.identity.get();
    const { callId } = call;
    const message = {
      ...{ workspaceId, agentId, runId: run.id, text, replyTo },
      messageId: services.ids.deriveOwned("msg", spaceId, callId),
      root: rootOfRun(services, run),
      streamId: speech?.streamOf(call.index),
      origin: originFor(services, run, spaceId),
      expectsReply: awaits.length > 0,
    };
    const waits = awaits.length > 0 && continuityOf(run).waitsForAnswers;
    if (waits) {
      requireRoomToWait(services, run);
      services.waits.open({ callId, runOrdinal: run.ordinal, spaceId, text }, awaits);
    }
    try {
      const append = () =>
        services.env.SPACE.getByName(spaceId).append({ ...message, until: services.clock.now() + spaceAnswerMs });
      const said = unwrap(await asUnknownOutcome(callWithRetry(append, signal)));
      if (waits) placeWait(services, run.ordinal, callId, said.seq);
      return ok(said);
    } catch (error) {
      // What was cut is asked again by a replay; anything else was not asked, as far as the run knows.
      if (waits && !signal.aborted) takeBackWait(services, run.ordinal, callId);
      throw error;
    }
  };

/** Times count from when the call was first begun, however late it is replayed. */
const plansOf = ({ services, run, call: { callId } }: Execution, begunAt: number): CallPlans => ({
  list: () => services.plans.list(),
  delete: (ids) => void services.plans.delete(ids),
  set: (plans) => {
    const { id: agentId } = services.identity.get();
    const named = plans.map(({ id, ...plan }, index) => ({
      id: id ?? services.ids.deriveOwned("pln", agentId, callId, index),
      ...plan,
    }));
    return services.plans.setAll(named, { setBy: "agent", root: rootOfRun(services, run), callId, at: begunAt });
  },
});

/** What a tool reaches while this call runs. `begunAt`: when the call was first begun. */
export const contextOf = (execution: Execution, begunAt: number): ToolContext => {
  const { services, run, call, activeSpaceId, signal } = execution;
  const { callId } = call;
  const { id: agentId } = services.identity.get();
  const replayed = execution.begunAt !== undefined;
  return {
    replayed,
    activeSpaceId,
    isMember: (spaceId) => services.spaces.isMember(spaceId),
    window: (spaceId, page) => callWithRetry(() => spaceWindow(services, spaceId, page), signal),
    roomTokens: () => inputTokensLeft(services, run),
    seenIn: continuityOf(run).marksSeen ? (spaceId) => seenIn(services, spaceId) : null,
    mentioned: (spaceId, text) => {
      const others = (services.spaces.get(spaceId)?.snapshot.members ?? []).filter(({ id }) => id !== agentId);
      const ids = new Set(mentionsIn(text, others));
      return others.filter(({ id }) => ids.has(id)).map(({ id, name }) => ({ id, name }));
    },
    absent: (spaceId, text) => (text.includes("@") ? absentIn(services.spaces.mine(), spaceId, text) : []),
    say: sayIn(execution),
    memories: services.memories,
    goals: services.goals,
    plans: plansOf(execution, begunAt),
    archival: {
      insert: (content, metadata) => {
        const id = services.ids.deriveOwned("arch", agentId, callId);
        return services.archival.insert({ id, content, metadata, source: sourceOf(services, run, activeSpaceId) });
      },
      delete: (id) => services.archival.delete(id),
    },
    search: (query) => services.search.search(query),
    blocks: callBlocks(services, { callId, replayed, consented: false, signal }),
    runs: ownRuns(services, run),
    outside: {
      callId,
      openSecret: (name) => services.identity.openSecret(name),
      fetch: (input, init) => globalThis.fetch(input, init),
      signal,
      allowLoopback: services.env.ENVIRONMENT === "development",
    },
  };
};
