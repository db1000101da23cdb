import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { checkedConfig } from "../../../src/agent/tools/check-config.ts";
import { builtinTool, toolDeclarations } from "../../../src/agent/tools/registry.ts";
import { AgentConfig } from "../../../src/protocol/agent.ts";
import { ColloquyError, type Issue } from "../../../src/shared/errors.ts";

const issuesOf = (config: object): Issue[] => {
  try {
    checkedConfig(AgentConfig.parse({ name: "Worker", ...config }), { allowLoopback: false });
    return [];
  } catch (error) {
    if (error instanceof ColloquyError && error.code === "invalid_request") return error.issues ?? [];
    throw error;
  }
};

const tool = (more: object) => ({ name: "ask", description: "Asks", executionType: "internal", ...more });

describe("checkedConfig", () => {
  test("the example of docs/tools.md can be used as it stands", () => {
    const docs = readFileSync("docs/tools.md", "utf8");
    const [, example = ""] = /\/v1\/agents -d '(\{.*?\n\})'/s.exec(docs) ?? [];
    expect(issuesOf(JSON.parse(example))).toEqual([]);
  });

  test("tools of every type can be set", () => {
    const approval = { required: true, quorum: 2 };
    const tools = [
      tool({ name: "a", executionType: "gateway", execution: { url: "https://example.com/" }, approval }),
      tool({ name: "b", executionType: "external", timeoutMs: 600_000 }),
      tool({ name: "c", executionType: "external", execution: { url: "https://example.com/", secret: "SIGN" } }),
      tool({ name: "d", executionType: "space", answer: { schema: { enum: ["yes", "no"] } } }),
      tool({ name: "e", async: true, visible: true }),
    ];
    expect(issuesOf({ tools })).toEqual([]);
  });

  test.each<[object, string]>([
    [{ tools: [tool({ name: "skip" })] }, "tools.0.name"],
    [{ tools: [tool({ inputSchema: { type: "string" } })] }, "tools.0.inputSchema.type"],
    [{ tools: [tool({ output: "x".repeat(20_000) })] }, "tools.0.output"],
    [{ tools: [tool({ executionType: "space", answer: { schema: { type: "text" } } })] }, "tools.0.answer.schema.type"],
    [
      { tools: [tool({ executionType: "external", execution: { url: "https://10.0.0.1/", secret: "S" } })] },
      "tools.0.execution.url",
    ],
    [{ tools: Array.from({ length: 64 }, (_, at) => tool({ name: `t${at}`, output: "x".repeat(15_000) })) }, "tools"],
    [{ toolRules: [{ tool: "gone", rule: "exit_loop" }] }, "toolRules.0.tool"],
    [{ toolRules: [{ tool: "send_reply", rule: "exit_loop" }] }, "toolRules.0.tool"],
    [{ toolRules: [{ tool: "github__search", rule: "exit_loop" }] }, "toolRules.0.tool"],
    [{ mcp: { servers: [{ name: "inside", url: "http://example.com/mcp" }] } }, "mcp.servers.0.url"],
  ])("[S4] what cannot be used is refused where it stands (%#)", (config, path) => {
    expect(issuesOf(config).map((issue) => issue.path)).toEqual([path]);
  });

  test.each(["Colloquy-Root", "Host", "not a name", "X-Input", "X-Slip"])(
    "[C9] [S4] headers of an MCP server are checked as a tool's are: %s",
    (name) => {
      const values: Record<string, string> = { "X-Input": "{{input.id}}", "X-Slip": "{{secret.WIKI}}" };
      const headers = { Authorization: `Bearer \${secret.WIKI}`, [name]: values[name] ?? "x" };
      const mcp = { servers: [{ name: "wiki", url: "https://wiki.example.com/mcp", headers }] };
      expect(issuesOf({ mcp }).map(({ path }) => path)).toEqual([`mcp.servers.0.headers.${name}`]);
    },
  );

  test("[C13] the patterns of all tools together are bounded", () => {
    const letters = Array.from({ length: 16 }, (_, at) => [`x${at}`, { pattern: `a{1,1000}${at}` }]);
    const inputSchema = { type: "object", properties: Object.fromEntries(letters) };
    const tools = Array.from({ length: 64 }, (_, at) => tool({ name: `t${at}`, inputSchema }));
    const from = performance.now();
    expect(issuesOf({ tools }).map(({ message }) => message)).toContainEqual(
      expect.stringContaining("maxRequestPatternSizes"),
    );
    expect(performance.now() - from).toBeLessThan(3000);
  });

  test("rules name what every agent of the kind has, its own tools, and its servers'", () => {
    const mcp = { servers: [{ name: "github", url: "https://example.com/mcp" }] };
    const toolRules = ["ask", "github__search", "send_reply"].map((name) => ({ tool: name, rule: "exit_loop" }));
    expect(issuesOf({ messaging: "threaded", tools: [tool({})], mcp, toolRules })).toEqual([]);
  });
});

test("declarations have one order: what every agent has, then its own as its config has them", () => {
  const { tools } = AgentConfig.parse({ name: "W", tools: [tool({ name: "z" }), tool({ name: "a" })] });
  const names = Object.keys(
    toolDeclarations({ continuity: "consciousness", messaging: "simple", tools, mcpTools: [] }),
  );
  expect(names.slice(-2)).toEqual(["z", "a"]);
  expect(names.slice(0, -2).every(builtinTool)).toBe(true);
});
