import type { ContextConfig, ContextLimits, ModelLimits } from "../../protocol/context-config.ts";
import { defaultLimits, defaultMaxTokens } from "../../protocol/context-config.ts";

/** The entry of `byModel` for a model: the one that names it, else the longest beginning of its name. */
const overrideFor = (name: string, byModel: Record<string, ModelLimits> = {}): [key: string, ModelLimits] | [] =>
  Object.entries(byModel)
    .filter(([key]) => key === name || (key.endsWith("*") && name.startsWith(key.slice(0, -1))))
    .toSorted(([a], [b]) => Number(b === name) - Number(a === name) || b.length - a.length)[0] ?? [];

/**
 * The limits of an agent's inputs: from its config for this model, otherwise from the model. A known window is never
 * exceeded, unless `byModel` names this very model: its owner knows better. `notes` says what differs from the config.
 */
export const resolveLimits = (
  context: ContextConfig,
  /** `window`: the tokens that it takes, null if unknown. */
  model: { name: string; window: number | null },
  maxOutputTokens: number | undefined,
): ContextLimits => {
  const [overriding, override] = overrideFor(model.name, context.byModel);
  const given: ModelLimits = { ...context, ...override };
  const notes: string[] = [];
  const atMost = (name: keyof ModelLimits, wanted: number, most: number, why: string): number => {
    if (wanted <= most) return wanted;
    if (given[name] !== undefined) notes.push(`${name}: ${most} instead of ${wanted}, since ${why}`);
    return most;
  };

  const window = model.window ?? Number.POSITIVE_INFINITY;
  let maxTokens = given.maxTokens ?? Math.min(defaultMaxTokens, window);
  if (overriding === model.name && override?.maxTokens !== undefined) {
    if (maxTokens > window)
      notes.push(`maxTokens: ${maxTokens} as byModel says, though ${window} is known of the model`);
  } else maxTokens = atMost("maxTokens", maxTokens, window, "the model takes no more");

  const usual = defaultLimits(maxTokens);
  const ofAnswer = Math.min(maxOutputTokens ?? usual.reservedResponseTokens, maxTokens / 2);
  const { reservedResponseTokens: reserved = ofAnswer, memoryTokens: memory = usual.memoryTokens } = given;
  const fits = reserved + memory < maxTokens;
  const half = (tokens: number): number => (fits ? tokens : Math.floor(tokens / 2));
  const share = `maxTokens is ${maxTokens}`;
  const reservedResponseTokens = Math.floor(atMost("reservedResponseTokens", reserved, half(maxTokens), share));
  const memoryTokens = atMost("memoryTokens", memory, half(maxTokens - reservedResponseTokens), share);
  const room = maxTokens - reservedResponseTokens;
  const historyTokens = atMost("historyTokens", given.historyTokens ?? usual.historyTokens, room, share);
  return {
    model: model.name,
    ...(model.window === null ? {} : { window: model.window }),
    ...{ maxTokens, reservedResponseTokens, memoryTokens, historyTokens, notes },
  };
};

/** The estimated tokens that an input may fill, the answer left out. */
export const inputBudget = ({ limits, correction }: { limits: ContextLimits; correction: number }): number =>
  (limits.maxTokens - limits.reservedResponseTokens) / correction;

/** An input leaves this share of its budget to the results of the run's calls, up to `mostForCalls` tokens. */
const callsShare = 0.15;
const mostForCalls = 4000;

export const forCalls = (budget: number): number => Math.max(0, Math.min(mostForCalls, budget * callsShare));
