import type { ToolSet } from "ai";
import type { ToolRule } from "../../protocol/tool.ts";
import type { BaseInstructions, ComposedConfig } from "./agent-state.ts";

/**
 * What every input is built of, whatever the continuity: a builder as an object of named parts, by the names of its outline.
 * `compose` is its `build`: pure, and the only way from these parts to what a model is given.
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
  /** How the past is shown, within the limits that the config has for the agent's model. */
  context: ComposedConfig["context"];
  /** Billed over estimated tokens, as this model was billed before. */
  correction: number;
};

/** The parts that a config says; rules and tools are those of a run, which are fixed when it begins. */
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
