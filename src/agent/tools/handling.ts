import type { AgentConfig } from "../../protocol/agent.ts";
import type { ToolConfig } from "../../protocol/tool.ts";

/** How a call of a configured tool goes, as its config and the agent's continuity say. */
export type Handling = {
  /** It shows in the active space as a `tool_call` message. */
  shows: boolean;
  /** What people are asked first: whether it may run, or for the result itself. */
  asks: "approval" | "answer" | null;
  /** The run waits for its result; if not, it reads `pending`, and the result comes through the inbox. */
  attached: boolean;
};

/** A living agent does not stand still for people; nobody waits for what is `async`. */
export const handlingOf = (tool: ToolConfig, continuity: AgentConfig["continuity"]): Handling => {
  const asks = tool.executionType === "space" ? "answer" : tool.approval?.required === true ? "approval" : null;
  return {
    shows: asks !== null || (tool.visible ?? tool.executionType !== "internal"),
    asks,
    attached: !tool.async && (continuity === "timeline" || asks === null),
  };
};

/** Whether its result comes through the inbox only because it is late: its run has waited for it, and no person gave it. */
export const isLateAnswer = (tool: ToolConfig): boolean => !tool.async && handlingOf(tool, "timeline").asks === null;

/** Whether the call is more than a step of its run: it has a row of its own. */
export const needsRow = (tool: ToolConfig, { shows, attached }: Handling): boolean =>
  shows || !attached || tool.executionType === "external";

/** Whether a call that was begun and cut may be made again. */
export const mayRepeat = (tool: ToolConfig): boolean => tool.idempotent || tool.executionType === "internal";
