import { AgentConfig } from "../../src/protocol/agent.ts";
import type { ToolConfig } from "../../src/protocol/tool.ts";

/** A tool as an agent has it, of what an owner would write: it takes anything and shows nowhere, unless that is said. */
export const toolOf = (tool: { name: string; executionType: string; [field: string]: unknown }): ToolConfig => {
  const described = { description: `Does ${tool.name}`, visible: false, ...tool };
  const [parsed] = AgentConfig.parse({ name: "Worker", tools: [described] }).tools;
  if (!parsed) throw new Error("no tool");
  return parsed;
};
