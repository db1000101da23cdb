import { failureOfFinish, modelError } from "../../models/failure.ts";
import type { AssistantMeta, MadeOf } from "../../protocol/exported-history.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { faultOnceStored, storedBeforeRequest } from "../../shared/fault.ts";
import { settledWithin, unlessAborted } from "../../shared/timeouts.ts";
import { tokensAgainMs } from "../bounds.ts";
import { compose } from "../context/compose.ts";
import type { Composed } from "../context/sections.ts";
import { everybody } from "../inbox/out-of-budget.ts";
import { isMessage, type JournalRow, messagesOf } from "../journal.ts";
import { estimateMessages, estimateText } from "../tokens.ts";
import type { TracedStep } from "../tracing/tracer.ts";
import { composingOf, partsIn, windowOf } from "./composing.ts";
import { compactForRun } from "./continuity/consciousness.ts";
import { continuityOf } from "./continuity/continuities.ts";
import type { Ending } from "./finish.ts";
import { assistantContent, type Generation } from "./generate.ts";
import { invocationOf } from "./run-rows.ts";
import type { LiveRun } from "./run-services.ts";
import type { Speech } from "./speech.ts";
import type { Thinker } from "./thinker.ts";

/** `payers`: who pays for its steps, the first who may. */
export type StepInput = LiveRun & { thinker: Thinker; payers: (string | null)[] };

