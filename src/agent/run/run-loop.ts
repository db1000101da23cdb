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
import { continuityOf } from "./continuity/continuities.ts";
import { enforceToolRules } from "./enforce-tool-rules.ts";
import { execute } from "./execute.ts";
import { type Ending, finish, pauseAfter } from "./finish.ts";
import { kindOf, rulesOf } from "./kind.ts";
import { ModelError } from "./model-error.ts";
import { activeSpaceOf, invalidStepsInARow, progressOf, tokensAdded } from "./progress.ts";
import { readFramesOf, tellReceipts } from "./receipts.ts";
import type { RunServices } from "./run-services.ts";
import { mayHaveActed } from "./side-effects.ts";
import { Speech } from "./speech.ts";
import { type StepInput, step } from "./step.ts";
import { beginThinking, endThinking } from "./thinking-time.ts";

/**
 * One run, from its journal to its end: compose → stream a step → journal it → execute its calls → next step. The
 * only caller of `streamText`.
 *
 * Invariants
 * 1. What to do next follows from the journal alone, so a run that was cut anywhere goes on (R3).
 * 2. An aborted run generates nothing more and appends nothing more but what was under way (R5).
 * 3. A step starts only after its tokens were reserved (B2).
 */
export type ThinkEnd = { kind: "ended"; run: RunRow } | { kind: "paused"; resumeAt: number } | { kind: "waiting" };

/** The signal's reason where a run is taken from this think, to go on from its journal in another. */
export class Interrupted extends Error {}

type Thinking = StepInput & { channels: Channels };

export const think = async (
  services: RunServices,
  run: RunRow,
  signal: AbortSignal,
  progressed: () => void,
): Promise<ThinkEnd> => {
  const { id: agentId, workspaceId, config } = services.identity.get();
  const channels = new Channels(
    (spaceId) => services.env.SPACE.getByName(spaceId),
    { workspaceId, agentId, runId: run.id },
    run.spaceIds.filter((spaceId) => services.spaces.isMember(spaceId)),
  );
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
    const ending = await steps({
      services,
      run,
      signal: AbortSignal.any([signal, minutes.signal]),
      progressed,
      channels,
      model,
    });
    return typeof ending === "string"
      ? await wait(services, run, channels, ending)
      : await conclude(services, run, channels, ending);
  } catch (error) {
    if (signal.aborted && signal.reason instanceof Interrupted) {
      return await failed(services, run, channels, new ColloquyError("model_stalled", signal.reason.message));
    }
    if (signal.aborted) return await end(services, run, channels, { kind: "canceled" });
    if (minutes.signal.aborted) {
      const message = `the run thought for longer than maxRunMinutes (${config.limits.maxRunMinutes})`;
      return end(services, run, channels, overLimit("time_limit", message));
    }
    return await failed(services, run, channels, error);
  } finally {
    clearTimeout(deadline);
    services.tracer.flush();
  }
};

type Rest = "waiting_reply" | "waiting_tool";

