import { RunStatus } from "../../protocol/run.ts";
import { isoTime } from "../../shared/clock.ts";
import { ColloquyError } from "../../shared/errors.ts";
import type { Action } from "../context/timeline/snapshot.ts";
import { isActive, type RunRow } from "../runs.ts";
import type { OwnRuns } from "../tools/tool.ts";
import { finish } from "./finish.ts";
import { finishedCalls } from "./progress.ts";
import type { RunServices } from "./run-services.ts";
import { cancellation, cutOffIn, settleOpenCalls } from "./settle-open-calls.ts";

/**
 * The agent's other run that a call names. The first caller wins: stopping or absorbing a run that has ended is refused,
 * unless this very run ended it (a replay).
 */
const otherRun = (services: RunServices, self: RunRow, runId: string): RunRow => {
  const other = services.runs.get(runId);
  if (!other) throw new ColloquyError("not_found", "you have no such run; get_my_runs lists yours");
  if (other.ordinal === self.ordinal) throw new ColloquyError("conflict", "that is this run; just end instead");
  return other;
};

const alreadyEnded = (run: RunRow): ColloquyError =>
  new ColloquyError(
    "conflict",
    run.status === "canceled" || run.status === "absorbed"
      ? "run already canceled"
      : `the run has ended: it is ${run.status}`,
  );

/**
 * Stops the calls of a run that was ended. Answers all its calls; those under way have an unknown outcome. `notes`: the
 * outcomes of its calls in the background.
 */
const toRest = async (
  services: RunServices,
  runId: string,
  why: string,
): Promise<{ actions: Action[]; notes?: string[] }> => {
  await services.stopRun(runId, why);
  const run = services.runs.get(runId);
  if (!run) return { actions: [] };
  settleOpenCalls(services, run, services.journal.ofRun(run), cancellation, true);
  const rows = services.journal.ofRun(run);
  const notes = cutOffIn(rows);
  return { actions: finishedCalls(rows), ...(notes.length === 0 ? {} : { notes }) };
};

/** A run that was ended by another may end none: the events that it took over would have no owner. */
const requireActive = (services: RunServices, self: RunRow): void => {
  const now = services.runs.at(self.ordinal);
  if (!now || !isActive(now)) throw new ColloquyError("run_canceled", "this run has ended");
};

export const ownRuns = (services: RunServices, self: RunRow): OwnRuns => ({
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
    requireActive(services, self);
    const other = otherRun(services, self, runId);
    if (other.status !== "canceled" || other.endedBy !== self.id) {
      if (!isActive(other)) throw alreadyEnded(other);
      finish(services, other, { kind: "canceled", by: self.id });
    }
    await toRest(services, runId, "another run of the agent stopped it");
  },
  absorb: async (runId) => {
    requireActive(services, self);
    const other = otherRun(services, self, runId);
    if (other.status !== "absorbed" || other.endedBy !== self.id) {
      if (!isActive(other)) throw alreadyEnded(other);
      services.transaction(() => {
        const absorbed = finish(services, other, { kind: "absorbed", by: self.id });
        // Its events are acknowledged, or given back, with this run.
        const events = [...(services.runs.at(self.ordinal)?.events ?? self.events), ...absorbed.events];
        services.runs.update(self.ordinal, { events });
      });
    }
    return { trigger: other.trigger, ...(await toRest(services, runId, "another run of the agent absorbed it")) };
  },
});
