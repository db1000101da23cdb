import { tool as sdkTool, type ToolSet } from "ai";
import { deleteGoals, setGoals } from "./builtin/goals.ts";
import { deleteMemories, getMemories, setMemories } from "./builtin/memories.ts";
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
];

export type Registry = {
  find(name: string): Tool | undefined;
  /** For the AI SDK: declared without `execute`, since we run them ourselves. */
  declarations: ToolSet;
};

export const createRegistry = (): Registry => ({
  find: (name) => builtin.find((tool) => tool.name === name),
  declarations: Object.fromEntries(
    builtin.map((tool) => [tool.name, sdkTool({ description: tool.description, inputSchema: tool.input })]),
  ),
});
