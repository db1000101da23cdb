import type { ToolSet } from "ai";
import type { ToolRule } from "../../protocol/tool.ts";
import type { BaseInstructions, ComposedConfig } from "./agent-state.ts";

/**
 * The parts of every input, whatever the continuity, by the names of the outline. `compose` is pure, and the only way
 * from these parts to a model's input.
 *
 * | in the outline           | here                                                                              |
 * | ------------------------ | --------------------------------------------------------------------------------- |
 * | `for_agent`              | `state`: who reads it, what it has and knows; of a consciousness, as it was told    |
 * | `with_messages`          | what a continuity adds: cycles, or histories and a trigger; and the run so far      |
 * | `with_tools`             | `tools`                                                                           |
 * | `with_base_instructions` | `base`                                                                            |
 * | `with_tool_rules`        | `toolRules`                                                                       |
 * | `with_model_info`        | `context`, whose limits are the model's, and `correction`                         |
 * | `with_batch_blocks`      | `batchBlocks` of `blocksInInput`, which says what `state.blocks` are              |
 * | the activity renderer    | `state.activity`                                                                  |
 */
export type InputParts = {
  base: BaseInstructions;
  toolRules: ToolRule[];
  /** Declared to the model beside the messages, in a fixed order. */
  tools: ToolSet;
  /** How the past is shown, and the limits for the agent's model. */
  context: ComposedConfig["context"];
  /** The ratio of billed to estimated tokens, from this model's earlier bills. */
  correction: number;
};

/** The parts that follow from a config. Rules and tools are a run's, which are fixed when it begins. */
export const inputParts = (
  { name, description, instructions, continuity, messaging, context, toolRules: configured }: ComposedConfig,
  {
    toolRules = configured,
    tools = {},
    correction = 1,
  }: Partial<Pick<InputParts, "toolRules" | "tools" | "correction">> = {},
): InputParts => ({
  base: { name, description, instructions, continuity, messaging },
  toolRules,
  tools,
  context,
  correction,
});
