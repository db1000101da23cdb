import { backoff } from "../../shared/backoff.ts";
import { log } from "../../shared/log.ts";
import { meter } from "../../shared/meter.ts";
import { failurePauseMs, longestFailurePauseMs } from "../bounds.ts";
import { closeWaits, unsharedOf } from "../inbox/deliver.ts";
import type { Correction, Failure, Receipt } from "../records.ts";
import { isActive, loggedRun, overRests, type RunRow } from "../runs.ts";
import { correct } from "../tokens.ts";
import { builtinTool, factsOf, findTool } from "../tools/registry.ts";
import { correctionOf, kindOf } from "./composing.ts";
import { continuityOf } from "./continuity/continuities.ts";
import { guestModelId } from "./guest-thinker.ts";
import { cancellation, settleOpenCalls, tellCutOff } from "./results.ts";
import { receiptsOf, settleSeen } from "./run-events.ts";
import { activeSpaceOf, inputsIn, type RunRows, readRows } from "./run-rows.ts";
import type { RunServices } from "./run-services.ts";

/**
 * How a run ended, and what becomes of its events if it failed:
 * - `failed`: they go back to the inbox, with one more attempt.
 * - `acknowledged`: they are done, since the run reached a limit and may have acted.
 * - `requeued`: they wait for the budget's reset.
 * - `held`: they wait for it too, and others' go on: it is one person's share that is used up.
 * - `dead`: they wait for a person, since the run may have acted and cannot go on.
 */
export type Ending =
  | { kind: "completed" }
  | { kind: "skipped"; reason: string | undefined }
  | { kind: "canceled"; by?: string }
  | { kind: "absorbed"; by: string }
  | { kind: "failed"; error: Failure; events: "failed" | "acknowledged" | "requeued" | "held" | "dead" };

/** The pause before the events of a failed run are tried again: under a minute, so that a dead event is known soon. */
export const pauseAfter = (attempts: number): number =>
  backoff(attempts - 1, { firstMs: failurePauseMs, longestMs: longestFailurePauseMs, times: 4 });

/**
 * Whether it may have changed something that outlives it: a call that was begun may have done what it should, whatever
 * came of it. Such a run is remembered, however it ended, and not begun anew, which would do it again.
 */
export const mayHaveActed = (
  services: RunServices,
  run: RunRow,
  { calls } = readRows(services.journal.ofRun(run)),
): boolean => {
  const kind = kindOf(services, run);
  return calls.some(({ call: { toolName, input }, begunAt }) => {
    const tool = builtinTool(toolName) ?? findTool(toolName, kind);
    // A tool that the agent no longer has may have changed anything.
    return begunAt !== undefined && (tool?.effect(input) ?? true);
  });
};

/** How much of the previous input this run's first input repeats. */
const reuseOf = ({ runs, windows }: RunServices, run: RunRow, { all, steps }: RunRows): number | null => {
  const previous = runs.own(run.ordinal);
  const first = steps[0] ? windows.inputOf(run, all, steps[0]) : null;
  return previous && first ? windows.reuse(previous, first) : null;
};

/**
 * Ends a run in one transaction: its status, its events and the active space. A run ends once: one that has ended
 * already is answered as it is.
 */
