import { RunStatus } from "../../protocol/run.ts";
import { isoTime } from "../../shared/clock.ts";
import { ColloquyError, unwrap } from "../../shared/errors.ts";
import { maxWaitingRuns, spaceAnswerMs } from "../bounds.ts";
import { callWithRetry } from "../call-with-retry.ts";
import { placeWait, takeBackWait } from "../inbox/deliver.ts";
import { isActive, type RunRow } from "../runs.ts";
import { asUnknownOutcome } from "../tools/outcome.ts";
import type { ToolContext } from "../tools/tool.ts";
import { inputTokensLeft } from "./composing.ts";
import { continuityOf } from "./continuity/continuities.ts";
import { finish } from "./finish.ts";
import { cancellation, settleOpenCalls } from "./results.ts";
import { originFor, rootOfRun, seenIn, sourceOf } from "./run-events.ts";
import { cutOffIn, finishedCalls, readRows } from "./run-rows.ts";
import type { Execution, RunServices } from "./run-services.ts";

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
      awaits: awaits.map(({ id }) => id),
    };
    const waits = awaits.length > 0 && continuityOf(run).waitsForAnswers;
    if (waits && services.waits.runsBeside(run.ordinal) >= maxWaitingRuns) {
      const reached = `maxWaitingRuns (${maxWaitingRuns}) of your runs wait for answers`;
      throw new ColloquyError("limit_reached", `${reached}; stop one, or say it without wait`);
    }
    if (waits) services.waits.open({ callId, runOrdinal: run.ordinal, spaceId, text }, awaits);
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

/**
 * Ends the agent's other run that a call names. The first caller wins: a run that has ended is refused, unless this very
 * run ended it so (a replay). The events of an absorbed run join this one's.
 */
const endOther = (services: RunServices, self: RunRow, runId: string, kind: "canceled" | "absorbed"): RunRow => {
  const now = services.runs.at(self.ordinal);
  // A run that was ended by another may end none: the events that it took over would have no owner.
  if (!now || !isActive(now)) throw new ColloquyError("run_canceled", "this run has ended");
  const other = services.runs.get(runId);
  if (!other) throw new ColloquyError("not_found", "you have no such run; get_my_runs lists yours");
  if (other.ordinal === self.ordinal) throw new ColloquyError("conflict", "that is this run; just end instead");
  if (other.status === kind && other.endedBy === self.id) return other;
  if (!isActive(other)) {
    const isCut = other.status === "canceled" || other.status === "absorbed";
    throw new ColloquyError("conflict", isCut ? "run already canceled" : `the run has ended: it is ${other.status}`);
  }
  services.transaction(() => {
    const ended = finish(services, other, { kind, by: self.id });
    // They are acknowledged, or given back, with this run.
    if (kind === "absorbed") services.runs.update(self.ordinal, { events: [...now.events, ...ended.events] });
  });
  return other;
};

/**
 * Stops the loop of a run that was ended, and settles its calls: those under way have an unknown outcome. Answers its
 * trigger, its calls, and as `notes` the outcomes of those in the background.
 */
const settleEnded = async (services: RunServices, { id, trigger }: RunRow, why: string) => {
  await services.stopRun(id, why);
  const run = services.runs.get(id);
  if (!run) return { trigger, actions: [] };
  settleOpenCalls(services, run, cancellation, true);
  const rows = services.journal.ofRun(run);
  const notes = cutOffIn(rows);
  return { trigger, actions: finishedCalls(readRows(rows)), ...(notes.length === 0 ? {} : { notes }) };
};

const ownRuns = (services: RunServices, self: RunRow): ToolContext["runs"] => ({
  list: (status, limit) => {
    const wanted = status === undefined ? undefined : RunStatus.safeParse(status);
    if (wanted && !wanted.success) {
      throw new ColloquyError("tool_input_invalid", `status must be one of ${RunStatus.options.join(", ")}`);
    }
    return services.runs.page(undefined, limit, wanted?.data).map((run) => ({
      runId: run.id,
      status: run.status,
      thisRun: run.ordinal === self.ordinal,
      trigger: run.trigger,
      startedAt: isoTime(run.startedAt),
      ...(run.completedAt === null ? {} : { completedAt: isoTime(run.completedAt) }),
    }));
  },
  stop: async (runId) => {
    await settleEnded(services, endOther(services, self, runId, "canceled"), "another run of the agent stopped it");
  },
  absorb: (runId) =>
    settleEnded(services, endOther(services, self, runId, "absorbed"), "another run of the agent absorbed it"),
});

/** The things that a tool uses while this call runs. `begunAt`: when the call was first begun. */
export const contextOf = (execution: Execution, begunAt: number): ToolContext => {
  const { services, run, call, activeSpaceId, signal } = execution;
  return {
    ...{ services, callId: call.callId, signal, activeSpaceId },
    replayed: execution.begunAt !== undefined,
    consented: false,
    roomTokens: () => inputTokensLeft(services, run),
    seenIn: continuityOf(run).marksSeen ? (spaceId) => seenIn(services, spaceId) : null,
    say: sayIn(execution),
    source: () => sourceOf(services, run, activeSpaceId),
    plans: plansOf(execution, begunAt),
    runs: ownRuns(services, run),
  };
};
