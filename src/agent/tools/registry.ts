import { jsonSchema, type Schema, tool as sdkTool, type ToolSet, zodSchema } from "ai";
import { deleteGoals, setGoals } from "./builtin/goals.ts";
import { deleteMemories, getMemories, setMemories } from "./builtin/memories.ts";
import { deletePlans, getPlans, setPlans } from "./builtin/plans.ts";
import { skip } from "./builtin/skip.ts";
import { enterSpace, leaveSpace, readMessages, sendMessage } from "./builtin/spaces.ts";
import type { Tool } from "./tool.ts";

/**
 * The tools of an agent, in an order that never changes: their declarations are part of the input that providers
 * bill less for when it repeats.
 */
const builtin: Tool[] = [
  enterSpace,
  leaveSpace,
  sendMessage,
  readMessages,
  skip,
  setMemories,
  getMemories,
  deleteMemories,
  setGoals,
  deleteGoals,
  setPlans,
  getPlans,
  deletePlans,
];

export type Registry = {
  find(name: string): Tool | undefined;
  /** For the AI SDK: declared without `execute`, since we run them ourselves. */
  declarations: ToolSet;
};

const schemas = new Map<string, Schema<unknown>>();

/** A tool's JSON Schema, made once and not at every step. What it refuses is refused in the words of its own parser. */
const schemaOf = ({ name, input }: Tool): Schema<unknown> => {
  const known = schemas.get(name);
  if (known) return known;
  const { jsonSchema: json } = zodSchema(input);
  const schema = jsonSchema<unknown>(() => json, {
    validate: (value) => {
      const parsed = input.safeParse(value);
      return parsed.success ? { success: true, value: parsed.data } : { success: false, error: parsed.error };
    },
  });
  schemas.set(name, schema);
  return schema;
};

export const createRegistry = (): Registry => ({
  find: (name) => builtin.find((tool) => tool.name === name),
  declarations: Object.fromEntries(
    builtin.map((tool) => [tool.name, sdkTool({ description: tool.description, inputSchema: schemaOf(tool) })]),
  ),
});
