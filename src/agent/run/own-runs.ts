import { RunStatus } from "../../protocol/run.ts";
import { isoTime } from "../../shared/clock.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { isActive, type RunRow } from "../runs.ts";
import type { OwnRuns } from "../tools/tool.ts";
import { finish } from "./finish.ts";
import { cancellation, settleOpenCalls } from "./results.ts";
import { cutOffIn, finishedCalls, readRows } from "./run-rows.ts";
import type { RunServices } from "./run-services.ts";

type Ended = { actions: unknown[]; notes?: string[] };

/**
 * Stops the calls of a run that was ended. Answers all its calls; those under way have an unknown outcome. `notes`: the
 * outcomes of its calls in the background.
 */
const toRest = async (services: RunServices, { id }: RunRow, why: string): Promise<Ended> => {
  await services.stopRun(id, why);
  const run = services.runs.get(id);
  if (!run) return { actions: [] };
  settleOpenCalls(services, run, cancellation, true);
  const rows = services.journal.ofRun(run);
  const notes = cutOffIn(rows);
  return { actions: finishedCalls(readRows(rows)), ...(notes.length === 0 ? {} : { notes }) };
};

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
    const other = endOther(services, self, runId, "canceled");
    await toRest(services, other, "another run of the agent stopped it");
  },
  absorb: async (runId) => {
    const other = endOther(services, self, runId, "absorbed");
    return { trigger: other.trigger, ...(await toRest(services, other, "another run of the agent absorbed it")) };
  },
});
