import { describe, expect, test } from "vitest";
import type { ToolView } from "../../src/rehearsal/tool-view.ts";
import { rehearse, type Stage } from "./rehearsed-cycle.ts";

/** What the rehearsal model does with a list that it keeps with people, on paper. */
const tool = (name: string, answers: object): ToolView & { answers: object } => ({
  ...{ name, description: "", properties: [] },
  answers,
});
const missing = { error: { code: "not_found", message: 'there is no block "list"' } };
const content = "[ ] {done: false, text: milk}\n[x] {done: true, text: dates}\n[ ] {done: false, text: dark bread}";

const ask = (text: string, loaded: object = { version: 7, content }, more: Stage["tools"] = []) => {
  const done = { success: true };
  const memory = ["block_edit", "block_create", "block_share"].filter((name) => !more.some((one) => one.name === name));
  const tools = [tool("block_load", loaded), ...memory.map((name) => tool(name, done)), ...more];
  const { calls, said } = rehearse({ tools, activeSpaceId: "spc_FAMILY" }, { from: "Husam", text });
  return { calls: calls.filter(({ toolName }) => toolName !== "send_message"), said: said.map((each) => each.text) };
};

const edit = (label: string, ...operations: object[]) => ({
  toolName: "block_edit",
  input: { label, operations, onVersion: 7 },
});

describe("a list that is kept with people", () => {
  test("is created with the first items and shared with the space", () => {
    const { calls, said } = ask("@Echo add milk and tea to the shopping list", missing);
    expect(calls).toMatchObject([
      { toolName: "block_load", input: { label: "shopping" } },
      {
        toolName: "block_create",
        input: {
          label: "shopping",
          schema: { type: "list" },
          content: [
            { text: "milk", done: false },
            { text: "tea", done: false },
          ],
        },
      },
      { toolName: "block_share", input: { label: "shopping", space: "spc_FAMILY" } },
    ]);
    expect(said).toEqual([
      'Done: I began the shopping list with "milk", "tea". You find it under Blocks here, and can change it too.',
    ]);
  });

  test.each([
    [
      "@Echo add tea to the list",
      [{ op: "push_item", item: { text: "tea", done: false } }],
      'Done: "tea" is on the list.',
    ],
    [
      "@Echo please put Milk, dates and rice on our list!",
      [
        { op: "set_item", index: 1, item: { text: "dates", done: false } },
        { op: "push_item", item: { text: "rice", done: false } },
      ],
      'Done: "dates", "rice" are on the list. "Milk" is on the list already.',
    ],
    [
      "@Echo cross off milk",
      [{ op: "set_item", index: 0, item: { text: "milk", done: true } }],
      'Done: I crossed off "milk".',
    ],
    [
      "@Echo check the bread off the list",
      [{ op: "set_item", index: 2, item: { text: "dark bread", done: true } }],
      'Done: I crossed off "dark bread".',
    ],
    [
      "Echo, cross milk and bread off",
      [
        { op: "set_item", index: 0, item: { text: "milk", done: true } },
        { op: "set_item", index: 2, item: { text: "dark bread", done: true } },
      ],
      'Done: I crossed off "milk", "dark bread".',
    ],
  ])("%s", (text, operations, answer) => {
    const { calls, said } = ask(text);
    expect(calls).toEqual([{ toolName: "block_load", input: { label: "list" } }, edit("list", ...operations)]);
    expect(said).toEqual([answer]);
  });

  test.each([
    ["@Echo what is on the list?", "On the list: milk, dark bread. Crossed off: dates."],
    ["@Echo what's still on our list?", "On the list: milk, dark bread. Crossed off: dates."],
    ["@Echo show me the shopping list", "On the shopping list: milk, dark bread. Crossed off: dates."],
    ["@Echo cross off rice", 'I do not find "rice" on the list.'],
    ["@Echo add milk to the list", '"milk" is on the list already.'],
  ])("%s changes nothing", (text, answer) => {
    const { calls, said } = ask(text);
    expect(calls.map(({ toolName }) => toolName)).toEqual(["block_load"]);
    expect(said).toEqual([answer]);
  });

  test("is shared with another space on request", () => {
    const { calls, said } = ask("@Echo share the shopping list with us");
    expect(calls).toEqual([{ toolName: "block_share", input: { label: "shopping", space: "spc_FAMILY" } }]);
    expect(said).toEqual(["Done: the shopping list stands under Blocks here, and you can change it too."]);
  });

  test("is reported as missing, as no list, or as not changeable", () => {
    expect(ask("@Echo what is on the list?", missing).said).toEqual([
      'I keep no such list yet: say "add milk to the list".',
    ]);
    const refused = tool("block_edit", { error: { code: "forbidden", message: "Permission denied" } });
    expect(ask("@Echo add tea to the list", undefined, [refused]).said).toEqual([
      "I could not add it: Permission denied",
    ]);
    expect(ask("@Echo add tea to the list", { error: { code: "unavailable", message: "away" } }).said).toEqual([
      "I could not read the list: away",
    ]);
  });

  test("is not changed where its items hold more than text", () => {
    const more = { version: 7, content: "[ ] {amount: 1 kg, done: false, text: dates}" };
    const { calls, said } = ask("@Echo cross off dates", more);
    expect(calls).toHaveLength(1);
    expect(said).toEqual(['I do not find "dates" on the list.']);
  });
});

describe("who said what", () => {
  test("is found in all its spaces, with author, place and date, but not the question itself", () => {
    const source = { authorName: "Sara", spaceName: "Work" };
    const results = [
      { excerpt: "who said mint tea?", createdAt: "2026-11-22T10:00:00Z", source },
      { excerpt: "mint tea is the best", createdAt: "2026-11-21T10:00:00Z", source },
    ];
    const { calls, said } = ask("@Echo who said mint tea?", undefined, [tool("search", { results })]);
    expect(calls).toEqual([
      { toolName: "search", input: { query: "mint tea", types: ["message"], role: "user", limit: 4 } },
    ]);
    expect(said).toEqual(['Sara in "Work" (2026-11-21): mint tea is the best']);
    expect(ask("@Echo who said coffee?", undefined, [tool("search", { results: [] })]).said).toEqual([
      "I find nobody who said coffee.",
    ]);
  });
});
