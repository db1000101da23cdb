import { jsonSchema } from "ai";
import type { ToolConfig } from "../../../protocol/tool.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { schemaIssues } from "../../../shared/json-schema.ts";
import { mayRepeat } from "../handling.ts";
import { broughtTool, invalidInput, type Tool } from "../tool.ts";
import { type RunnableTool, runConfigured } from "./run-configured.ts";

/** Whether a call needs nobody but this object. */
const isRunnable = (config: ToolConfig): config is RunnableTool =>
  (config.executionType === "gateway" || config.executionType === "internal") &&
  config.approval?.required !== true &&
  !config.async;

/** A tool that the agent's owner wrote, as the loop runs it. Its config was checked when it was set. */
export const configuredTool = (config: ToolConfig): Tool => {
  // A copy: the validator notes in a schema where its references lead.
  const inputSchema = structuredClone(config.inputSchema);
  const schema = jsonSchema<unknown>(config.inputSchema);
  return {
    ...broughtTool,
    config,
    name: config.name,
    description: config.description,
    effect: () => config.executionType !== "internal",
    idempotent: mayRepeat(config),
    schema: () => schema,
    check: (input) => {
      const issues = schemaIssues(inputSchema, input);
      if (issues.length > 0) throw invalidInput(issues);
    },
    execute: async (input, { outside }) => {
      if (isRunnable(config)) return { value: await runConfigured(config, input, outside) };
      throw new ColloquyError("tool_misconfigured", "this tool needs somebody's answer, which it cannot have here");
    },
  };
};