const inputOf = ({ services, run, thinker }: StepInput, all: JournalRow[]) => {
  const { config, limits, correction: known, model: present } = composingOf(services);
  const window = windowOf(services, run);
  const past = continuityOf(run).past(services, window, run);
  const rows = invocationOf(all);
  const correction = present.modelId === thinker.modelId ? known : 1;
  const composed = compose({
    ...partsIn(services, window),
    correction,
    // The input of a timeline lies in the journal by now: from here on both have a past and the run's own messages.
    continuity: "consciousness",
    window,
    withheld: rows.flatMap(({ meta }) => (meta?.kind === "inbox" || meta?.kind === "told" ? (meta.dropped ?? []) : [])),
    past,
    own: rows
      .filter(isMessage)
      .map(({ content, meta }) => ({ message: content, section: meta?.kind === "told" ? meta.section : undefined })),
  });
  const made = { ...madeOf(composed, rows), tokens: composed.tokens, limits };
  const maxOutputTokens = config.model.maxOutputTokens ?? limits.reservedResponseTokens;
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

/** The message says so where one step may cost more than a day's tokens, or a share: no reset helps then. */
const overBudget = (bound: string, most: number, cost: number, events: "requeued" | "held"): Ending => {
  const remedy =
    cost > most ? `it may cost ${cost} tokens: raise the limit` : "it goes on after the reset at 00:00 UTC";
  return {
    kind: "failed",
    error: { code: "budget_exhausted", message: `${bound} does not allow this step; ${remedy}` },
    events,
  };
};

/** Who pays, or what the run waits for: tokens of this person, or of everybody. */
type Reserved = { payer: string | null } | { ending: Ending } | { waitsFor: string };

/**
 * Reserves a step's tokens for the first of its run's payers who may still pay. Answers them; where nobody may, the run's
 * ending. Who may not is out of budget from now on, but for what steps under way have booked.
 */
const tryReserve = async (
  { services, run, payers, signal }: StepInput,
  name: string,
  cost: number,
): Promise<Reserved> => {
  const { budget: tokens, ledger, inbox } = services;
  const { maxTokensPerDay: day, maxShareOfPerson } = services.identity.get().config.limits;
  const share = Math.floor(day * maxShareOfPerson);
  const events = services.runs.at(run.ordinal)?.events ?? run.events;
  const spend = (person: string, budget?: "workspace"): void =>
    services.transaction(() => inbox.spend(person, ledger.resetsAt(), events, budget));
  let waitsFor: string | undefined;
  for (const person of payers) {
    const booked = await tokens.reserve(name, cost, person, signal, run.trigger.spaceId);
    if (booked === "reserved") return { payer: person };
    if (booked === "day_booked") return { waitsFor: everybody };
    if (booked === "workspace") {
      spend(everybody, "workspace");
      const bound = "the workspace's day of tokens (maxTokensPerDay, set by the operator)";
      return { ending: overBudget(bound, Number.POSITIVE_INFINITY, cost, "requeued") };
    }
    if (booked === "share_booked") {
      waitsFor ??= person ?? everybody;
      continue;
    }
    if (booked === "share" && person !== null) {
      spend(person);
      continue;
    }
    spend(everybody);
    return { ending: overBudget(`maxTokensPerDay (${day})`, day, cost, "requeued") };
  }
  if (waitsFor !== undefined) return { waitsFor };
  return { ending: overBudget(`maxShareOfPerson (${maxShareOfPerson} of ${day} tokens)`, share, cost, "held") };
};

/** Reserves them, once steps under way leave room. The agent's own tell when they are settled; others' are asked for again. */
const reserve = async (
  input: StepInput,
  name: string,
  cost: number,
): Promise<Exclude<Reserved, { waitsFor: string }>> => {
  for (;;) {
    await input.place();
    const settlement = input.services.ledger.settlement();
    const reserved = await tryReserve(input, name, cost);
    if (!("waitsFor" in reserved)) {
      input.waitsFor(undefined);
      return reserved;
    }
    input.waitsFor(reserved.waitsFor);
    await unlessAborted(input.signal, settledWithin(tokensAgainMs, settlement));
    input.progressed();
  }
};

/** Generates one step and journals it. Answers the run's ending if the budget does not allow the step. */
export const step = async (input: StepInput, index: number, speech: Speech): Promise<Ending | null> => {
  const { services, run, thinker, signal } = input;
  const rows = services.journal.ofRun(run);
  const first = inputOf(input, rows);
  // Cycles that do not fit are summarised, not left out.
  const compacted = first.composed.firstCycle > 0 && compactForRun(services, run, index);
  const { composed, past, made, maxOutputTokens } = compacted ? inputOf(input, services.journal.ofRun(run)) : first;

  const cost = composed.tokens + maxOutputTokens;
  const name = `${run.ordinal}:${index}`;
  /** The run's ending if the budget does not allow it. `trace` sends its span; `error`: why it is not kept. */
  const once = async (): Promise<{ came: Generation; trace: (error?: string) => void } | { ending: Ending }> => {
    const reserved = await reserve(input, name, cost);
    if ("ending" in reserved) return reserved;
    const settle = (billed: number, inMemory?: boolean): void =>
      services.budget.settle(name, billed, inMemory, reserved.payer ?? undefined);
    await storedBeforeRequest(services.object);
    const startedAt = services.clock.now();
    const trace = (of: Pick<TracedStep, "came" | "error">): void =>
      services.tracer.step(run, { index, startedAt, maxOutputTokens, composed, ...of });
    try {
      const came = await thinker.generate({ index, composed, maxOutputTokens, speech });
      settle(came.usage.inputTokens + came.usage.outputTokens, true);
      return { came, trace: (error) => trace({ came, error }) };
    } catch (cause) {
      const error = modelError(cause);
      trace({ error: error.code });
      // A call that was left without an answer may have been billed whole.
      if (thinker.isUnbilled(cause)) settle(0);
      else settle(cost, true);
      throw error;
    }
  };
  let generated = await once();
  const isAsked = index === 0 && thinker.repeatsSilence;
  // Both are billed.
  if (isAsked && "came" in generated && generated.came.text.trim() === "" && generated.came.calls.length === 0) {
    generated.trace("empty_answer");
    speech.giveUp();
    generated = await once();
  }
  if ("ending" in generated) return generated.ending;
  const { came: generation, trace } = generated;
  const refused = generation.calls.length === 0 ? failureOfFinish(generation.finishReason) : undefined;
  trace(signal.aborted ? "run_canceled" : refused?.code);
  signal.throwIfAborted();
  speech.giveUp(generation.calls.map((each) => each.index));
  if (refused) throw new ColloquyError(refused.code, refused.message);
  const meta: AssistantMeta = {
    kind: "assistant",
    ...generation,
    estimatedInput: estimateText(composed.instructions) + estimateMessages(composed.messages),
    firstCycle: past[composed.firstCycle]?.ordinal ?? run.ordinal,
    windowId: run.windowId,
    modelId: thinker.modelId,
    input: made,
  };
  const content = { role: "assistant", content: assistantContent(generation) } as const;
  services.transaction(() => {
    services.journal.append({ runOrdinal: run.ordinal, step: index, kind: "assistant", content, meta });
    if (run.faults > 0) {
      run.faults = 0;
      run.firstFaultAt = null;
      services.runs.update(run.ordinal, { faults: 0, firstFaultAt: null, resumeAt: null });
    }
  });
  await faultOnceStored("agent.after-journal", services.object);
  return null;
};
