import { jsonSchema, type Schema, tool as sdkTool, type ToolSet, zodSchema } from "ai";
import type { AgentConfig } from "../../protocol/agent.ts";
import { deleteGoals, setGoals } from "./builtin/goals.ts";
import { deleteMemories, getMemories, setMemories } from "./builtin/memories.ts";
import { deletePlans, getPlans, setPlans } from "./builtin/plans.ts";
import { absorbRun, getMyRuns, stopRun } from "./builtin/runs.ts";
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
  getMyRuns,
  stopRun,
  absorbRun,
  setMemories,
  getMemories,
  deleteMemories,
  setGoals,
  deleteGoals,
  setPlans,
  getPlans,
  deletePlans,
];

type Continuity = AgentConfig["continuity"];

const has = (tool: Tool, continuity: Continuity): boolean => tool.only === "both" || tool.only === continuity;

export type Registry = {
  /** Undefined for a tool that agents of this continuity do not have. */
  find(name: string, continuity: Continuity): Tool | undefined;
  /** For the AI SDK: declared without `execute`, since we run them ourselves. */
  declarations(continuity: Continuity): ToolSet;
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
  find: (name, continuity) => builtin.find((tool) => tool.name === name && has(tool, continuity)),
  declarations: (continuity) =>
    Object.fromEntries(
      builtin
        .filter((tool) => has(tool, continuity))
        .map((tool) => [tool.name, sdkTool({ description: tool.description, inputSchema: schemaOf(tool) })]),
    ),
});
