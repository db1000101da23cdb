import { expect, test } from "vitest";
import { titleOf, toolTitle } from "../../../src/web/tool-calls/titles.ts";
import { lay } from "../../../src/web/tool-calls/value-layout.ts";

test.each([
  ["fetchWeather", "Fetch weather"],
  ["deploy_app", "Deploy app"],
  ["getURLOfPage", "Get URL of page"],
  ["send-e-mail", "Send e mail"],
  ["x", "X"],
  ["", ""],
])("the name %s is shown as %j", (name, title) => {
  expect(titleOf(name)).toBe(title);
});

test("the title of an MCP tool names its server", () => {
  expect(toolTitle("github__create_issue")).toEqual({ title: "Create issue", server: "github" });
  expect(toolTitle("create_issue")).toEqual({ title: "Create issue", server: null });
});

test("an object is laid out as fields, with nested objects and empty values", () => {
  expect(lay({ appName: "billing", by: { id: 7 }, note: "", sure: false })).toEqual({
    kind: "fields",
    more: 0,
    fields: [
      { key: "appName", label: "App name", value: { kind: "text", text: "billing", isLong: false } },
      {
        key: "by",
        label: "By",
        value: { kind: "fields", more: 0, fields: [{ key: "id", label: "Id", value: { kind: "number", text: "7" } }] },
      },
      { key: "note", label: "Note", value: { kind: "nothing" } },
      { key: "sure", label: "Sure", value: { kind: "text", text: "no", isLong: false } },
    ],
  });
});

test("a list of flat records becomes a table of all keys; any other stays a list", () => {
  expect(lay([{ id: 1 }, { id: 2, by: "Sara" }])).toMatchObject({
    kind: "table",
    columns: ["Id", "By"],
    rows: [
      [{ text: "1" }, { kind: "nothing" }],
      [{ text: "2" }, { text: "Sara" }],
    ],
  });
  expect(lay([{ id: 1 }, "two"])).toMatchObject({ kind: "list" });
  expect(lay([{ id: { deep: 1 } }, { id: { deep: 2 } }])).toMatchObject({ kind: "list" });
});

test("a long text is folded, a web address is a link, other schemes stay text", () => {
  expect(lay("line\n".repeat(9))).toMatchObject({ kind: "text", isLong: true });
  expect(lay("https://example.com/a")).toEqual({ kind: "link", href: "https://example.com/a" });
  expect(lay("javascript:alert(1)")).toMatchObject({ kind: "text" });
  expect(lay("<b>bold</b>")).toMatchObject({ kind: "text", text: "<b>bold</b>" });
});

test("a deep or wide value is bounded, and counts what is left out", () => {
  expect(lay(Array.from({ length: 80 }, (_, index) => index))).toMatchObject({ kind: "list", more: 30 });
  const deep = JSON.parse(`${'{"a":'.repeat(40)}1${"}".repeat(40)}`);
  expect(JSON.stringify(lay(deep)).length).toBeLessThan(2000);
});
