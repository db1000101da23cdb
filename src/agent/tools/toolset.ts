import type { AgentConfig } from "../../protocol/agent.ts";

/** What is fixed for all runs in a window: the ways to speak, the tools beside the built-in ones, and their rules. */
export type Toolset = Pick<AgentConfig, "messaging" | "tools" | "toolRules"> & {
  /** The list of what its MCP servers bring; null if they never brought any. */
  mcpListId: number | null;
  /** Set where it has no tools for its memory. */
  memoryTools?: false;
};

export const toolsetOf = (
  { messaging, tools, toolRules, memoryTools }: AgentConfig,
  mcpListId: number | null,
): Toolset => ({
  messaging,
  tools,
  toolRules,
  mcpListId,
  ...(memoryTools === false ? { memoryTools } : {}),
});

export const sameToolset = (one: Toolset, other: Toolset): boolean => JSON.stringify(one) === JSON.stringify(other);
