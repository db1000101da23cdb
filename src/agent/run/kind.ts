import type { ToolRule } from "../../protocol/tool.ts";
import type { Continuity } from "../context/agent-state.ts";
import type { Toolset } from "../records.ts";
import type { RunRow } from "../runs.ts";
import type { Kind } from "../tools/registry.ts";
import type { RunServices } from "./run-services.ts";

/** The kind of agent that has these tools. */
export const kindWith = (services: RunServices, continuity: Continuity, toolset: Toolset | undefined): Kind => ({
  continuity,
  messaging: toolset?.messaging ?? services.identity.get().config.messaging,
  tools: toolset?.tools ?? [],
  ...(toolset?.memoryTools === false ? { memoryTools: false } : {}),
  mcpTools: services.mcp.tools(toolset?.mcpListId ?? null),
});

/** The kind of agent that a run is of: its continuity and its tools are fixed when it begins. */
export const kindOf = (services: RunServices, run: RunRow): Kind =>
  kindWith(services, run.continuity, services.windows.window(run.windowId)?.toolset);

/** The rules of its tools, which are fixed when it begins too. */
export const rulesOf = (services: RunServices, run: RunRow): ToolRule[] =>
  services.windows.window(run.windowId)?.toolset.toolRules ?? [];
