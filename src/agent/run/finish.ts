import { backoff } from "../../shared/backoff.ts";
import { log } from "../../shared/log.ts";
import { failurePauseMs, longestFailurePauseMs } from "../bounds.ts";
import { prefixReuse } from "../context/prefix.ts";
import { evictDeadLetters } from "../inbox/dead-letters.ts";
import type { JournalRow } from "../journal.ts";
import type { Failure, Receipt } from "../records.ts";
import { isActive, loggedRun, overRests, type RunRow } from "../runs.ts";
import { factsOf } from "../tools/registry.ts";
import { correctionAfter, lastBilled } from "./billing.ts";
import { continuityOf } from "./continuity/continuities.ts";
import { activeSpaceOf } from "./progress.ts";
import { receiptsOf } from "./receipts.ts";
import type { RunServices } from "./run-services.ts";
import { settleSeen } from "./seen-in.ts";
import { cancellation, settleOpenCalls, tellCutOff } from "./settle-open-calls.ts";
import { mayHaveActed } from "./side-effects.ts";

/**
 * How a run ended, and what becomes of its events if it failed:
 * - `failed`: they go back to the inbox, with one more attempt.
 * - `acknowledged`: they are done, since the run reached a limit and may have acted.
 * - `requeued`: they wait for the budget's reset.
 * - `dead`: they wait for a person, since the run may have acted and cannot go on.
 */
export type Ending =
  | { kind: "completed" }
  | { kind: "skipped"; reason: string | undefined }
  | { kind: "canceled"; by?: string }
  | { kind: "absorbed"; by: string }
  | { kind: "failed"; error: Failure; events: "failed" | "acknowledged" | "requeued" | "dead" };

/** The pause before the events of a failed run are tried again: under a minute, so that a dead event is known soon. */
export const pauseAfter = (attempts: number): number =>
  backoff(attempts - 1, { firstMs: failurePauseMs, longestMs: longestFailurePauseMs, times: 4 });

const answered = (rows: JournalRow[]): boolean =>
  rows.some((row) => row.meta?.kind === "result" && !row.meta.error && factsOf(row.meta.toolName).speaks);

/** How much of the previous input this run's first input repeats. */
const reuseOf = (services: RunServices, run: RunRow, rows: JournalRow[]): number | null => {
  const previous = services.runs.at(run.ordinal - 1);
  const first = rows.find((row) => row.kind === "assistant");
  const before = previous ? services.windows.lastInput(previous) : null;
  const now = first ? services.windows.inputOf(run, rows, first.seq) : null;
  return before && now ? prefixReuse(before, now) : null;
};

/**
 * Ends a run in one transaction: its status, its events and the active space. A run ends once: one that has ended
 * already is answered as it is.
 */