/** The run rests until somebody answers or the time is up; it holds nothing in memory. */
const wait = async (services: RunServices, run: RunRow, channels: Channels, rest: Rest): Promise<ThinkEnd> => {
  // Another run may have ended it a moment ago.
  if (services.runs.at(run.ordinal)?.status !== "running") return end(services, run, channels, { kind: "canceled" });
  services.transaction(() => {
    // It may rest for long, and what it reserved is lent to nobody meanwhile.
    services.ledger.settle(String(run.ordinal), lastBilled(run, services.journal.ofRun(run)));
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

/** A run over one of its limits, or null. */
const limitReached = ({ services }: Thinking, rows: JournalRow[], step: number): Ending | null => {
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

const steps = async (thinking: Thinking): Promise<Ending | Rest> => {
  const { services, run, signal, progressed } = thinking;
  const continuity = continuityOf(run);
  let speech: Speech | undefined;
  let compacted = false;
  try {
    for (;;) {
      signal.throwIfAborted();
      let rows = services.journal.ofRun(run);
      if (rows.length === 0) {
        await continuity.compose(services, run, 0, null, signal);
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
        remind(services, run, next.step, next.text);
        continue;
      }
      if (next.kind === "skip") return { kind: "skipped", reason: next.reason };
      // The answers come as ordinary events.
      if (next.kind === "wait" && !continuity.waitsForAnswers) return { kind: "completed" };
      const lastSpaceId = activeSpaceOf(run.activeSpaceId, rows);
      const activeSpaceId = memberSpace(services, lastSpaceId);
      if (next.kind === "wait") {
        if (services.waits.isWaiting(run.ordinal)) return "waiting_reply";
        await continuity.compose(services, run, next.next, activeSpaceId, signal);
        continue;
      }
      if (next.kind === "execute") {
        // What was begun in a space was done there, whether or not the agent has left it since.
        const where = { activeSpaceId: next.started ? lastSpaceId : activeSpaceId };
        const entered = await execute(services, { run, ...next, ...where, speech, signal, progressed });
        // Its members see that the agent is there.
        if (entered) thinking.channels.to(entered);
        continue;
      }
      const limit = limitReached(thinking, rows, next.step);
      if (limit) return limit;
      if (next.step > 0) continuity.beforeStep(services, run, next.step, rows);
      speech = speechFor(thinking, activeSpaceId);
      try {
        const exhausted = await step(thinking, next.step, speech);
        if (exhausted) return exhausted;
      } catch (error) {
        speech.dropAll("interrupted", "the message was given up");
        if (compacted || signal.aborted || failureOf(error).code !== "context_overflow") throw error;
        compacted = true;
        if (!(await continuity.shorten(services, run, next.step, activeSpaceId, signal))) throw error;
      }
    }
  } finally {
    speech?.dropAll("interrupted", "the message was given up");
  }
};

/** The active space, unless the agent is no member of it any more. */
const memberSpace = (services: RunServices, spaceId: string | null): string | null =>
  spaceId !== null && services.spaces.isMember(spaceId) ? spaceId : null;

const speechFor = ({ services, run, channels }: Thinking, activeSpaceId: string | null): Speech =>
  new Speech(
    activeSpaceId === null ? null : () => channels.to(activeSpaceId),
    () => services.ids.mint("str"),
    (toolName) => {
      const tool = findTool(toolName, kindOf(services, run));
      return tool && { ...tool, shows: tool.config !== undefined && handlingOf(tool.config, continuityOf(run)).shows };
    },
  );

const remind = (services: RunServices, run: RunRow, step: number, text: string): void =>
  void services.journal.append({
    runOrdinal: run.ordinal,
    step,
    kind: "preview",
    content: { role: "user", content: text },
    meta: { kind: "reminder" },
  });

/** It goes on from its journal at `resumeAt`. */
const pause = async (
  services: RunServices,
  run: RunRow,
  channels: Channels,
  error: Failure,
  resumeAt: number,
  faults: Partial<Pick<RunRow, "faults" | "firstFaultAt">> = {},
): Promise<ThinkEnd> => {
  services.transaction(() => {
    services.runs.update(run.ordinal, { ...faults, resumeAt, ...endThinking(services, run) });
    services.identity.noteError(error);
  });
  log.warn("run.paused", { ...loggedRun(services, run), code: error.code, resumeAt });
  await channels.end(error.code);
  return { kind: "paused", resumeAt };
};

/**
 * A failure pauses the run, which goes on from its journal, if it is a passing fault, of the model or of what we asked,
 * or if the run may have acted: that one is tried as often as others are begun anew. Any other fails it.
 */
const failed = async (services: RunServices, run: RunRow, channels: Channels, thrown: unknown): Promise<ThinkEnd> => {
  const { code, message, terminal, retryAfterMs } = failureOf(thrown);
  const error: Failure = { code, message };
  if (code === "internal") log.error("run.failed", thrown, loggedRun(services, run));
  const now = services.clock.now();
  const firstFaultAt = run.firstFaultAt ?? now;
  const faults = { faults: run.faults + 1, firstFaultAt };
  if (!terminal && now - firstFaultAt < maxBackoffTotalMs) {
    const pauses = { firstMs: faultBackoffMs, longestMs: longestFaultBackoffMs };
    return pause(services, run, channels, error, now + backoff(run.faults, pauses, retryAfterMs), faults);
  }
  if (terminal && mayHaveActed(services, run)) {
    const attempts = services.inbox.recordAttempt(run.events, error);
    if (attempts < maxAttempts) return pause(services, run, channels, error, now + pauseAfter(attempts), faults);
  }
  return conclude(services, run, channels, { kind: "failed", error, events: "failed" });
};

/** Ends the run; but what may have acted waits for the budget where it is, and is never begun anew by itself. */
const conclude = async (services: RunServices, run: RunRow, channels: Channels, ending: Ending): Promise<ThinkEnd> => {
  const isAnew = ending.kind === "failed" && ending.events !== "acknowledged";
  if (!isAnew || !mayHaveActed(services, run)) return end(services, run, channels, ending);
  if (ending.events === "given_back") return pause(services, run, channels, ending.error, services.ledger.resetsAt());
  return end(services, run, channels, { ...ending, events: "dead" });
};

const internal: ModelFailure = { code: "internal", message: "Something went wrong here.", terminal: true };

/** Only what the model's call threw is the model's; what nobody foresaw is our own, and waiting does not mend it. */
const failureOf = (error: unknown): ModelFailure => {
  if (error instanceof ModelError) return error.failure;
  if (!(error instanceof ColloquyError)) return internal;
  return { code: error.code, message: error.message, terminal: !error.retryable };
};

const end = async (services: RunServices, run: RunRow, channels: Channels, ending: Ending): Promise<ThinkEnd> => {
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
