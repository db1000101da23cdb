import type { AgentConfig } from "../protocol/agent.ts";

/** What is fixed for all runs in a window: the ways to speak, the tools beside the built-in ones, and their rules. */
export type Toolset = Pick<AgentConfig, "messaging" | "tools" | "toolRules"> & {
  /** The list of what its MCP servers bring; null if they never brought any. */
  mcpListId: number | null;
};

export const toolsetOf = ({ messaging, tools, toolRules }: AgentConfig, mcpListId: number | null): Toolset => ({
  messaging,
  tools,
  toolRules,
  mcpListId,
});

export const sameToolset = (one: Toolset, other: Toolset): boolean => JSON.stringify(one) === JSON.stringify(other);
