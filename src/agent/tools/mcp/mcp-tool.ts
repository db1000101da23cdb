import { jsonSchema } from "ai";
import { z } from "zod";
import type { McpTool } from "../../records.ts";
import { broughtTool, invalidInput, type Tool } from "../tool.ts";

/** Whatever its schema says: the server that wrote it is the judge of it, and may change it. */
const Input = z.record(z.string(), z.unknown());

type Caller = { call(tool: McpTool, input: Record<string, unknown>, signal: AbortSignal): Promise<unknown> };

/** A server's tool as one of the agent's. */
export const mcpTool = (tool: McpTool, mcp: Caller): Tool => {
  const schema = jsonSchema<unknown>(tool.inputSchema);
  const parse = (input: unknown): Record<string, unknown> => {
    const parsed = Input.safeParse(input);
    if (parsed.success) return parsed.data;
    throw invalidInput([{ path: "", message: "must be an object" }]);
  };
  return {
    ...broughtTool,
    name: tool.name,
    description: tool.description,
    effect: () => !tool.idempotent,
    idempotent: tool.idempotent,
    isTimed: true,
    schema: () => schema,
    check: (input) => void parse(input),
    execute: async (input, { outside }) => ({ value: await mcp.call(tool, parse(input), outside.signal) }),
  };
};
