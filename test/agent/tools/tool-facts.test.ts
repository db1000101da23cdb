import { expect, test } from "vitest";
import { configuredTool } from "../../../src/agent/tools/configured/configured-tool.ts";
import { mcpTool } from "../../../src/agent/tools/mcp/tool-list.ts";
import { builtinTools, factsOf } from "../../../src/agent/tools/registry.ts";
import type { Tool } from "../../../src/agent/tools/tool.ts";
import { ToolConfig } from "../../../src/protocol/tool.ts";

/** What a tool says of itself, in a line. */
const facts = (tool: Tool, input: unknown = {}): string => {
  const { name, speaks, showsInHistory, endsRun, writesBlock } = tool;
  expect([typeof tool.effect(input), typeof speaks, typeof showsInHistory]).toEqual(["boolean", "boolean", "boolean"]);
  expect([null, "own", "other"]).toContain(endsRun);
  const ends = endsRun === null ? [] : [`ends ${endsRun}`];
  const said = [
    tool.effect(input) && "acts",
    speaks && "speaks",
    showsInHistory && "in history",
    ...ends,
    writesBlock && "writes",
  ];
  return [name, ...said.filter(Boolean)].join(" · ");
};

test("every built-in tool says whether it acts, speaks, shows in a history and ends a run", () => {
  expect(builtinTools.map((tool) => facts(tool))).toMatchInlineSnapshot(`
    [
      "enter_space",
      "leave_space · in history",
      "send_message · acts · speaks",
      "send_message · acts · speaks",
      "send_reply · acts · speaks",
      "read_messages",
      "skip · ends own",
      "get_my_runs",
      "stop_run · acts · in history · ends other",
      "absorb_run · acts · in history · ends other",
      "set_memories · acts · in history",
      "get_memories",
      "delete_memories · acts · in history",
      "set_goals · acts · in history",
      "delete_goals · acts · in history",
      "set_plans · acts · in history",
      "get_plans",
      "delete_plans · acts · in history",
      "block_load · in history",
      "block_edit · acts · in history · writes",
      "block_create · acts · in history · writes",
      "block_pin · acts · in history",
      "block_unpin · acts · in history",
      "block_archive · acts · in history",
      "block_viewport · acts · in history",
      "block_share · acts · in history",
      "block_unshare · acts · in history",
      "block_history · in history",
      "block_list · in history",
      "block_restore · acts · in history",
      "block_delete · acts · in history",
      "recall · acts · in history",
      "search · in history",
    ]
  `);
});

test("[K12] every built-in tool refuses a field that it does not have, in its items too", async () => {
  const odd = { nothing: 1 };
  const items = new Map<string, object>([
    ["set_memories", { memories: [odd] }],
    ["set_goals", { goals: [odd] }],
    ["set_plans", { plans: [odd] }],
  ]);
  for (const { name, schema } of builtinTools) {
    const read = await schema().validate?.(items.get(name) ?? odd);
    expect(read?.success === false && read.error.message, name).toContain("unrecognized_keys");
  }
});

test("recall acts unless it searches", () => {
  const recall = builtinTools.find(({ name }) => name === "recall");
  expect(["insert", "delete", "search", 5].map((op) => recall?.effect({ op }))).toEqual([true, true, false, true]);
});

test("an owner's tool acts unless it answers by itself, and shows in a history", () => {
  const execution = { url: "https://tools.test", method: "POST" };
  const configs = [
    { executionType: "gateway", execution },
    { executionType: "external", execution: { url: "https://tools.test", secret: "KEY" } },
    { executionType: "external" },
    { executionType: "space" },
    { executionType: "internal", output: "yes" },
  ].map((how) =>
    ToolConfig.parse({ name: how.executionType, description: "?", inputSchema: { type: "object" }, ...how }),
  );
  expect(configs.map((config) => facts(configuredTool(config)))).toMatchInlineSnapshot(`
    [
      "gateway · acts · in history",
      "external · acts · in history",
      "external · acts · in history",
      "space · acts · in history",
      "internal · in history",
    ]
  `);
});

test("a server's tool acts, unless the server says that it may be repeated", () => {
  const listed = { server: "s", tool: "t", description: "", inputSchema: {} };
  const tools = [false, true].map((idempotent) => ({ ...listed, name: `s__${idempotent}`, idempotent }));
  expect(tools.map((tool) => facts(mcpTool(tool, () => Promise.resolve(null))))).toMatchInlineSnapshot(`
    [
      "s__false · acts · in history",
      "s__true · in history",
    ]
  `);
});

test("a tool that the agent no longer has is taken for a brought one", () => {
  expect(factsOf("gone")).toMatchObject({ speaks: false, showsInHistory: true, endsRun: null });
});
