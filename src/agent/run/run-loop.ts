import { backoff } from "../../shared/backoff.ts";
import { ColloquyError, suspendedError } from "../../shared/errors.ts";
import { faultOnceStored } from "../../shared/fault.ts";
import { log } from "../../shared/log.ts";
import {
  faultBackoffMs,
  longestFaultBackoffMs,
  maxAttempts,
  maxBackoffTotalMs,
  untilClaimed,
  watchdogMs,
} from "../bounds.ts";
import type { Failure } from "../records.ts";
import { loggedRun, type RunRow } from "../runs.ts";
import { callModeOf } from "../tools/call-mode.ts";
import { maySpeakIn } from "../tools/confidential.ts";
import { findTool } from "../tools/registry.ts";
import { type Channels, openChannels, tellEnd } from "./channel.ts";
import { kindOf, windowOf } from "./composing.ts";
import { continuityOf } from "./continuity/continuities.ts";
import { execute } from "./execute.ts";
import { type Ending, finish, mayHaveActed, pauseAfter } from "./finish.ts";
import { guestThinker } from "./guest-thinker.ts";
import { nextOf, overLimit } from "./next-step.ts";
import { payersOf } from "./run-events.ts";
import { activeSpaceOf, readRows } from "./run-rows.ts";
import type { LiveRun } from "./run-services.ts";
import { createSpeech, type Speech } from "./speech.ts";
import { type StepInput, step } from "./step.ts";
import { modelThinker } from "./thinker.ts";

/**
 * One run, from its journal to its end: compose → stream a step → journal it → execute its calls → next step.
 *
 * Invariants
 * 1. What to do next follows from the journal alone, so a run that was cut anywhere goes on (R3).
 * 2. An aborted run generates nothing more. It appends no more than what was under way (R5).
 * 3. A step starts only after its tokens were reserved (B2).
 */

type InLoop = LiveRun & { channels: Channels };

/** Answers the run once it has ended; null where it pauses, or rests until somebody answers. `abort` aborts its signal. */
export const runLoop = async (live: LiveRun, abort: (reason: ColloquyError) => void): Promise<RunRow | null> => {
  const { services, run, signal } = live;
  const { config } = services.identity.get();
  const channels = openChannels(services, run);
  const { maxRunMinutes } = config.limits;
  const late = `the run thought for longer than maxRunMinutes (${maxRunMinutes})`;
  const stop = (): void => abort(new ColloquyError("time_limit", late));
  const leftMs = (): number => maxRunMinutes * 60_000 - services.runs.beginWork(services.runs.at(run.ordinal) ?? run);
  const firstMs = leftMs();
  if (firstMs <= 0) stop();
  let deadline: ReturnType<typeof setTimeout> | undefined = setTimeout(stop, firstMs);
  /** While it waits for tokens, its time stands still. */
  const waitsFor = (person: string | undefined): void => {
    live.waitsFor(person);
    if (person === undefined) {
      deadline ??= setTimeout(stop, leftMs());
    } else if (deadline !== undefined) {
      clearTimeout(deadline);
      deadline = undefined;
      services.runs.update(run.ordinal, services.runs.worked(run));
    }
  };
  const inLoop = { ...live, channels, waitsFor };
  try {
    services.mcp.runBegins();
    const wasCut = services.journal.ofRun(run).length > 1 || run.faults > 0;
    channels.tellRun({ event: wasCut ? "run.resumed" : "run.started" });
    const payers = payersOf(services, run);
    const thinker = config.runtime === "guest" ? guestThinker(live) : await modelThinker(live);
    const ending = await steps({ ...inLoop, thinker, payers });
    if (ending === "unclaimed") return await pause(inLoop, unclaimed, untilClaimed);
    return typeof ending === "string" ? await rest(inLoop, ending) : await conclude(inLoop, ending);
  } catch (error) {
    if (!signal.aborted) return await failed(inLoop, error);
    const code = signal.reason instanceof ColloquyError ? signal.reason.code : "run_canceled";
    // A stalled run goes on from its journal in another loop.
    if (code === "model_stalled") return await failed(inLoop, signal.reason);
    return await end(inLoop, code === "time_limit" ? overLimit(code, late) : { kind: "canceled" });
  } finally {
    clearTimeout(deadline);
    services.tracer.flush();
  }
};

