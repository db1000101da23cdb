import type { AgentConfig } from "../protocol/agent.ts";

/** What of a config is fixed for all runs in a window: which tools there are beside the built-in ones, and their rules. */
export type Toolset = Pick<AgentConfig, "tools" | "toolRules">;

export const toolsetOf = ({ tools, toolRules }: AgentConfig): Toolset => ({ tools, toolRules });

export const sameToolset = (one: Toolset, other: Toolset): boolean => JSON.stringify(one) === JSON.stringify(other);
