import type { ToolRule } from "../../protocol/tool.ts";
import type { Issue } from "../../shared/errors.ts";

/**
 * Rules that a model's instructions declare and the loop enforces, from the run's journal alone: a replay refuses the
 * same calls.
 *
 * Invariants
 * 1. A call counts once it was executed, whatever its outcome. As a condition of another call it counts only if it
 *    succeeded. A refused call counts for nothing.
 * 2. Silence (`skip`) is no exit: the cycle that it rolls back never was.
 */
export type PastCall = {
  toolName: string;
  /** `open`: it has begun, and what came of it is not known yet. */
  state: "open" | "succeeded" | "failed" | "refused";
};

const callsOf = (past: PastCall[], toolName: string): PastCall[] =>
  past.filter((call) => call.toolName === toolName && call.state !== "refused");

const isCalled = (past: PastCall[], toolName: string): boolean => callsOf(past, toolName).length > 0;

const succeeded = (past: PastCall[], toolName: string): boolean =>
  callsOf(past, toolName).some(({ state }) => state === "succeeded");

const breaks = (rule: ToolRule, toolName: string, past: PastCall[], starts: ReadonlySet<string>): boolean => {
  if (rule.rule === "start_constraint") return !starts.has(toolName) && !isCalled(past, rule.tool);
  if (rule.tool !== toolName) return false;
  if (rule.rule === "requires_prior") return !rule.tools.every((name) => succeeded(past, name));
  if (rule.rule === "max_calls") return callsOf(past, toolName).length >= rule.count;
  return false;
};

/** The first rule that a call of `toolName` would break now. `past`: all calls of the run that have begun or were refused. */
export const brokenRule = (rules: ToolRule[], toolName: string, past: PastCall[]): ToolRule | undefined => {
  const starts = new Set(rules.flatMap((rule) => (rule.rule === "start_constraint" ? [rule.tool] : [])));
  return rules.find((rule) => breaks(rule, toolName, past, starts));
};

/** Whether the calls of a step, each with its result, end the run: an `exit_loop` that succeeded, unless one of them goes on. */
export const endsLoop = (rules: ToolRule[], calls: PastCall[]): boolean => {
  const ruled = (kind: ToolRule["rule"]): boolean =>
    rules.some((rule) => rule.rule === kind && succeeded(calls, rule.tool));
  return ruled("exit_loop") && !ruled("continue_loop");
};

/** Whether a call of a step says that the run goes on, where it would have ended otherwise. */
export const goesOn = (rules: ToolRule[], calls: PastCall[]): boolean =>
  rules.some((rule) => rule.rule === "continue_loop" && succeeded(calls, rule.tool));

/** What the run still has to call before it may end. */
export const missingBeforeExit = (rules: ToolRule[], past: PastCall[]): ToolRule[] =>
  rules.filter((rule) => rule.rule === "required_before_exit" && !isCalled(past, rule.tool));

/** Rules that cannot be kept together, or say the same thing twice. Paths count from the list. */
export const ruleIssues = (rules: ToolRule[]): Issue[] => {
  const has = (tool: string, kind: ToolRule["rule"]): boolean =>
    rules.some((rule) => rule.rule === kind && rule.tool === tool);
  const priorsOf = (tool: string): string[] =>
    rules.flatMap((rule) => (rule.rule === "requires_prior" && rule.tool === tool ? rule.tools : []));
  /** Whether a tool has to come before itself. */
  const isCircular = (tool: string): boolean => {
    const before = new Set(priorsOf(tool));
    // A set hands out what is added while it is gone through.
    for (const prior of before) for (const more of priorsOf(prior)) before.add(more);
    return before.has(tool);
  };
  return rules.flatMap((rule, index) => {
    const { tool } = rule;
    const isPrior = rule.rule === "requires_prior";
    const messages = [
      rules.findIndex((other) => other.rule === rule.rule && other.tool === tool) < index &&
        `says ${rule.rule} of ${tool} again: one is enough`,
      rule.rule === "exit_loop" && has(tool, "continue_loop") && "contradicts continue_loop of the same tool",
      isPrior && isCircular(tool) && "can never be kept: the tools require each other",
      isPrior && has(tool, "start_constraint") && "can never be kept: start_constraint has the tool called first",
    ];
    return messages.flatMap((message) => (message === false ? [] : [{ path: `${index}`, message }]));
  });
};
