import * as z from "zod";
import { ModelConfig } from "./model-config.ts";
import { component } from "./text.ts";

/**
 * How older cycles are shortened. `self_summaries` keeps their own last words, `truncate` nothing;
 * `recursive_summarization` has a model summarize them, `chunkSize` at a time. A timeline uses the last one only: a
 * summary of the history before the part that it reads.
 */
export const Compaction = z
  .strictObject({
    strategy: z.enum(["self_summaries", "truncate", "recursive_summarization"]).default("self_summaries"),
    /** Cycles kept whole; `minRecentCycles` if left out. */
    keepRecent: z.int().min(1).max(1000).optional(),
    /** Cycles, or messages of a timeline, that the model reads at a time; `defaultChunkSize` if left out. */
    chunkSize: z.int().min(2).max(200).optional(),
    /** The model that writes the summaries; the agent's own if left out. */
    model: ModelConfig.optional(),
  })
  .refine(
    ({ strategy, chunkSize, model }) => strategy === "recursive_summarization" || (chunkSize ?? model) === undefined,
    {
      message: "chunkSize and model are of recursive_summarization alone",
    },
  );

export const defaultChunkSize = 20;

/** The limits of one input, in estimated tokens. What is left out follows from the model. */
export const ModelLimits = z.strictObject({
  /** The most that one input may hold, the answer included. */
  maxTokens: z.int().min(4000).max(2_000_000).optional(),
  /** Kept free for the answer. */
  reservedResponseTokens: z.int().min(256).max(200_000).optional(),
  /** The share of `maxTokens` that memories may fill. */
  memoryTokens: z.int().min(256).max(200_000).optional(),
  /** The share of `maxTokens` that the history of a space may fill in a timeline. */
  historyTokens: z.int().min(256).max(2_000_000).optional(),
});
export type ModelLimits = z.infer<typeof ModelLimits>;

/** Where neither the config nor the model sets a limit. */
export const defaultMaxTokens = 100_000;

/** The other limits where only `maxTokens` is known: shares of it, capped to keep the default bill small. */
export const defaultLimits = (maxTokens: number) => ({
  reservedResponseTokens: Math.min(4000, Math.floor(maxTokens / 4)),
  memoryTokens: Math.min(8000, Math.floor(maxTokens * 0.08)),
  historyTokens: Math.min(60_000, Math.floor(maxTokens * 0.6)),
});

const modelName = z
  .string()
  .max(256)
  .regex(/^([^*]+\*?|\*)$/, "must be a model's name, or the beginning of names with * at its end");
const maxModels = 100;

/** Says which limits cannot hold together: an answer and memories that leave room for nothing else. */
const contradiction = (given: ModelLimits): string | null => {
  const { maxTokens = defaultMaxTokens } = given;
  const usual = defaultLimits(maxTokens);
  const { reservedResponseTokens = usual.reservedResponseTokens, memoryTokens = usual.memoryTokens } = given;
  if (reservedResponseTokens + memoryTokens < maxTokens) return null;
  const parts = `reservedResponseTokens (${reservedResponseTokens}) and memoryTokens (${memoryTokens})`;
  return `maxTokens (${maxTokens}) does not hold ${parts} and anything else: raise it, or lower one of those`;
};

/** `true` shows the default number of lines. */
const Activity = z.union([z.boolean(), z.strictObject({ entries: z.int().min(1).max(100) })]);

export const ContextConfig = z
  .strictObject({
    ...ModelLimits.shape,
    /** Other limits for some models, by name; a `*` at the end stands for any rest. The longest match counts. */
    byModel: z
      .record(modelName, ModelLimits)
      .refine((models) => Object.keys(models).length <= maxModels, `may name at most ${maxModels} models`)
      .optional(),
    /** Whether a block of memory stands in an input with its description. */
    blockDescriptions: z.boolean().default(true),
    /** Whether a structured block stands in an input with the fields that it declares. */
    blockSchemas: z.boolean().default(true),
    /** Whether an input tells what other agents of the agent's spaces did lately, or how many lines of it. */
    activity: Activity.default(false),
    /** The number of events that a cycle takes at once; `maxBatchEvents` if left out. The rest comes with the next one. */
    maxEvents: z.int().min(1).max(100).optional(),
    /** The number of messages of a space that a timeline shows. */
    historyMessages: z.int().min(1).max(200).default(50),
    /** Whether a timeline shows that history as lines of the prompt, or as model messages. */
    history: z.enum(["prompt", "messages"]).default("prompt"),
    /** Cycles that a compaction always keeps whole. */
    minRecentCycles: z.int().min(1).max(1000).default(10),
    compaction: Compaction.default(() => Compaction.parse({})),
  })
  .superRefine(({ byModel = {}, ...config }, issues) => {
    const check = (given: ModelLimits, path: string[]): void => {
      const message = contradiction(given);
      if (message !== null) issues.addIssue({ code: "custom", path, message });
    };
    check(config, ["maxTokens"]);
    for (const [name, given] of Object.entries(byModel)) {
      check({ ...config, ...given }, ["byModel", name, "maxTokens"]);
    }
  });
export type ContextConfig = z.infer<typeof ContextConfig>;

/** The limits that an input is composed within: the config's where it names them, fitted to the agent's model. */
export const ContextLimits = component("ContextLimits", {
  model: z.string().describe("The model's name: what `context.byModel` goes by"),
  window: z.int().optional().describe("The model's own window, where it is known"),
  maxTokens: z.int(),
  reservedResponseTokens: z.int(),
  memoryTokens: z.int(),
  historyTokens: z.int(),
  notes: z.array(z.string()).describe("Where they are not what the config says, and why"),
});
export type ContextLimits = z.infer<typeof ContextLimits>;