export const finish = (services: RunServices, running: RunRow, ending: Ending): RunRow => {
  const { runs, journal } = services;
  const now = runs.at(running.ordinal);
  if (now && !isActive(now)) return now;
  const rests = overRests(running, journal.nextSeq());
  // Answers, and the events of runs that it absorbed, have joined its events since it began.
  const run = { ...running, rests, events: now?.events ?? running.events };
  const continuity = continuityOf(run);
  const before = readRows(journal.ofRun(run));
  const reuse = reuseOf(services, run, before);
  const ended = services.transaction(() => {
    const cut = ending.kind === "canceled" || ending.kind === "absorbed";
    const error = ending.kind === "failed" ? ending.error : cut ? cancellation : null;
    // A run that reached a limit is remembered as far as it came.
    const done = ending.kind === "completed" || (ending.kind === "failed" && ending.events === "acknowledged");
    const kept = continuity.keepsRuns && (done || (ending.kind !== "skipped" && mayHaveActed(services, run, before)));
    // A run that another one ends is under way until its own loop stops.
    if (error) settleOpenCalls(services, run, error, !("by" in ending));
    // Calls in the background go on after a run that ended by itself, but not after one that was cut (R5).
    const cutOff = services.calls.endOf(run.ordinal, cut);
    if (cut) tellCutOff(services, run, before.all.at(-1)?.step ?? 0, cutOff);
    const rows = readRows(journal.ofRun(run));
    if (kept) services.spaces.toldOfHistory(inputsIn(rows.all).flatMap(({ history = [] }) => history));
    closeWaits(services, run, { wasCut: cut, isAbsorbed: ending.kind === "absorbed" });
    const events = runs.at(run.ordinal)?.events ?? run.events;
    // An answer that another run has too is acknowledged with that one.
    const unshared = unsharedOf(services, { ordinal: run.ordinal, events });
    const receipts = settleEvents(services, { ...run, events: unshared }, rows, ending);
    updateIdentity(services, run, rows, ending, kept);
    const correction = corrected(services, rows);
    runs.correct(run.ordinal, correction);

    const changes = {
      correction,
      ...{ status: ending.kind, events, kept, rests, receipts, prefixReuse: reuse, resumeAt: null },
      journalTo: rows.all.at(-1)?.seq ?? run.journalFrom,
      outcome: outcomeOf(ending, rows),
      reason: ending.kind === "skipped" ? (ending.reason ?? null) : null,
      error: ending.kind === "failed" ? ending.error : null,
      endedBy: "by" in ending ? (ending.by ?? null) : null,
      completedAt: services.clock.now(),
    } as const;
    runs.update(run.ordinal, changes);
    return { ...run, ...changes };
  });
  services.tracer.run(ended);
  meter.count("runs", { end: ended.status });
  log.info("run.ended", { ...loggedRun(services, run), status: ended.status, code: ended.error?.code });
  services.wakeCalls();
  return ended;
};

/** Acknowledges or requeues the run's events, or marks them dead. Answers the read marks of each space. */
const settleEvents = (services: RunServices, run: RunRow, { all }: RunRows, ending: Ending): Receipt[] => {
  const { inbox } = services;
  // The events of an absorbed run belong to the run that absorbed it.
  if (ending.kind === "absorbed") return [];
  if (ending.kind !== "failed" || ending.events === "acknowledged") {
    const taken = inbox.rows(run.events);
    if (continuityOf(run).readsHistory) settleSeen(services, taken, all, ending.kind !== "canceled");
    inbox.acknowledge(run.events);
    return receiptsOf(taken);
  }
  if (ending.events === "requeued" || ending.events === "held") {
    inbox.requeue(run.events);
    return [];
  }
  const isDead = ending.events === "dead";
  const died = isDead ? inbox.deadLetter(run.events, ending.error) : inbox.failed(run.events, ending.error, pauseAfter);
  if (died.length > 0) meter.count("dead_events", {}, died.length);
  return receiptsOf(died);
};

/** With what the run's steps were billed. */
const corrected = (services: RunServices, { steps }: RunRows): Correction | null =>
  steps.reduce((known, { meta: { modelId, usage, estimatedInput } }) => {
    // A guest reports what its own model used.
    if (usage.estimated || modelId === guestModelId) return known;
    const before = known?.modelId === modelId ? known.ratio : 1;
    return { ratio: correct(before, estimatedInput, usage.inputTokens), modelId };
  }, correctionOf(services));

/** Stores the active space and the last error, if they changed. */
const updateIdentity = (
  { identity, clock }: RunServices,
  run: RunRow,
  { all }: RunRows,
  ending: Ending,
  kept: boolean,
): void => {
  const before = identity.get();
  const activeSpaceId = kept ? activeSpaceOf(run.activeSpaceId, all) : before.activeSpaceId;
  const lastError = ending.kind === "failed" ? { ...ending.error, at: clock.now() } : null;
  const after = { activeSpaceId, lastError };
  if (JSON.stringify({ ...before, ...after }) !== JSON.stringify(before)) identity.update(after);
};

const outcomeOf = (ending: Ending, { calls }: RunRows): "answered" | "silent" | "failed" | null => {
  if (ending.kind === "failed") return "failed";
  const spoke = calls.some(({ call, result }) => result && !result.meta.error && factsOf(call.toolName).speaks);
  if (spoke) return "answered";
  return ending.kind === "canceled" || ending.kind === "absorbed" ? null : "silent";
};
