import { expect, test } from "vitest";
import { McpServers, ToolConfig } from "../../src/protocol/tool.ts";

const described = { name: "ask", description: "Asks", executionType: "space" };

test("[S4] a space tool takes no approval, since people answer it anyway", () => {
  expect(ToolConfig.safeParse(described).success).toBe(true);
  const refused = ToolConfig.safeParse({ ...described, approval: { required: true } });
  expect(refused.error?.issues).toMatchObject([{ code: "unrecognized_keys", keys: ["approval"] }]);
});

test("[S4] a quorum needs as many different approvers", () => {
  const internal = { name: "go", description: "Goes", executionType: "internal" };
  const one = `ent_${"0".repeat(34)}`;
  const refused = ToolConfig.safeParse({ ...internal, approval: { approvers: [one, one], quorum: 2 } });
  expect(refused.error?.issues).toMatchObject([{ path: ["approval", "quorum"] }]);
});

test("[K15] a space tool's timeoutMs is refused, with the field that has the effect", () => {
  const refused = ToolConfig.safeParse({ ...described, timeoutMs: 5000 });
  const message = expect.stringContaining("answer.expiresInMinutes");
  expect(refused.error?.issues).toMatchObject([{ path: ["timeoutMs"], message }]);
});

test("[S4] no two MCP servers have names by which a tool of one could pass for the other's", () => {
  const named = (...names: string[]) =>
    McpServers.safeParse({ servers: names.map((name) => ({ name, url: "https://tools.example/mcp" })) });
  // `wiki` with a tool `_find` and `wiki_` with a tool `find` are both `wiki___find`.
  for (const names of [
    ["wiki", "wiki_"],
    ["wiki_", "files", "wiki"],
  ]) {
    expect(named(...names).error?.issues).toMatchObject([{ message: expect.stringContaining("could pass for") }]);
  }
  expect(named("wiki_", "wiki_2", "files").success).toBe(true);
});
