import { askModel } from "../../models/ask-model.ts";
import { identifyModel } from "../../models/identify-model.ts";
import { type ContextLimits, defaultChunkSize, defaultMaxTokens } from "../../protocol/context-config.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { maxSummaryCharacters, maxSummaryTokens, summaryTimeoutMs } from "../bounds.ts";
import { inputBudget } from "../context/limits.ts";
import { type FoldingLimits, fittedSummary, type SummaryQuestion, summaryPrompt } from "../context/summary.ts";
import { composingOf } from "../run/composing.ts";
import type { RunServices } from "../run/run-services.ts";
import type { SummaryRow } from "../run/summaries.ts";

const summaryShare = 0.25;
const wordsPerToken = 0.7;
/** The chunk's share of the summariser's window. The earlier summary, the rules and the answer need the rest. */
const chunkShare = 0.5;

/** The estimated tokens that a summary may fill in this agent's inputs. */
const summaryTokens = ({ limits }: { limits: ContextLimits }): number =>
  Math.min(maxSummaryTokens, Math.floor(inputBudget({ limits, correction: 1 }) * summaryShare));

/**
 * The limits of one question, by the config and the model's window. They are halved for each time that the model refused
 * it as too long.
 */
export const foldingLimits = (services: RunServices, { failures, lastError }: SummaryRow): FoldingLimits => {
  const { config, limits } = composingOf(services);
  const { model = config.model, chunkSize = defaultChunkSize } = config.context.compaction;
  const { window } = identifyModel(model, services.env);
  const most = Math.min(window ?? defaultMaxTokens, limits.maxTokens);
  const tooLong = lastError?.code === "context_overflow" ? failures : 0;
  return { chunkSize, maxTokens: Math.floor(((most - 2 * summaryTokens({ limits })) * chunkShare) / 2 ** tooLong) };
};

/**
 * Has the agent's summary model, or its own, write the next summary. The agent's ledger pays (B2). Throws the model's
 * error, `budget_exhausted`, or `model_nonsense` for an empty answer.
 */
export const askSummary = async (
  services: RunServices,
  question: Omit<SummaryQuestion, "agent" | "words">,
  signal: AbortSignal,
): Promise<string> => {
  const { config, limits } = composingOf(services);
  const { maxTokensPerDay } = config.limits;
  const tokens = summaryTokens({ limits });
  const text = await askModel({
    env: services.env,
    openSecret: (name) => services.identity.openSecret(name),
    config: config.context.compaction.model ?? config.model,
    prompt: summaryPrompt({ ...question, agent: config.name, words: Math.floor(tokens * wordsPerToken) }),
    maxOutputTokens: tokens * 2,
    maxCharacters: { name: "maxSummaryCharacters", characters: maxSummaryCharacters },
    signal: AbortSignal.any([signal, AbortSignal.timeout(summaryTimeoutMs)]),
    reserve: (cost) => {
      const step = `summary:${services.clock.now()}`;
      if (!services.ledger.reserve(step, cost, maxTokensPerDay)) {
        throw new ColloquyError("budget_exhausted", `maxTokensPerDay (${maxTokensPerDay}) does not allow a summary`);
      }
      return (billed) => services.ledger.settle(step, billed);
    },
  });
  const summary = fittedSummary(text, tokens);
  if (summary === "") throw new ColloquyError("model_nonsense", "the model wrote an empty summary");
  return summary;
};
