import type { ModelFailure } from "../../models/failure.ts";
import { resolveModel } from "../../models/models.ts";
import { backoff } from "../../shared/backoff.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { faultOnceStored } from "../../shared/fault.ts";
import { log } from "../../shared/log.ts";
import { faultBackoffMs, longestFaultBackoffMs, maxAttempts, maxBackoffTotalMs, maxInvalidSteps } from "../bounds.ts";
import type { JournalRow } from "../journal.ts";
import type { Failure } from "../records.ts";
import type { RunRow } from "../runs.ts";
import { loggedRun } from "../runs.ts";
import { handlingOf } from "../tools/handling.ts";
import { findTool } from "../tools/registry.ts";
import { lastBilled } from "./billing.ts";
import { Channels } from "./channel.ts";
import { kindOf, rulesOf } from "./composing.ts";
import { continuityOf } from "./continuity/continuities.ts";
import { enforceToolRules } from "./enforce-tool-rules.ts";
import { execute } from "./execute.ts";
import { type Ending, finish, pauseAfter } from "./finish.ts";
import { activeSpaceOf, invalidStepsInARow, progressOf, tokensAdded } from "./progress.ts";
import { readFramesOf, tellReceipts } from "./receipts.ts";
import type { RunServices } from "./run-services.ts";
import { mayHaveActed } from "./side-effects.ts";
import { Speech } from "./speech.ts";
import { ModelError, type StepInput, step } from "./step.ts";
import { beginThinking, endThinking } from "./thinking-time.ts";

/**
 * One run, from its journal to its end: compose → stream a step → journal it → execute its calls → next step.
 *
 * Invariants
 * 1. What to do next follows from the journal alone, so a run that was cut anywhere goes on (R3).
 * 2. An aborted run generates nothing more. It appends no more than what was under way (R5).
 * 3. A step starts only after its tokens were reserved (B2).
 */
export type RunLoopEnd = { kind: "ended"; run: RunRow } | { kind: "paused"; resumeAt: number } | { kind: "waiting" };

/** Why a signal is aborted whose run goes on from its journal in another loop. */
export class Interrupted extends Error {}

/** A run that is in a loop. */
type LiveRun = Pick<StepInput, "services" | "run"> & { channels: Channels };
type Steps = LiveRun & StepInput;

export const runLoop = async (
  services: RunServices,
  run: RunRow,
  signal: AbortSignal,
  progressed: () => void,
): Promise<RunLoopEnd> => {
  const { id: agentId, workspaceId, config } = services.identity.get();
  const channels = new Channels(
    (spaceId) => services.env.SPACE.getByName(spaceId),
    { workspaceId, agentId, runId: run.id },
    run.spaceIds.filter((spaceId) => services.spaces.isMember(spaceId)),
  );
  const live = { services, run, channels };
  const minutes = new AbortController();
  const leftMs = config.limits.maxRunMinutes * 60_000 - beginThinking(services, run);
  if (leftMs <= 0) minutes.abort();
  const deadline = setTimeout(() => minutes.abort(), leftMs);
  try {
    services.mcp.runBegins();
    const lived = services.journal.ofRun(run).length > 1;
    channels.tellRun({ event: lived || run.faults > 0 ? "run.resumed" : "run.started" });
    const model = await resolveModel(config.model, {
      env: services.env,
      openSecret: (name) => services.identity.openSecret(name),
    });
    const ending = await steps({ ...live, signal: AbortSignal.any([signal, minutes.signal]), progressed, model });
    return typeof ending === "string" ? await wait(live, ending) : await conclude(live, ending);
  } catch (error) {
    if (signal.aborted && signal.reason instanceof Interrupted) {
      return await failed(live, new ColloquyError("model_stalled", signal.reason.message));
    }
    if (signal.aborted) return await end(live, { kind: "canceled" });
    if (minutes.signal.aborted) {
      const message = `the run thought for longer than maxRunMinutes (${config.limits.maxRunMinutes})`;
      return end(live, overLimit("time_limit", message));
    }
    return await failed(live, error);
  } finally {
    clearTimeout(deadline);
    services.tracer.flush();
  }
};

type Rest = "waiting_reply" | "waiting_tool";