type Rest = "waiting_reply" | "waiting_tool";

/** Why a guest's run goes on no further. */
const unclaimed: Failure = { code: "guest_away", message: "no program of the guest has claimed the run" };

/** The run rests until somebody answers or the time is up. It holds nothing in memory. */
const rest = async (live: InLoop, status: Rest): Promise<RunRow | null> => {
  const { services, run, channels } = live;
  // Another run may have ended it a moment ago.
  if (services.runs.at(run.ordinal)?.status !== "running") return end(live, { kind: "canceled" });
  services.runs.rest(run, status, services.journal.nextSeq());
  await faultOnceStored("agent.after-rest", services.object);
  channels.tellRun({ event: `run.${status}` });
  await channels.end(status);
  return null;
};

/** Makes the run's steps until it ends or rests. */
const steps = async (live: InLoop & StepInput): Promise<Ending | Rest | "unclaimed"> => {
  const { services, run, signal, progressed } = live;
  const continuity = continuityOf(run);
  const { waitsForAnswers } = continuity;
  let speech: Speech | undefined;
  let compacted = false;
  try {
    for (;;) {
      signal.throwIfAborted();
      if (services.isSuspended()) throw suspendedError();
      let view = readRows(services.journal.ofRun(run));
      if (view.steps.length === 0) {
        await continuity.compose(live, 0, null);
        view = readRows(services.journal.ofRun(run));
      }
      const next = nextOf(view, {
        isAwaited: (callId) => services.calls.isAwaited(callId),
        rules: windowOf(services, run).toolset.toolRules,
        waitsForAnswers,
        limits: services.identity.get().config.limits,
      });
      progressed();
      if (next.kind === "end") return next.ending;
      if (next.kind === "await") return "waiting_tool";
      if (next.kind === "remind") {
        services.journal.tell(run.ordinal, next.step, next.text, { kind: "reminder" });
        continue;
      }
      const lastSpaceId = activeSpaceOf(run.activeSpaceId, view.all);
      const activeSpaceId = lastSpaceId !== null && services.spaces.isMember(lastSpaceId) ? lastSpaceId : null;
      if (next.kind === "wait") {
        if (services.waits.isWaiting(run.ordinal)) return "waiting_reply";
        await continuity.compose(live, next.step, activeSpaceId);
        continue;
      }
      if (next.kind === "execute") {
        // A call that was begun belongs to the space where it was begun, even if the agent has left it since.
        const where = next.begunAt === undefined ? activeSpaceId : lastSpaceId;
        const entered = await execute({ ...live, ...next, activeSpaceId: where, speech });
        // The channel shows the space's members that the agent is there.
        if (entered && maySpeakIn(services, entered)) live.channels.to(entered);
        continue;
      }
      if (!live.thinker.isThere()) return "unclaimed";
      if (next.step > 0) continuity.beforeStep(services, run, next.step, view.all);
      speech = speechFor(live, activeSpaceId);
      try {
        const exhausted = await step(live, next.step, speech);
        if (exhausted) return exhausted;
      } catch (error) {
        speech.giveUp();
        if (compacted || signal.aborted || failureOf(error).code !== "context_overflow") throw error;
        compacted = true;
        if (!(await continuity.shorten(live, next.step, activeSpaceId))) throw error;
      }
    }
  } finally {
    speech?.giveUp();
  }
};

