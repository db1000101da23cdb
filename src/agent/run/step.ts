import { classifyFailure, failureOfFinish, isRefusal, type ModelFailure } from "../../models/failure.ts";
import { identifyModel } from "../../models/identify-model.ts";
import type { ResolvedModel } from "../../models/models.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { fault, faultOnceStored, storedBeforeRequest } from "../../shared/fault.ts";
import { compose } from "../context/compose.ts";
import { limitsOf } from "../context/limits.ts";
import type { Composed } from "../context/sections.ts";
import { estimateMessages, estimateText } from "../context/tokens.ts";
import { type JournalRow, messagesOf } from "../journal.ts";
import type { AssistantMeta, MadeOf } from "../records.ts";
import type { RunRow } from "../runs.ts";
import { lastBilled, stepName } from "./billing.ts";
import { composingOf, partsFor } from "./composing.ts";
import { compactForRun } from "./continuity/compact.ts";
import { continuityOf } from "./continuity/continuities.ts";
import { tellingsIn } from "./continuity/peer-updates.ts";
import type { Ending } from "./finish.ts";
import { assistantContent, generate } from "./generate.ts";
import { invocationOf } from "./progress.ts";
import type { RunServices } from "./run-services.ts";
import type { Speech } from "./speech.ts";
import type { OrdinalCycle } from "./windows.ts";

/** A failure of the model's call. Any other error of a run is not the model's fault. */
export class ModelError extends Error {
  readonly failure: ModelFailure;

  constructor(cause: unknown) {
    const failure = classifyFailure(cause);
    super(failure.message, { cause });
    this.failure = failure;
  }
}

/** The run that a step belongs to. */
export type StepInput = {
  services: RunServices;
  run: RunRow;
  model: ResolvedModel;
  signal: AbortSignal;
  /** Called with every sign of life. */
  progressed: () => void;
};

type Input = { composed: Composed; past: OrdinalCycle[]; made: AssistantMeta["input"]; maxOutputTokens: number };

const inputOf = ({ services, run, model }: StepInput, all: JournalRow[]): Input => {
  const composing = composingOf(services);
  const { config, correction: known, model: present } = composing;
  const window = services.windows.window(run.windowId);
  if (!window) throw new Error(`run ${run.id} has no window`);
  const past = continuityOf(run).past(services, window, run);
  const rows = invocationOf(all);
  const { told } = run;
  const correction = present.modelId === model.modelId ? known : 1;
  const composed = compose({
    ...partsFor(services, run, { ...composing, correction }),
    continuity: "consciousness",
    window,
    told,
    withheld: rows.flatMap(({ meta }) => (meta?.kind === "inbox" || meta?.kind === "told" ? (meta.dropped ?? []) : [])),
    past,
    own: messagesOf(rows),
    tellings: tellingsIn(rows),
  });
  const made = { ...madeOf(composed, rows), tokens: composed.tokens, limits: limitsOf(config) };
  const maxOutputTokens = config.model.maxOutputTokens ?? config.context.reservedResponseTokens;
  return { composed, past, made, maxOutputTokens };
};

/** The sections of the step's input. A timeline's input was composed before its first step, and has grown since. */
const madeOf = ({ sections, dropped }: Composed, rows: JournalRow[]): MadeOf => {
  const [first] = rows;
  const own = sections.map(({ name, tokens }) => ({ name, tokens }));
  if (first?.meta?.kind !== "inbox" || !first.meta.made) return { sections: own, dropped };
  const { made } = first.meta;
  const since = estimateMessages(messagesOf(rows.filter(({ kind }) => kind !== "inbox")));
  const grown = since === 0 ? [] : [{ name: "this_invocation", tokens: since }];
  return { sections: [...made.sections, ...grown], dropped: made.dropped };
};

/** A step that alone may cost more than a day's tokens cannot wait for the reset: the message says so. */
const overBudget = (maxTokensPerDay: number, cost: number): Ending => {
  const remedy =
    cost > maxTokensPerDay ? `it may cost ${cost} tokens: raise the limit` : "it goes on after the reset at 00:00 UTC";
  const message = `maxTokensPerDay (${maxTokensPerDay}) does not allow this step; ${remedy}`;
  return { kind: "failed", error: { code: "budget_exhausted", message }, events: "requeued" };
};

