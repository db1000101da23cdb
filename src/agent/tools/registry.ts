import { jsonSchema, type Schema, tool as sdkTool, type ToolSet, zodSchema } from "ai";
import type { AgentConfig } from "../../protocol/agent.ts";
import { deleteGoals, setGoals } from "./builtin/goals.ts";
import { deleteMemories, getMemories, setMemories } from "./builtin/memories.ts";
import { deletePlans, getPlans, setPlans } from "./builtin/plans.ts";
import { absorbRun, getMyRuns, stopRun } from "./builtin/runs.ts";
import { skip } from "./builtin/skip.ts";
import { enterSpace, leaveSpace, readMessages } from "./builtin/spaces.ts";
import { sendMessage, sendReply, sendThreadedMessage } from "./builtin/speaking.ts";
import type { Tool } from "./tool.ts";

/**
 * The tools of an agent, in an order that never changes: their declarations are part of the input that providers
 * bill less for when it repeats.
 */
const builtin: Tool[] = [
  enterSpace,
  leaveSpace,
  sendMessage,
  sendThreadedMessage,
  sendReply,
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

/** What decides which tools an agent has. */
export type Kind = Pick<AgentConfig, "continuity" | "messaging">;

const has = (tool: Tool, kind: Kind): boolean =>
  tool.only === "all" || tool.only === kind.continuity || tool.only === kind.messaging;

export type Registry = {
  /** Undefined for a tool that agents of this kind do not have. */
  find(name: string, kind: Kind): Tool | undefined;
  /** For the AI SDK: declared without `execute`, since we run them ourselves. */
  declarations(kind: Kind): ToolSet;
};

const schemas = new Map<Tool, Schema<unknown>>();

/** A tool's JSON Schema, made once and not at every step. What it refuses is refused in the words of its own parser. */
const schemaOf = (tool: Tool): Schema<unknown> => {
  const known = schemas.get(tool);
  const { input } = tool;
  if (known) return known;
  const { jsonSchema: json } = zodSchema(input);
  const schema = jsonSchema<unknown>(() => json, {
    validate: (value) => {
      const parsed = input.safeParse(value);
      return parsed.success ? { success: true, value: parsed.data } : { success: false, error: parsed.error };
    },
  });
  schemas.set(tool, schema);
  return schema;
};

export const createRegistry = (): Registry => ({
  find: (name, kind) => builtin.find((tool) => tool.name === name && has(tool, kind)),
  declarations: (kind) =>
    Object.fromEntries(
      builtin
        .filter((tool) => has(tool, kind))
        .map((tool) => [tool.name, sdkTool({ description: tool.description, inputSchema: schemaOf(tool) })]),
    ),
});
