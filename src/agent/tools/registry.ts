import { tool as sdkTool, type ToolSet } from "ai";
import type { AgentConfig } from "../../protocol/agent.ts";
import type { Toolset } from "../records.ts";
import { blockTools } from "./builtin/blocks.ts";
import { memoryTools } from "./builtin/memories.ts";
import { planTools } from "./builtin/plans.ts";
import { runTools } from "./builtin/runs.ts";
import { recall, search } from "./builtin/search.ts";
import { skip } from "./builtin/skip.ts";
import { enterSpace, leaveSpace, readMessages } from "./builtin/spaces.ts";
import { speakingTools } from "./builtin/speaking.ts";
import { configuredTool } from "./configured/configured-tool.ts";
import { broughtTool, type Tool } from "./tool.ts";

/**
 * The tools of an agent, in an order that never changes: those that every agent has, then its own in the order of its
 * config, then those of its MCP servers. Their declarations are part of the input that providers bill less for when it repeats.
 */
export const builtinTools: Tool[] = [
  enterSpace,
  leaveSpace,
  ...speakingTools,
  readMessages,
  skip,
  ...runTools,
  ...memoryTools,
  ...planTools,
  ...blockTools,
  recall,
  search,
];

/** What decides which tools an agent has. */
export type Kind = Pick<AgentConfig, "continuity" | "messaging" | "tools"> & {
  /** Whether it has the tools for its memory; it has, if left out. */
  memoryTools?: boolean;
  /** What its MCP servers bring. */
  mcpTools?: Tool[];
};

/** The names that no configured tool may have, whatever kind of agent it is of. */
export const builtinNames: ReadonlySet<string> = new Set(builtinTools.map(({ name }) => name));

type Having = Pick<Kind, "continuity" | "messaging" | "memoryTools">;

const has = (tool: Tool, kind: Having): boolean =>
  (tool.only === undefined || tool.only === kind.continuity || tool.only === kind.messaging) &&
  !(tool.ofMemory && kind.memoryTools === false);

export const hasBuiltin = (name: string, kind: Having): boolean =>
  builtinTools.some((tool) => tool.name === name && has(tool, kind));

/** The agent's own, made once for each list of them: a config that did not change is the same object. */
const made = new WeakMap<Kind["tools"], Tool[]>();

const broughtTools = ({ tools, mcpTools = [] }: Kind): Tool[] => {
  const own = made.get(tools) ?? tools.map(configuredTool);
  made.set(tools, own);
  return [...own, ...mcpTools];
};

export const builtinTool = (name: string): Tool | undefined => builtinTools.find((tool) => tool.name === name);

/** What a tool's name alone says of it: brought tools are alike. */
export const factsOf = (name: string): Pick<Tool, keyof typeof broughtTool> => builtinTool(name) ?? broughtTool;

/** Undefined for a tool that agents of this kind do not have. */
export const findTool = (name: string, kind: Kind): Tool | undefined =>
  builtinTools.find((tool) => tool.name === name && has(tool, kind)) ??
  broughtTools(kind).find((tool) => tool.name === name);

/** For the AI SDK: declared without `execute`, since the run loop executes calls itself. */
export const toolDeclarations = (kind: Kind): ToolSet =>
  Object.fromEntries(
    [...builtinTools.filter((tool) => has(tool, kind)), ...broughtTools(kind)].map((tool) => [
      tool.name,
      sdkTool({ description: tool.description, inputSchema: tool.schema() }),
    ]),
  );

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