const tracedModel = ({ services, model }: StepInput) => ({
  provider: model.family,
  name: identifyModel(services.identity.get().config.model, services.env).name,
});

/** Generates one step and journals it. Answers the run's ending if the budget does not allow the step. */
export const step = async (input: StepInput, index: number, speech: Speech): Promise<Ending | null> => {
  const { services, run, model, signal, progressed } = input;
  const { id: agentId, config } = services.identity.get();
  const rows = services.journal.ofRun(run);
  const first = inputOf(input, rows);
  // Cycles that do not fit are summarised, not left out.
  const compacted = first.composed.firstCycle > 0 && compactForRun(services, run, index);
  const { composed, past, made, maxOutputTokens } = compacted ? inputOf(input, services.journal.ofRun(run)) : first;

  const cost = composed.tokens + maxOutputTokens;
  const name = stepName(run, index);
  const { maxTokensPerDay } = config.limits;
  const before = lastBilled(run, rows);
  if (!services.ledger.reserve(name, cost, maxTokensPerDay, before)) return overBudget(maxTokensPerDay, cost);
  const once = async () => {
    await storedBeforeRequest(services.object);
    const startedAt = services.clock.now();
    const traced = { index, startedAt, model: tracedModel(input), maxOutputTokens, composed };
    const generated = generate({
      model,
      composed,
      temperature: config.model.temperature,
      maxOutputTokens,
      speech,
      signal,
      clock: services.clock,
      callId: (call) => services.ids.deriveOwned("tc", agentId, run.id, index, call),
      progressed: () => {
        progressed();
        fault("agent.mid-stream", services.object);
      },
    });
    try {
      const came = await generated;
      services.tracer.step(run, { ...traced, came });
      return came;
    } catch (cause) {
      const error = new ModelError(cause);
      services.tracer.step(run, { ...traced, came: { error: error.failure.code } });
      throw error;
    }
  };
  let generation = await once().catch((error: unknown) => {
    if (error instanceof ModelError && isRefusal(error.cause)) services.ledger.release(name);
    throw error;
  });
  // An empty first answer gets one retry and is then silence (R4). Both are billed.
  if (index === 0 && generation.text.trim() === "" && generation.calls.length === 0) {
    speech.dropAll("interrupted", "the message was given up");
    const { inputTokens, outputTokens } = generation.usage;
    const billed = { step: name, tokens: inputTokens + outputTokens };
    if (!services.ledger.reserve(name, cost, maxTokensPerDay, billed)) return overBudget(maxTokensPerDay, cost);
    generation = await once();
  }
  signal.throwIfAborted();
  const called = generation.calls.map((each) => each.index);
  speech.dropExcept(called, "interrupted", "the message was given up");
  const refused = failureOfFinish(generation.finishReason);
  if (refused && generation.calls.length === 0) throw new ColloquyError(refused.code, refused.message);
  const estimatedInput = estimateText(composed.instructions) + estimateMessages(composed.messages);
  services.transaction(() => {
    services.journal.append({
      runOrdinal: run.ordinal,
      step: index,
      kind: "assistant",
      content: { role: "assistant", content: assistantContent(generation) },
      meta: {
        kind: "assistant",
        text: generation.text,
        calls: generation.calls,
        usage: generation.usage,
        estimatedInput,
        firstCycle: past[composed.firstCycle]?.ordinal ?? run.ordinal,
        windowId: run.windowId,
        modelId: model.modelId,
        input: made,
        durationMs: generation.durationMs,
        finishReason: generation.finishReason,
      },
    });
    if (run.faults > 0) {
      run.faults = 0;
      run.firstFaultAt = null;
      services.runs.update(run.ordinal, { faults: 0, firstFaultAt: null, resumeAt: null });
    }
  });
  await faultOnceStored("agent.after-journal", services.object);
  return null;
};