const speechFor = ({ services, run, channels }: InLoop, activeSpaceId: string | null): Speech =>
  createSpeech({
    channel: activeSpaceId === null || !maySpeakIn(services, activeSpaceId) ? null : () => channels.to(activeSpaceId),
    mintStreamId: () => services.ids.mint("str"),
    tool: (toolName) => {
      const tool = findTool(toolName, kindOf(services, run));
      return tool && { ...tool, shows: tool.config !== undefined && callModeOf(tool.config, continuityOf(run)).shows };
    },
  });

/** The run goes on from its journal at `resumeAt`. */
const pause = async (
  { services, run, channels }: InLoop,
  error: Failure,
  resumeAt: number,
  faults: Partial<RunRow> = {},
): Promise<null> => {
  services.transaction(() => {
    services.runs.update(run.ordinal, { ...faults, resumeAt, lease: null, ...services.runs.worked(run) });
    services.identity.update({ lastError: { ...error, at: services.clock.now() } });
  });
  log.warn("run.paused", { ...loggedRun(services, run), code: error.code, resumeAt });
  await channels.end(error.code);
  return null;
};

/**
 * Decides what an error means for the run. A retryable one pauses it. A terminal one pauses it too if the run may have
 * acted and its events have attempts left: it is not begun anew. Any other ends it.
 */
const failed = async (live: InLoop, thrown: unknown): Promise<RunRow | null> => {
  const { services, run } = live;
  const { code, message, retryable, retryAfterMs } = failureOf(thrown);
  // A provider may quote words that are being taken out.
  const error: Failure = services.redactions.clean({ code, message });
  if (code === "internal") log.error("run.failed", thrown, loggedRun(services, run));
  const now = services.clock.now();
  // A suspension is no fault. The loop wakes when the workspace resumes. A compartment may not know of the suspension yet.
  if (code === "suspended") return pause(live, error, services.isSuspended() ? now : now + watchdogMs);
  const firstFaultAt = run.firstFaultAt ?? now;
  const faults = { faults: run.faults + 1, firstFaultAt };
  if (retryable && now - firstFaultAt < maxBackoffTotalMs) {
    const pauses = { firstMs: faultBackoffMs, longestMs: longestFaultBackoffMs };
    const resumeAt = now + backoff(run.faults, pauses, retryAfterMs);
    return pause(live, error, resumeAt, faults);
  }
  if (!retryable && mayHaveActed(services, run)) {
    const attempts = services.inbox.recordAttempt(run.events, error);
    if (attempts < maxAttempts) return pause(live, error, now + pauseAfter(attempts), faults);
  }
  return conclude(live, { kind: "failed", error, events: "failed" });
};

/**
 * Ends the run. One that may have acted is never begun anew: it pauses until the budget's reset, or waits for a person. A
 * cycle that one person's share stops ends there, as at a limit: while it paused, nobody else would be answered.
 */
const conclude = async (live: InLoop, ending: Ending): Promise<RunRow | null> => {
  const { services, run } = live;
  const isAnew = ending.kind === "failed" && ending.events !== "acknowledged";
  if (!isAnew || !mayHaveActed(services, run)) return end(live, ending);
  if (ending.events === "held" && continuityOf(run).runsAlone) return end(live, { ...ending, events: "acknowledged" });
  if (ending.events === "requeued" || ending.events === "held") {
    return pause(live, ending.error, services.ledger.resetsAt());
  }
  return end(live, { ...ending, events: "dead" });
};

/** An unforeseen error is our own, and retrying does not help. */
const failureOf = (error: unknown): ColloquyError =>
  error instanceof ColloquyError ? error : new ColloquyError("internal", "Something went wrong here.");

const end = async ({ services, run, channels }: InLoop, ending: Ending): Promise<RunRow> => {
  await faultOnceStored("agent.before-commit", services.object);
  const ended = finish(services, run, ending);
  await faultOnceStored("agent.after-commit", services.object);
  await tellEnd(services, ended, channels);
  return ended;
};
