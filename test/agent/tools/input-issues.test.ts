import { JSONParseError, NoSuchToolError } from "ai";
import { expect, test } from "vitest";
import * as z from "zod";
import { configuredTool } from "../../../src/agent/tools/configured/configured-tool.ts";
import { explained, parseInput, refusedCall } from "../../../src/agent/tools/input-issues.ts";
import { mcpTool } from "../../../src/agent/tools/mcp/tool-list.ts";
import { ToolConfig } from "../../../src/protocol/tool.ts";
import { ColloquyError } from "../../../src/shared/errors.ts";

const refusal = (work: () => unknown): ColloquyError => {
  try {
    work();
  } catch (error) {
    if (error instanceof ColloquyError) return error;
  }
  throw new Error("nothing was refused");
};

const value = "the launch code is 7429";
const long = `${value} ${"x".repeat(5000)}`;

test.each<[string, z.ZodType, unknown, string]>([
  ["a kind", z.object({ a: z.object({ b: z.int() }) }), { a: { b: value } }, "a.b: must be a number"],
  ["nothing", z.object({ a: z.array(z.string()) }), {}, "a: is missing: it must be an array"],
  ["a length", z.object({ a: z.string().max(10) }), { a: long }, "a: must have at most 10 characters"],
  ["a least length", z.object({ a: z.array(z.string()).min(2) }), { a: [value] }, "a: must have at least 2 items"],
  ["a bound", z.object({ a: z.number().gt(9000) }), { a: 7429 }, "a: must be more than 9000"],
  ["a choice", z.object({ a: z.enum(["x", "y"]) }), { a: value }, 'a: must be one of "x", "y"'],
  ["a form", z.object({ a: z.iso.datetime() }), { a: value }, "a: must be a valid ISO datetime"],
  ["a field", z.strictObject({ a: z.int().optional() }), { b: value }, "input: has unknown fields, leave them out: b"],
  ["a union", z.object({ a: z.union([z.strictObject({ b: z.int() }), z.int()]) }), { a: { b: value } }, "a.b: must be"],
  ["all", z.object({ a: z.string() }), value, "input: must be an object"],
])("[K12] zod's words about %s are put as field and rule", (_, schema, input, why) => {
  const { code, message } = refusal(() => parseInput(schema, input));
  expect(code).toBe("tool_input_invalid");
  expect(message.startsWith(why)).toBe(true);
  expect(message).toMatch(/Nothing was done: (correct it|shorten it).* call the tool again$/);
  expect(message).not.toContain("7429");
});

test("[B3] [K12] many mistakes, and long names, are told in few words", () => {
  const schema = z.array(z.strictObject({ a: z.int() }));
  const { message } = refusal(() =>
    parseInput(
      schema,
      Array.from({ length: 300 }, () => ({ [long]: 1 })),
    ),
  );
  expect(message).toContain("; and 595 more. Nothing was done");
  expect(message.length).toBeLessThan(1000);
});

const inputSchema = {
  type: "object",
  properties: { n: { type: "number", minimum: 9000 }, q: { type: "string", maxLength: 10 } },
  additionalProperties: false,
};

test.each([
  [{ n: 7429 }, "n: is less than 9000. Nothing was done: correct it"],
  [{ q: long }, "q: String is too long (5024 > 10). Nothing was done: shorten it"],
  [{ [long]: 1 }, `${value.slice(0, 5)}`],
])("[K12] an owner's tool tells field and rule (%#)", (input, why) => {
  const config = { name: "ask", description: "Asks", executionType: "internal", inputSchema };
  const { message } = refusal(() => configuredTool(ToolConfig.parse(config)).check(input));
  expect(message.startsWith(why)).toBe(true);
  if (!(long in input)) expect(message).not.toContain("7429");
  expect(message.length).toBeLessThan(300);
});

test("[K12] an MCP server's tool takes an object", () => {
  const tool = { name: "s__t", server: "s", tool: "t", description: "d", inputSchema, idempotent: true };
  const { message } = refusal(() => mcpTool(tool, async () => null).check([value]));
  expect(message).toBe("input: must be an object. Nothing was done: correct it and call the tool again");
});

test("[K12] the SDK's own refusals say why, without the input", () => {
  const unknown = new NoSuchToolError({ toolName: long, availableTools: ["search", "skip"] });
  const message = "there is no tool of that name; yours are: search, skip";
  expect(refusedCall(unknown)).toEqual({ code: "tool_unknown", message });
  const cause = new JSONParseError({ text: long, cause: new SyntaxError(long) });
  for (const error of [cause, new Error(long, { cause }), new Error(long), long]) {
    const refused = refusedCall(error);
    expect(refused.code).toBe("tool_input_invalid");
    expect(refused.message).toMatch(/^input: is not .*Nothing was done/);
    expect(refused.message).not.toContain("7429");
  }
});

test("[K12] a refusal whose message hides its issues is told with them, once", () => {
  const issues = [{ path: "execution.url", message: "must be https" }];
  const hidden = new ColloquyError("tool_misconfigured", "the request cannot be made", { issues });
  expect(explained(hidden)).toBe("the request cannot be made: execution.url: must be https");
  expect(explained(new ColloquyError("invalid_time", "cron: must be https", { issues }))).toBe("cron: must be https");
});
