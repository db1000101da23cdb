import type { AgentConfig } from "../../protocol/agent.ts";
import {
  type ContextConfig,
  ContextLimits,
  defaultLimits,
  defaultMaxTokens,
  type ModelLimits,
} from "../../protocol/context-config.ts";
import type { ComposedConfig } from "./agent-state.ts";

/** A model's name, and the tokens that its window takes, null if unknown. */
export type SizedModel = { name: string; window: number | null };

type Override = { key: string; limits: ModelLimits };

/** The entry of `byModel` for a model: the one that names it, else the longest beginning of its name. */
const overrideFor = (name: string, byModel: Record<string, ModelLimits> = {}): Override | undefined => {
  const fits = Object.entries(byModel)
    .map(([key, limits]) => ({ key, limits }))
    .filter(({ key }) => key === name || (key.endsWith("*") && name.startsWith(key.slice(0, -1))));
  return fits.find(({ key }) => key === name) ?? fits.toSorted((a, b) => b.key.length - a.key.length)[0];
};

/**
 * The limits of an agent's inputs: from its config for this model, otherwise from the model. A known window is never
 * exceeded, unless `byModel` names this very model: its owner knows better. `notes` says what differs from the config.
 */
export const resolveLimits = (
  context: ContextConfig,
  model: SizedModel,
  maxOutputTokens: number | undefined,
): ContextLimits => {
  const override = overrideFor(model.name, context.byModel);
  const given: ModelLimits = { ...context, ...override?.limits };
  const notes: string[] = [];
  const atMost = (name: keyof ModelLimits, wanted: number, most: number, why: string): number => {
    if (wanted <= most) return wanted;
    if (given[name] !== undefined) notes.push(`${name}: ${most} instead of ${wanted}, since ${why}`);
    return most;
  };

  const window = model.window ?? Number.POSITIVE_INFINITY;
  let maxTokens = given.maxTokens ?? Math.min(defaultMaxTokens, window);
  if (override?.key === model.name && override.limits.maxTokens !== undefined) {
    if (maxTokens > window)
      notes.push(`maxTokens: ${maxTokens} as byModel says, though ${window} is known of the model`);
  } else maxTokens = atMost("maxTokens", maxTokens, window, "the model takes no more");

  const usual = defaultLimits(maxTokens);
  const asked = {
    reserved: given.reservedResponseTokens ?? Math.min(maxOutputTokens ?? usual.reservedResponseTokens, maxTokens / 2),
    memory: given.memoryTokens ?? usual.memoryTokens,
  };
  const fits = asked.reserved + asked.memory < maxTokens;
  const half = (tokens: number): number => (fits ? tokens : Math.floor(tokens / 2));
  const share = `maxTokens is ${maxTokens}`;
  const reservedResponseTokens = Math.floor(atMost("reservedResponseTokens", asked.reserved, half(maxTokens), share));
  const memoryTokens = atMost("memoryTokens", asked.memory, half(maxTokens - reservedResponseTokens), share);
  const room = maxTokens - reservedResponseTokens;
  const historyTokens = atMost("historyTokens", given.historyTokens ?? usual.historyTokens, room, share);
  return {
    model: model.name,
    ...(model.window === null ? {} : { window: model.window }),
    maxTokens,
    reservedResponseTokens,
    memoryTokens,
    historyTokens,
    notes,
  };
};

/** A config as it is composed with: its limits resolved for its model. */
export const composedConfig = (config: AgentConfig, model: SizedModel): ComposedConfig => {
  const { byModel: _, ...context } = config.context;
  return { ...config, context: { ...context, ...resolveLimits(config.context, model, config.model.maxOutputTokens) } };
};

/** The limits in a composed config. */
export const limitsOf = ({ context }: ComposedConfig): ContextLimits => ContextLimits.parse(context);
