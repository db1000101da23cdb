import type { ToolConfig } from "../../protocol/tool.ts";

/**
 * How a call of a configured tool goes. `waitsForAnswers`: whether runs of this continuity wait for people. No run waits
 * for an `async` tool.
 */
export const callModeOf = (tool: ToolConfig, { waitsForAnswers }: { waitsForAnswers: boolean }) => {
  /** What people are asked first: whether it may run, or for the result itself. */
  const asks = tool.executionType === "space" ? "answer" : tool.approval?.required === true ? "approval" : null;
  /** It shows in the active space as a `tool_call` message. */
  const shows = asks !== null || (tool.visible ?? tool.executionType !== "internal");
  /** The run waits for its result; if not, it reads `pending`, and the result comes through the inbox. */
  const attached = !tool.async && (waitsForAnswers || asks === null);
  return { asks, shows, attached };
};

/** Whether its result comes through the inbox only because it is late: its run has waited for it, and no person gave it. */
export const isLateAnswer = (tool: ToolConfig): boolean =>
  !tool.async && callModeOf(tool, { waitsForAnswers: true }).asks === null;

/** Whether the call is more than a step of its run: it has a row of its own. */
export const needsRow = (tool: ToolConfig, { shows, attached }: ReturnType<typeof callModeOf>): boolean =>
  shows || !attached || tool.executionType === "external";

/** Whether a call that was begun and cut may be made again. */
export const mayRepeat = (tool: ToolConfig): boolean => tool.idempotent || tool.executionType === "internal";
