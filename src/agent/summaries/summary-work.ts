import { askModel } from "../../models/ask-model.ts";
import { classifyFailure, withoutQuote } from "../../models/failure.ts";
import { identifyModel } from "../../models/identify-model.ts";
import { defaultChunkSize, defaultMaxTokens } from "../../protocol/context-config.ts";
import { backoff, type Pauses } from "../../shared/backoff.ts";
import { ColloquyError, unwrap } from "../../shared/errors.ts";
import { log } from "../../shared/log.ts";
import { unquoteLines } from "../../shared/quote.ts";
import type { Timers } from "../../timers/timers.ts";
import {
  maxSummaryBacklog,
  maxSummaryCharacters,
  maxSummaryTokens,
  summaryFirstRetryMs,
  summaryLongestRetryMs,
  summaryTimeoutMs,
  watchdogMs,
} from "../bounds.ts";
import { callWithRetry, spaceWindow } from "../call-with-retry.ts";
import { inputBudget } from "../context/limits.ts";
import {
  cycleText,
  type Foldable,
  fittedSummary,
  messageText,
  nextChunk,
  type SummaryQuestion,
  summaryPrompt,
} from "../context/summary.ts";
import { composingOf } from "../run/composing.ts";
import { beginFolded, foldedIn, leavingCycles } from "../run/continuity/consciousness.ts";
import { knownOrigin } from "../run/run-events.ts";
import type { RunServices } from "../run/run-services.ts";
import { ownCycles, type SummaryRow } from "../run/summaries.ts";
import { unasked } from "../tokens.ts";

/**
 * Has summaries written in the agent's own time, chunk after chunk.
 *
 * Invariants
 * 1. No run waits for it, and none is held up by its failures.
 * 2. While a summary is wanted the timer `summaries` is set. After a crash it goes on by itself, from the last chunk
 *    that was folded.
 * 3. One question is asked at a time.
 */
export const summariesTimer = "summaries";

const pauses: Pauses = { firstMs: summaryFirstRetryMs, longestMs: summaryLongestRetryMs };

const summaryShare = 0.25;
const wordsPerToken = 0.7;
/** The chunk's share of the summariser's window. The earlier summary, the rules and the answer need the rest. */
const chunkShare = 0.5;
const mostLooks = 3;

/** The items that a summary still has to take in, oldest first. The summary begins at `base`. */
type Folding = Pick<SummaryQuestion, "space" | "earlier"> & { items: Foldable[]; base: number };

/**
 * The cycles that leave the input, where they are not folded yet. Once all are, the next run begins a new window with the
 * summary in their place. They stay in the journal.
 */
const cyclesToFold = (services: RunServices): Folding | undefined => {
  const window = services.windows.newest("consciousness");
  const leaving = window ? leavingCycles(services, window) : [];
  const last = leaving.at(-1);
  if (!window || !last) return undefined;
  const folded = foldedIn(services, window);
  const left = leaving.filter(({ ordinal }) => ordinal > (folded?.upTo ?? 0));
  if (left.length === 0) {
    services.transaction(() => beginFolded(services, window, folded?.text ?? "", last.ordinal));
    return undefined;
  }
  return {
    earlier: folded?.text ?? (window.summary === null ? null : unquoteLines(window.summary)),
    items: left.map(({ ordinal, messages }) => ({ at: ordinal, text: cycleText(messages) })),
    base: window.firstRun,
  };
};

/** The next messages of a space, up to those that the history shows, oldest first. */
const messagesToFold = async (
  services: RunServices,
  { subject: spaceId, text: earlier, upTo, wanted, base }: SummaryRow,
  limit: number,
  signal: AbortSignal,
): Promise<Folding | undefined> => {
  // Older messages than `maxSummaryBacklog` are not summarised: read_messages reads them.
  const from = Math.max(upTo, wanted - maxSummaryBacklog);
  if (wanted - from < limit) return undefined;
  const agentId = services.identity.get().id;
  const look = async (limit: number, offset: number) =>
    unwrap(await callWithRetry(() => spaceWindow(services, spaceId, { limit, offset }), signal));
  let { total } = await look(1, 0);
  // The offset counts from the newest message, and more may come during the call.
  for (let looks = 0; looks < mostLooks; looks += 1) {
    const { messages, space, total: newTotal } = await look(limit, Math.max(0, total - from - limit));
    if (newTotal === total) {
      const items = messages.map((message, index) => {
        const text = messageText({ ...message, origin: knownOrigin(services, message) }, agentId);
        return { at: from + index + 1, text };
      });
      return { space: space.name, earlier, items, base: base + (from - upTo) };
    }
    total = newTotal;
  }
  throw new ColloquyError("unavailable", "the space is written in faster than it can be read");
};

/**
 * Has the agent's summary model, or its own, fold one more chunk. The agent's ledger pays (B2). Throws the model's error,
 * `budget_exhausted`, or `model_nonsense` for an empty answer.
 */
