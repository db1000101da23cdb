import type { ToolRule } from "../../protocol/tool.ts";
import type { Continuity } from "../context/agent-state.ts";
import type { RunRow } from "../runs.ts";
import type { Kind } from "../tools/registry.ts";
import type { Toolset } from "../tools/toolset.ts";
import type { Parts } from "./parts.ts";

/** The kind of agent that has these tools. */
export const kindWith = (parts: Parts, continuity: Continuity, toolset: Toolset | undefined): Kind => ({
  continuity,
  messaging: toolset?.messaging ?? parts.identity.get().config.messaging,
  tools: toolset?.tools ?? [],
  ...(toolset?.memoryTools === false ? { memoryTools: false } : {}),
  mcpTools: parts.mcp.tools(toolset?.mcpListId ?? null),
});

/** The kind of agent that a run is of: its continuity and its tools are fixed when it begins. */
export const kindOf = (parts: Parts, run: RunRow): Kind =>
  kindWith(parts, run.continuity, parts.consciousness.window(run.windowId)?.toolset);

/** The rules of its tools, which are fixed when it begins too. */
export const rulesOf = (parts: Parts, run: RunRow): ToolRule[] =>
  parts.consciousness.window(run.windowId)?.toolset.toolRules ?? [];
