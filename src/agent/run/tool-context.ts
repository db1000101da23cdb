import { ColloquyError, unwrap } from "../../shared/errors.ts";
import { maxWaitingRuns, spaceAnswerMs } from "../bounds.ts";
import { callWithRetry } from "../call-with-retry.ts";
import { readsFor } from "../calls/reads.ts";
import { placeWait, takeBackWait } from "../inbox/deliver.ts";
import { asUnknownOutcome } from "../tools/outcome.ts";
import type { ToolContext } from "../tools/tool.ts";
import { inputTokensLeft } from "./composing.ts";
import { continuityOf } from "./continuity/continuities.ts";
import { ownRuns } from "./own-runs.ts";
import { originFor, rootOfRun, seenIn, sourceOf, sourcesOf, toldOrigin } from "./run-events.ts";
import type { Execution } from "./run-services.ts";

/** Says a text in a space, under an id that derives from the call. A run that waits opens its wait before it asks. */
const sayIn =
  ({ services, run, call, speech, signal, begunAt }: Execution): ToolContext["say"] =>
  async (spaceId, text, { replyTo, awaits = [] } = {}) => {
    const { id: agentId, workspaceId, compartmentId } = services.identity.get();
    const { callId } = call;
    const message = {
      ...{ workspaceId, agentId, mindId: compartmentId ?? undefined, runId: run.id, text, replyTo },
      messageId: services.ids.deriveOwned("msg", spaceId, callId),
      root: rootOfRun(services, run),
      streamId: speech?.streamOf(call.index),
      origin: originFor(services, run, spaceId),
      ...readsFor(services, run, spaceId),
      writtenAt: services.journal.writtenAt(run, callId),
      awaits: awaits.map(({ id }) => id),
    };
    const waits = awaits.length > 0;
    // A question that may stand in the space already is not refused.
    if (waits && begunAt === undefined && services.waits.runsBeside(run.ordinal) >= maxWaitingRuns) {
      const reached = `maxWaitingRuns (${maxWaitingRuns}) of your runs wait for answers`;
      throw new ColloquyError("limit_reached", `${reached}; say it without wait, or once one of them has its answers`);
    }
    const root = continuityOf(run).waitsForAnswers ? null : message.root;
    if (waits) services.waits.open({ callId, runOrdinal: run.ordinal, spaceId, text, root }, awaits);
    try {
      const append = () =>
        services.env.SPACE.getByName(spaceId).append({ ...message, until: services.clock.now() + spaceAnswerMs });
      const said = unwrap(await asUnknownOutcome(callWithRetry(append, signal)));
      if (waits) placeWait(services, run.ordinal, callId, said.seq);
      return said;
    } catch (error) {
      // A question that was cut is asked again by a replay. Nothing else was asked, as far as the run knows.
      if (waits && !signal.aborted) takeBackWait(services, run.ordinal, callId);
      throw error;
    }
  };

/** Times count from when the call was first begun, however late it is replayed. */
const plansOf = ({ services, run, call: { callId } }: Execution, begunAt: number): ToolContext["plans"] => ({
  list: () => services.plans.all(),
  delete: (ids) => void services.plans.delete(ids),
  set: (plans) => {
    const mindId = services.identity.mindId();
    const named = plans.map(({ id, ...plan }, index) => ({
      id: id ?? services.ids.deriveOwned("pln", mindId, callId, index),
      ...plan,
    }));
    return services.plans.setAll(named, { setBy: "agent", root: rootOfRun(services, run), callId, at: begunAt });
  },
});

/** The things that a tool uses while this call runs. `begunAt`: when the call was first begun. */
export const contextOf = (execution: Execution, begunAt: number): ToolContext => {
  const { services, run, call, activeSpaceId, signal } = execution;
  return {
    ...{ services, callId: call.callId, runId: run.id, signal, activeSpaceId },
    replayed: execution.begunAt !== undefined,
    consented: false,
    root: () => rootOfRun(services, run),
    begunAt,
    roomTokens: () => inputTokensLeft(services, run),
    seenIn: continuityOf(run).readsHistory ? (spaceId) => seenIn(services, spaceId) : null,
    originOf: (message) => toldOrigin(services, message),
    say: sayIn(execution),
    awaited: () => (execution.begunAt === undefined ? [] : services.waits.awaitedBy(call.callId)),
    source: () => sourceOf(services, run, activeSpaceId),
    sources: () => sourcesOf(services, run),
    plans: plansOf(execution, begunAt),
    runs: ownRuns(services, run),
  };
};
