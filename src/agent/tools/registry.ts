import { tool as sdkTool, type ToolSet } from "ai";
import type { AgentConfig } from "../../protocol/agent.ts";
import {
  blockArchive,
  blockCreate,
  blockEdit,
  blockHistory,
  blockLoad,
  blockPin,
  blockShare,
  blockUnpin,
  blockUnshare,
  blockViewport,
} from "./builtin/blocks.ts";
import { deleteGoals, setGoals } from "./builtin/goals.ts";
import { deleteMemories, getMemories, setMemories } from "./builtin/memories.ts";
import { deletePlans, getPlans, setPlans } from "./builtin/plans.ts";
import { recall } from "./builtin/recall.ts";
import { absorbRun, getMyRuns, stopRun } from "./builtin/runs.ts";
import { search } from "./builtin/search.ts";
import { skip } from "./builtin/skip.ts";
import { enterSpace, leaveSpace, readMessages } from "./builtin/spaces.ts";
import { sendMessage, sendReply, sendThreadedMessage } from "./builtin/speaking.ts";
import { configuredTool } from "./configured/configured-tool.ts";
import type { Tool } from "./tool.ts";

/**
 * The tools of an agent, in an order that never changes: those that every agent has, then its own in the order of its
 * config, then those of its MCP servers. Their declarations are part of the input that providers bill less for when it repeats.
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
  blockLoad,
  blockEdit,
  blockCreate,
  blockPin,
  blockUnpin,
  blockArchive,
  blockViewport,
  blockShare,
  blockUnshare,
  blockHistory,
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
export const builtinNames: ReadonlySet<string> = new Set(builtin.map(({ name }) => name));

type Having = Pick<Kind, "continuity" | "messaging" | "memoryTools">;

const has = (tool: Tool, kind: Having): boolean =>
  (tool.only === "all" || tool.only === kind.continuity || tool.only === kind.messaging) &&
  !(tool.ofMemory && kind.memoryTools === false);

export const hasBuiltin = (name: string, kind: Having): boolean =>
  builtin.some((tool) => tool.name === name && has(tool, kind));

export type Registry = {
  /** Undefined for a tool that agents of this kind do not have. */
  find(name: string, kind: Kind): Tool | undefined;
  /** One that agents have without its being configured. */
  builtin(name: string): Tool | undefined;
  /** For the AI SDK: declared without `execute`, since we run them ourselves. */
  declarations(kind: Kind): ToolSet;
};

/** The agent's own, made once for each list of them: a config that did not change is the same object. */
const made = new WeakMap<Kind["tools"], Tool[]>();

const ownTools = ({ tools }: Kind): Tool[] => {
  const known = made.get(tools);
  if (known) return known;
  const own = tools.map(configuredTool);
  made.set(tools, own);
  return own;
};

export const createRegistry = (): Registry => ({
  find: (name, kind) =>
    builtin.find((tool) => tool.name === name && has(tool, kind)) ??
    [...ownTools(kind), ...(kind.mcpTools ?? [])].find((tool) => tool.name === name),
  builtin: (name) => builtin.find((tool) => tool.name === name),
  declarations: (kind) =>
    Object.fromEntries(
      [...builtin.filter((tool) => has(tool, kind)), ...ownTools(kind), ...(kind.mcpTools ?? [])].map((tool) => [
        tool.name,
        sdkTool({ description: tool.description, inputSchema: tool.schema() }),
      ]),
    ),
});
