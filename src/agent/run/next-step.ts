import * as z from "zod";
import type { AgentConfig } from "../../protocol/agent.ts";
import type { CallRequest } from "../../protocol/exported-history.ts";
import type { ToolRule } from "../../protocol/tool.ts";
import type { ErrorCode } from "../../shared/errors.ts";
import { maxInvalidSteps } from "../bounds.ts";
import { ruleLine } from "../context/instructions.ts";
import { factsOf } from "../tools/registry.ts";
import { endsLoop, goesOn, missingBeforeExit, type PastCall } from "../tools/rules.ts";
import type { Ending } from "./finish.ts";
import { invalidStepsInARow, invocationOf, type RunCall, type RunRows, type StepRow, tokensAdded } from "./run-rows.ts";

/**
 * The next thing to do for a run, from its rows alone: for the run itself and for a replay after a crash (R3).
 *
 * Invariants
 * 1. A finished step is not generated again; a call with a result is not executed again.
 * 2. Tool rules end a run, or let it go on, only between two steps. Every call of a step has its result by then.
 * 3. The first exit without a required call is answered by a reminder. The next one ends the run.
 */
export type Next =
  | { kind: "generate"; step: number }
  | { kind: "execute"; step: number; call: CallRequest; begunAt: number | undefined }
  /** All unfinished calls of the step wait for people or servers. */
  | { kind: "await" }
  /** The step asked for answers; when they are there, the run goes on with this step in a fresh invocation. */
  | { kind: "wait"; step: number }
  /** Answer the exit with this reminder, as part of this step. */
  | { kind: "remind"; step: number; text: string }
  | { kind: "end"; ending: Ending };

/** Facts beside the rows that decide. `isAwaited`: whether somebody outside has a call that was begun. */
export type Deciding = {
  isAwaited: (callId: string) => boolean;
  rules: ToolRule[];
  waitsForAnswers: boolean;
  limits: Pick<AgentConfig["limits"], "maxSteps" | "maxTokensPerRun">;
};

const done: Next = { kind: "end", ending: { kind: "completed" } };

export const overLimit = (code: ErrorCode, message: string): Ending => ({
  kind: "failed",
  error: { code, message },
  events: "acknowledged",
});

/** Those that have begun or were refused. */
export const pastCalls = (calls: RunCall[]): PastCall[] =>
  calls.flatMap(({ call: { toolName }, begunAt, result }): PastCall[] => {
    if (!result) return begunAt === undefined ? [] : [{ toolName, state: "open" }];
    const { refused, error } = result.meta;
    const isRefused = refused || (error && begunAt === undefined);
    return [{ toolName, state: isRefused ? "refused" : error ? "failed" : "succeeded" }];
  });

/** A model may halve a character; spaces and logs take whole ones. */
const WithReason = z.object({ reason: z.string().overwrite((text) => text.toWellFormed()) });

/** A call that ends its own run does so only as the first step's only call. */
const skipOf = ({ step, meta }: StepRow): Next | undefined => {
  const [only, ...others] = meta.calls;
  if (!only || only.invalid || others.length > 0 || step > 0 || factsOf(only.toolName).endsRun !== "own") return;
  return { kind: "end", ending: { kind: "skipped", reason: WithReason.safeParse(only.input).data?.reason } };
};

/** Generates the step, unless the run is over one of its limits. */
const generate = (view: RunRows, step: number, { maxSteps, maxTokensPerRun }: Deciding["limits"]): Next => {
  const end = (ending: Ending): Next => ({ kind: "end", ending });
  if (step >= maxSteps) return end(overLimit("step_limit", `the run made maxSteps (${maxSteps}) steps`));
  if (tokensAdded(view) > maxTokensPerRun) {
    return end(overLimit("token_limit", `the run added more than maxTokensPerRun (${maxTokensPerRun}) tokens`));
  }
  if (invalidStepsInARow(view) < maxInvalidSteps) return { kind: "generate", step };
  const message = `the model made ${maxInvalidSteps} steps in a row in which no call was valid (maxInvalidSteps)`;
  return end({ kind: "failed", error: { code: "model_nonsense", message }, events: "failed" });
};

const sentence = (rules: ToolRule[]): string => rules.map((rule) => `${ruleLine(rule)}.`).join(" ");

/** The run's next action if it would otherwise end. */
const exit = ({ all, calls }: RunRows, rules: ToolRule[], step: number): Next => {
  const missing = missingBeforeExit(rules, pastCalls(calls));
  if (missing.length === 0) return done;
  if (all.some(({ meta }) => meta?.kind === "reminder")) {
    const message = `the run ended against its rules, though it was reminded: ${sentence(missing)}`;
    return { kind: "end", ending: overLimit("tool_rule_broken", message) };
  }
  return { kind: "remind", step, text: `REMINDER: ${sentence(missing)} Do that now; the run cannot end before.` };
};

export const nextOf = (view: RunRows, { isAwaited, rules, waitsForAnswers, limits }: Deciding): Next => {
  const invocation = invocationOf(view.all);
  const last = view.steps.at(-1);
  const next = (step: number): Next => generate(view, step, limits);
  if (!last || !invocation.some(({ seq }) => seq === last.seq)) return next(invocation[0]?.step ?? 0);
  const skip = skipOf(last);
  if (skip) return skip;
  const calls = view.calls.filter(({ step }) => step === last.step);
  const unfinished = calls.filter(({ result }) => !result);
  const due = unfinished.find(({ call, begunAt }) => begunAt === undefined || !isAwaited(call.callId));
  if (due) return { kind: "execute", step: last.step, call: due.call, begunAt: due.begunAt };
  if (unfinished.length > 0) return { kind: "await" };
  const step = last.step + 1;
  if (view.all.slice(view.all.indexOf(last)).some(({ meta }) => meta?.kind === "reminder")) return next(step);
  const past = pastCalls(calls);
  if (calls.length === 0 || endsLoop(rules, past)) return exit(view, rules, step);
  if (!calls.some(({ result }) => result?.meta.waits)) return next(step);
  if (waitsForAnswers) return { kind: "wait", step };
  // A run that does not wait for answers ends where it asked for them: they come as events of later runs.
  return goesOn(rules, past) ? next(step) : exit(view, rules, step);
};
