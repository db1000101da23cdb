import { tool as sdkTool, type ToolSet } from "ai";
import type { AgentConfig } from "../../protocol/agent.ts";
import { visible } from "../../shared/quote.ts";
import type { Toolset } from "../records.ts";
import { blockTools } from "./builtin/blocks.ts";
import { keptBlockTools } from "./builtin/kept-blocks.ts";
import { memoryStateTools } from "./builtin/memory-state.ts";
import { runTools } from "./builtin/runs.ts";
import { searchTools } from "./builtin/search.ts";
import { spaceTools } from "./builtin/spaces.ts";
import { configuredTool } from "./configured/configured-tool.ts";
import { broughtTool, type Tool } from "./tool.ts";

/**
 * An agent's tools, in an order that never changes: those of all agents, its own in its config's order, those of its
 * MCP servers. Their declarations are part of the input that providers bill less for when it repeats.
 */
export const builtinTools: Tool[] = [
  ...[...spaceTools, ...runTools, ...memoryStateTools],
  ...[...blockTools, ...keptBlockTools, ...searchTools],
];

/** What decides which tools an agent has. */
export type Kind = Pick<AgentConfig, "continuity" | "messaging" | "tools"> & {
  /** Whether it has the tools for its memory; it has, if left out. */
  memoryTools?: boolean;
  /** The tools of its MCP servers. */
  mcpTools?: Tool[];
};

const has = (tool: Tool, kind: Kind): boolean =>
  (tool.only === undefined || tool.only === kind.continuity || tool.only === kind.messaging) &&
  !(tool.ofMemory && kind.memoryTools === false);

/** The agent's own, made once for each list of them: a config that did not change is the same object. */
const made = new WeakMap<Kind["tools"], Tool[]>();

const toolsOf = (kind: Kind): Tool[] => {
  const own = made.get(kind.tools) ?? kind.tools.map(configuredTool);
  made.set(kind.tools, own);
  return [...builtinTools.filter((tool) => has(tool, kind)), ...own, ...(kind.mcpTools ?? [])];
};

/** No configured tool may have its name, whatever kind of agent it is of. */
export const builtinTool = (name: string): Tool | undefined => builtinTools.find((tool) => tool.name === name);

/** The properties of a tool by its name alone: all tools from outside have the same. */
export const factsOf = (name: string): Pick<Tool, keyof typeof broughtTool> => builtinTool(name) ?? broughtTool;

/** A call of a built-in tool that changes something and says nothing, as search finds it. Undefined for any other. */
export const deedText = (name: string, input: unknown): string | undefined => {
  const tool = builtinTool(name);
  if (!tool || tool.speaks || !tool.effect(input)) return undefined;
  return `${name} ${JSON.stringify(input, tool.foundBy)}`;
};

/** Undefined for a tool that agents of this kind do not have. */
export const findTool = (name: string, kind: Kind): Tool | undefined =>
  toolsOf(kind).find((tool) => tool.name === name);

/** For the AI SDK: declared without `execute`, since the run loop executes calls itself. */
export const toolDeclarations = (kind: Kind): ToolSet =>
  Object.fromEntries(
    toolsOf(kind).map(({ name, description, schema }) => [
      name,
      sdkTool({ description: visible(description), inputSchema: schema() }),
    ]),
  );

export const toolsetOf = (config: AgentConfig, mcpListId: number | null): Toolset => {
  const { messaging, tools, toolRules, memoryTools } = config;
  return { messaging, tools, toolRules, mcpListId, ...(memoryTools === false ? { memoryTools } : {}) };
};