/** The run rests until somebody answers or the time is up. It holds nothing in memory. */
const wait = async (live: LiveRun, rest: Rest): Promise<RunLoopEnd> => {
  const { services, run, channels } = live;
  // Another run may have ended it a moment ago.
  if (services.runs.at(run.ordinal)?.status !== "running") return end(live, { kind: "canceled" });
  services.transaction(() => {
    // It may rest for long: its reserved tokens must not be withheld from other runs.
    services.ledger.stopped(String(run.ordinal), lastBilled(run, services.journal.ofRun(run)));
    services.runs.rest(run, rest, services.journal.nextSeq(), endThinking(services, run));
  });
  await faultOnceStored("agent.after-rest", services.object);
  channels.tellRun({ event: `run.${rest}` });
  await channels.end(rest);
  return { kind: "waiting" };
};

const overLimit = (code: Failure["code"], message: string): Ending => ({
  kind: "failed",
  error: { code, message },
  events: "acknowledged",
});

/** The ending of a run that is over one of its limits, or null. */
const limitReached = ({ services }: Steps, rows: JournalRow[], step: number): Ending | null => {
  const { limits } = services.identity.get().config;
  if (step >= limits.maxSteps) return overLimit("step_limit", `the run made maxSteps (${limits.maxSteps}) steps`);
  if (tokensAdded(rows) > limits.maxTokensPerRun) {
    return overLimit("token_limit", `the run added more than maxTokensPerRun (${limits.maxTokensPerRun}) tokens`);
  }
  if (invalidStepsInARow(rows) >= maxInvalidSteps) {
    const message = `the model made ${maxInvalidSteps} steps in a row in which no call was valid (maxInvalidSteps)`;
    return { kind: "failed", error: { code: "model_nonsense", message }, events: "failed" };
  }
  return null;
};

/** Makes the run's steps until it ends or rests. */
const steps = async (input: Steps): Promise<Ending | Rest> => {
  const { services, run, signal, progressed } = input;
  const continuity = continuityOf(run);
  let speech: Speech | undefined;
  let compacted = false;
  try {
    for (;;) {
      signal.throwIfAborted();
      let rows = services.journal.ofRun(run);
      if (rows.length === 0) {
        await continuity.compose(services, run, { step: 0, activeSpaceId: null, signal });
        continue;
      }
      if (!rows.some(({ kind }) => kind === "assistant")) {
        await continuity.beforeFirstStep(services, run, signal);
        rows = services.journal.ofRun(run);
      }
      const next = enforceToolRules(
        progressOf(rows, (callId) => services.calls.isAwaited(callId)),
        rows,
        rulesOf(services, run),
        continuity,
      );
      progressed();
      if (next.kind === "done") return { kind: "completed" };
      if (next.kind === "await") return "waiting_tool";
      if (next.kind === "broken") return overLimit("tool_rule_broken", next.message);
      if (next.kind === "remind") {
        services.journal.tell(run.ordinal, next.step, next.text, { kind: "reminder" });
        continue;
      }
      if (next.kind === "skip") return { kind: "skipped", reason: next.reason };
      // Answers come as events of later runs.
      if (next.kind === "wait" && !continuity.waitsForAnswers) return { kind: "completed" };
      const lastSpaceId = activeSpaceOf(run.activeSpaceId, rows);
      const activeSpaceId = lastSpaceId !== null && services.spaces.isMember(lastSpaceId) ? lastSpaceId : null;
      if (next.kind === "wait") {
        if (services.waits.isWaiting(run.ordinal)) return "waiting_reply";
        await continuity.compose(services, run, { step: next.next, activeSpaceId, signal });
        continue;
      }
      if (next.kind === "execute") {
        // A call that was begun belongs to the space where it was begun, even if the agent has left it since.
        const where = { activeSpaceId: next.started ? lastSpaceId : activeSpaceId };
        const entered = await execute(services, { run, ...next, ...where, speech, signal, progressed });
        // The channel shows the space's members that the agent is there.
        if (entered) input.channels.to(entered);
        continue;
      }
      const limit = limitReached(input, rows, next.step);
      if (limit) return limit;
      if (next.step > 0) continuity.beforeStep(services, run, next.step, rows);
      speech = speechFor(input, activeSpaceId);
      try {
        const exhausted = await step(input, next.step, speech);
        if (exhausted) return exhausted;
      } catch (error) {
        speech.dropAll("interrupted", "the message was given up");
        if (compacted || signal.aborted || failureOf(error).code !== "context_overflow") throw error;
        compacted = true;
        if (!(await continuity.shorten(services, run, { step: next.step, activeSpaceId, signal }))) throw error;
      }
    }
  } finally {
    speech?.dropAll("interrupted", "the message was given up");
  }
};