const foldNext = async (services: RunServices, row: SummaryRow, signal: AbortSignal): Promise<void> => {
  const { summaries, spaces, budget, clock, env, identity, redactions } = services;
  const { subject, failures, lastError } = row;
  const { config, limits } = composingOf(services);
  const { model = config.model, chunkSize = defaultChunkSize } = config.context.compaction;
  const isOfCycles = subject === ownCycles;
  const moves = redactions.moves();
  if (!isOfCycles && !spaces.isMember(subject)) return summaries.forget(subject);
  const folding = isOfCycles ? cyclesToFold(services) : await messagesToFold(services, row, chunkSize, signal);
  /** The estimated tokens that a summary may fill in this agent's inputs. */
  const tokens = Math.min(maxSummaryTokens, Math.floor(inputBudget({ limits, correction: 1 }) * summaryShare));
  const window = Math.min(identifyModel(model, env).window ?? defaultMaxTokens, limits.maxTokens);
  // Halved for each time that the model refused the question as too long.
  const tooLong = lastError?.code === "context_overflow" ? failures : 0;
  const chunkTokens = Math.floor(((window - 2 * tokens) * chunkShare) / 2 ** tooLong);
  const chunk = nextChunk(folding?.items ?? [], { chunkSize, maxTokens: chunkTokens });
  const end = chunk.at(-1);
  if (!folding || !end) return summaries.done(subject);
  const { space, earlier, base } = folding;
  const parts = chunk.map(({ text }) => text);
  const words = Math.floor(tokens * wordsPerToken);
  const answer = await askModel({
    env,
    unsealSecret: (name, use) => identity.unsealSecret(name, { ...use, kind: "summary" }),
    config: model,
    prompt: summaryPrompt({ space, earlier, parts, agent: config.name, words }),
    maxOutputTokens: tokens * 2,
    maxCharacters: { name: "maxSummaryCharacters", characters: maxSummaryCharacters },
    signal: AbortSignal.any([signal, AbortSignal.timeout(summaryTimeoutMs)]),
    reserve: async (cost) => {
      const step = `summary:${clock.now()}`;
      const { maxTokensPerDay, maxShareOfPerson } = config.limits;
      // One person alone may have said all in a space, and so pays one share. Runs that become cycles were paid for already.
      const booked = await budget.reserve(step, cost, isOfCycles ? null : unasked, signal);
      if (booked === "day_booked" || booked === "share_booked")
        throw new ColloquyError("unavailable", "steps under way have booked the tokens left");
      if (booked !== "reserved") {
        const share = isOfCycles ? "" : `, of which spaces' summaries have maxShareOfPerson (${maxShareOfPerson}),`;
        const message = `maxTokensPerDay (${maxTokensPerDay})${share} does not allow a summary`;
        throw new ColloquyError("budget_exhausted", message);
      }
      return (billed) => budget.settle(step, billed);
    },
  });
  const text = fittedSummary(answer, tokens);
  if (text === "") throw new ColloquyError("model_nonsense", "the model wrote an empty summary");
  // The summary may hold words that were edited or deleted meanwhile. It is made again a little later, since more may follow.
  if (redactions.moves() !== moves) summaries.update(subject, { tryAt: clock.now() + summaryFirstRetryMs });
  else summaries.folded(subject, { text, base, upTo: end.at });
};

export type SummaryWork = ReturnType<typeof createSummaryWork>;

/** `background` keeps the object alive for work. */
export const createSummaryWork = (
  services: RunServices,
  timers: Timers,
  background: (work: Promise<unknown>) => void,
) => {
  const { summaries, identity, ledger, clock } = services;
  const stopped = new AbortController();
  const { signal } = stopped;
  let isWorking = false;

  const tryFold = async (row: SummaryRow): Promise<void> => {
    const { config, id: agentId } = identity.get();
    const { subject, failures } = row;
    try {
      if (config.context.compaction.strategy !== "recursive_summarization") return summaries.done(subject);
      await foldNext(services, row, signal);
    } catch (error) {
      if (signal.aborted) return;
      const { code, message, retryAfterMs } = classifyFailure(error);
      const paused = clock.now() + backoff(failures, pauses, retryAfterMs);
      const tryAt = code === "budget_exhausted" ? ledger.resetsAt() : paused;
      // A provider may quote what was deleted since it was asked.
      const lastError = { code, message: withoutQuote(message) };
      summaries.update(subject, { failures: failures + 1, lastError, tryAt });
      log.warn("summary.failed", { agentId, subject, code });
    }
  };

  const work = async (): Promise<void> => {
    if (isWorking || signal.aborted || services.isSuspended()) return;
    isWorking = true;
    try {
      for (let row = summaries.next(); row; row = summaries.next()) {
        const { tryAt } = row;
        if (tryAt !== null && tryAt > clock.now()) return timers.set(summariesTimer, tryAt);
        await tryFold(row);
        if (signal.aborted || services.isSuspended()) return;
      }
      timers.clear(summariesTimer);
    } finally {
      isWorking = false;
    }
  };

  /** The timer `summaries` went off. */
  const fired = (): void => {
    timers.set(summariesTimer, clock.now() + watchdogMs);
    background(work());
  };

  return {
    fired,

    /** Call it in the transaction that wants the summary. The work begins after it. */
    want(subject: string, { from, upTo } = { from: 0, upTo: 0 }): void {
      summaries.want(subject, upTo, from);
      timers.setNoLater(summariesTimer, clock.now() + watchdogMs);
      background(Promise.resolve().then(work));
    },

    /** The config or a secret changed: failed summaries are tried again now. */
    reconsider(): void {
      summaries.reconsider();
      if (summaries.next()) fired();
    },

    /** The agent is being deleted. */
    stop: (): void => stopped.abort(),
  };
};
