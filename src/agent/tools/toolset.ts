import type { AgentConfig } from "../../protocol/agent.ts";
import type { Toolset } from "../records.ts";

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