const speechFor = ({ services, run, channels }: LiveRun, activeSpaceId: string | null): Speech =>
  new Speech(
    activeSpaceId === null ? null : () => channels.to(activeSpaceId),
    () => services.ids.mint("str"),
    (toolName) => {
      const tool = findTool(toolName, kindOf(services, run));
      return tool && { ...tool, shows: tool.config !== undefined && handlingOf(tool.config, continuityOf(run)).shows };
    },
  );

/** The run goes on from its journal at `resumeAt`. */
const pause = async (
  { services, run, channels }: LiveRun,
  error: Failure,
  resumeAt: number,
  faults: Partial<Pick<RunRow, "faults" | "firstFaultAt">> = {},
): Promise<RunLoopEnd> => {
  services.transaction(() => {
    services.runs.update(run.ordinal, { ...faults, resumeAt, ...endThinking(services, run) });
    services.identity.noteError(error);
  });
  log.warn("run.paused", { ...loggedRun(services, run), code: error.code, resumeAt });
  await channels.end(error.code);
  return { kind: "paused", resumeAt };
};

/**
 * Decides what an error means for the run. A retryable one pauses it. A terminal one pauses it too if the run may have
 * acted and its events have attempts left, since such a run is not begun anew. Any other ends it.
 */
const failed = async (live: LiveRun, thrown: unknown): Promise<RunLoopEnd> => {
  const { services, run } = live;
  const { code, message, terminal, retryAfterMs } = failureOf(thrown);
  const error: Failure = { code, message };
  if (code === "internal") log.error("run.failed", thrown, loggedRun(services, run));
  const now = services.clock.now();
  const firstFaultAt = run.firstFaultAt ?? now;
  const faults = { faults: run.faults + 1, firstFaultAt };
  if (!terminal && now - firstFaultAt < maxBackoffTotalMs) {
    const pauses = { firstMs: faultBackoffMs, longestMs: longestFaultBackoffMs };
    return pause(live, error, now + backoff(run.faults, pauses, retryAfterMs), faults);
  }
  if (terminal && mayHaveActed(services, run)) {
    const attempts = services.inbox.recordAttempt(run.events, error);
    if (attempts < maxAttempts) return pause(live, error, now + pauseAfter(attempts), faults);
  }
  return conclude(live, { kind: "failed", error, events: "failed" });
};

/** Ends the run. One that may have acted is never begun anew: it pauses until the budget's reset, or waits for a person. */
const conclude = async (live: LiveRun, ending: Ending): Promise<RunLoopEnd> => {
  const { services, run } = live;
  const isAnew = ending.kind === "failed" && ending.events !== "acknowledged";
  if (!isAnew || !mayHaveActed(services, run)) return end(live, ending);
  if (ending.events === "requeued") return pause(live, ending.error, services.ledger.resetsAt());
  return end(live, { ...ending, events: "dead" });
};

const internal: ModelFailure = { code: "internal", message: "Something went wrong here.", terminal: true };

/** Only an error that the model's call threw is the model's. An unforeseen one is our own, and retrying does not help. */
const failureOf = (error: unknown): ModelFailure => {
  if (error instanceof ModelError) return error.failure;
  if (!(error instanceof ColloquyError)) return internal;
  return { code: error.code, message: error.message, terminal: !error.retryable };
};

const end = async ({ services, run, channels }: LiveRun, ending: Ending): Promise<RunLoopEnd> => {
  await faultOnceStored("agent.before-commit", services.object);
  const ended = finish(services, run, ending);
  await faultOnceStored("agent.after-commit", services.object);
  const event = ending.kind === "failed" ? "run.failed" : ending.kind === "canceled" ? "run.canceled" : "run.completed";
  channels.tellRun({
    event,
    ...(ended.outcome === null ? {} : { outcome: ended.outcome }),
    ...(ended.reason === null ? {} : { reason: ended.reason }),
    ...(ended.error === null ? {} : { error: ended.error }),
  });
  for (const { spaceId, frame } of readFramesOf(services, ended)) channels.tellRead(spaceId, frame);
  const unheard = await channels.end();
  const receipts = (ended.receipts ?? []).filter(({ spaceId }) => unheard.includes(spaceId));
  await tellReceipts(services, { ...ended, receipts });
  return { kind: "ended", run: ended };
};