export const finish = (services: RunServices, running: RunRow, ending: Ending): RunRow => {
  const now = services.runs.at(running.ordinal);
  // Answers, and the events of runs that it absorbed, have joined its events since it began.
  const events = now?.events ?? running.events;
  if (now && !isActive(now)) return now;
  const rests = running.rests && overRests(running, services.journal.nextSeq());
  const run = { ...running, rests };
  const before = services.journal.ofRun(run);
  const reuse = reuseOf(services, run, before);
  const ended = services.transaction(() => {
    const cut = ending.kind === "canceled" || ending.kind === "absorbed";
    const error = ending.kind === "failed" ? ending.error : cut ? cancellation : null;
    // A run that reached a limit is remembered as far as it came.
    const done = ending.kind === "completed" || (ending.kind === "failed" && ending.events === "acknowledged");
    const lived = done || (ending.kind !== "skipped" && mayHaveActed(services, run, before));
    const kept = lived && continuityOf(run).keepsRuns;
    // A run that another one ends is under way until its own loop stops.
    if (error) settleOpenCalls(services, run, before, error, !("by" in ending));
    // Calls in the background go on after a run that ended by itself, but not after one that was cut (R5).
    const cutOff = services.calls.endOf(run.ordinal, cut);
    if (cut) tellCutOff(services, run, before, cutOff);
    const rows = services.journal.ofRun(run);
    const history = rows.flatMap(({ meta }) => (meta?.kind === "inbox" ? (meta.history ?? []) : []));
    if (kept) services.spaces.toldOfHistory(history);
    const receipts = settleEvents(services, { ...run, events }, rows, ending);

    if (continuityOf(run).waitsForAnswers) services.waits.endOf(run.ordinal);
    services.ledger.stopped(String(run.ordinal), lastBilled(run, rows));
    updateIdentity(services, run, rows, ending, kept);

    const changes = {
      status: ending.kind,
      kept,
      rests,
      journalTo: rows.at(-1)?.seq ?? run.journalFrom,
      outcome: outcomeOf(ending, rows),
      reason: ending.kind === "skipped" ? (ending.reason ?? null) : null,
      error: ending.kind === "failed" ? ending.error : null,
      receipts,
      prefixReuse: reuse,
      endedBy: "by" in ending ? (ending.by ?? null) : null,
      resumeAt: null,
      completedAt: services.clock.now(),
    } as const;
    services.runs.end(run, changes);
    return { ...run, events, ...changes };
  });
  services.tracer.run(ended);
  log.info("run.ended", { ...loggedRun(services, run), status: ended.status, code: ended.error?.code });
  services.wakeCalls();
  return ended;
};

/** Acknowledges, requeues or dead-letters the run's events. Answers the read marks of each space. */
const settleEvents = (services: RunServices, run: RunRow, rows: JournalRow[], ending: Ending): Receipt[] => {
  if (ending.kind === "failed" && ending.events === "failed") {
    services.inbox.failed(run.events, ending.error, pauseAfter);
    const dead = services.inbox.rows(run.events).filter(({ status }) => status === "dead");
    if (dead.length > 0) evictDeadLetters(services);
    return receiptsOf(dead);
  }
  if (ending.kind === "failed" && ending.events === "dead") {
    services.inbox.deadLetter(run.events, ending.error);
    evictDeadLetters(services);
    return receiptsOf(services.inbox.rows(run.events));
  }
  if (ending.kind === "failed" && ending.events === "requeued") {
    services.inbox.requeue(run.events);
    return [];
  }
  // The events of an absorbed run belong to the run that absorbed it.
  if (ending.kind === "absorbed") return [];
  const taken = services.inbox.rows(run.events);
  if (continuityOf(run).marksSeen) settleSeen(services, taken, rows, ending.kind !== "canceled");
  services.inbox.acknowledge(run.events);
  return receiptsOf(taken);
};

/** Stores the active space, the estimates' correction and the last error, if any of them changed. */
const updateIdentity = (
  services: RunServices,
  run: RunRow,
  rows: JournalRow[],
  ending: Ending,
  kept: boolean,
): void => {
  const agent = services.identity.get();
  const { activeSpaceId, correction, correctionModel } = agent;
  const next = {
    ...correctionAfter({ correction, correctionModel }, rows),
    activeSpaceId: kept ? activeSpaceOf(run.activeSpaceId, rows) : activeSpaceId,
  };
  const error = ending.kind === "failed" ? { ...ending.error, at: services.clock.now() } : null;
  const same =
    next.activeSpaceId === activeSpaceId && next.correction === correction && next.correctionModel === correctionModel;
  if (!same || error !== null || agent.lastError !== null) services.identity.update({ ...next, lastError: error });
};

const outcomeOf = (ending: Ending, rows: JournalRow[]): "answered" | "silent" | "failed" | null => {
  if (ending.kind === "failed") return "failed";
  if (ending.kind === "canceled" || ending.kind === "absorbed") return answered(rows) ? "answered" : null;
  return ending.kind === "completed" && answered(rows) ? "answered" : "silent";
};
