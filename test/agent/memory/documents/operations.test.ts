import { describe, expect, it } from "vitest";
import { block } from "./block.ts";

const lines = "line 1\nline 2\nline 3\nline 4\nline 5\n";

describe("operations on a text", () => {
  it.each([
    ["Hello", { op: "append_text", text: ", world!" }, "Hello, world!", "Appended to block 'notes'"],
    [
      "Hello, world!",
      { op: "replace_text", old: "world", new: "universe" },
      "Hello, universe!",
      "Replaced first occurrence of 'world' with 'universe' in 'notes'",
    ],
    [
      "foo bar foo baz foo",
      { op: "replace_text", mode: "nth", n: 2, old: "foo", new: "second" },
      "foo bar second baz foo",
      "Replaced occurrence #2 of 'foo' with 'second' in 'notes'",
    ],
    [
      "a b a",
      { op: "replace_text", mode: "all", old: "a", new: "aa" },
      "aa b aa",
      "Replaced 2 occurrence(s) of 'a' with 'aa' in 'notes'",
    ],
    [
      "The quick brown fox",
      { op: "replace_text", mode: "regex", old: "\\b[bB]\\w+", new: "blue" },
      "The quick blue fox",
      "Replaced regex match 'brown' with 'blue' in 'notes'",
    ],
    [
      "due 2026-02-18",
      { op: "replace_text", mode: "regex", old: "(\\d+)-(\\d+)-(\\d+)", new: "$3.$2.$1 ($$, $9)" },
      "due 18.02.2026 ($, $9)",
      "Replaced regex match '2026-02-18' with '$3.$2.$1 ($$, $9)' in 'notes'",
    ],
    [
      lines,
      { op: "edit_range", startLine: 2, endLine: 4, text: "replaced line A\nreplaced line B" },
      "line 1\nreplaced line A\nreplaced line B\nline 5\n",
      "Replaced lines 2-4 in block 'notes'",
    ],
    [
      lines,
      { op: "edit_range", startLine: 2, endLine: 5, text: "" },
      "line 1\n",
      "Replaced lines 2-5 in block 'notes'",
    ],
    [
      "line one\nline two\nline three\n",
      {
        op: "patch",
        patch: "--- a/file\n+++ b/file\n@@ -1,3 +1,3 @@\n line one\n-line two\n+line TWO MODIFIED\n line three\n",
      },
      "line one\nline TWO MODIFIED\nline three\n",
      "Applied 1 hunk(s) to block 'notes'",
    ],
    [
      "new first\nline one\nline two\n",
      { op: "patch", patch: "@@ -1,2 +1,3 @@\n line one\n+between\n line two\n" },
      "new first\nline one\nbetween\nline two\n",
      "Applied 1 hunk(s) to block 'notes'",
    ],
    [
      "Hello 🌍 world",
      { op: "replace_text", old: "🌍", new: "🌎" },
      "Hello 🌎 world",
      "Replaced first occurrence of '🌍' with '🌎' in 'notes'",
    ],
    [
      "🔥start middle end",
      { op: "replace_text", old: "start", new: "begin" },
      "🔥begin middle end",
      "Replaced first occurrence of 'start' with 'begin' in 'notes'",
    ],
    [
      "a\nb\nc\nd\n",
      { op: "patch", patch: "@@ -2,0 +3 @@\n+between\n" },
      "a\nb\nbetween\nc\nd\n",
      "Applied 1 hunk(s) to block 'notes'",
    ],
    ["", { op: "patch", patch: "@@ -0,0 +1 @@\n+first\n" }, "first\n", "Applied 1 hunk(s) to block 'notes'"],
    [
      "a\n",
      { op: "patch", patch: "@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n" },
      "b",
      "Applied 1 hunk(s) to block 'notes'",
    ],
    [
      "a",
      { op: "patch", patch: "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n" },
      "b\n",
      "Applied 1 hunk(s) to block 'notes'",
    ],
    [
      "a\r\nb\r\n",
      { op: "patch", patch: "@@ -1,2 +1,3 @@\n a\n-b\n+B\n+C\n" },
      "a\r\nB\r\nC\r\n",
      "Applied 1 hunk(s) to block 'notes'",
    ],
    [
      "a\nb\n",
      { op: "patch", patch: "@@ -1,2 +1,2 @@\r\n a\r\n-b\r\n+B\r\n" },
      "a\nB\n",
      "Applied 1 hunk(s) to block 'notes'",
    ],
    [
      "a\r\nb\r\nc",
      { op: "edit_range", startLine: 2, endLine: 2, text: "B\nand more" },
      "a\r\nB\r\nand more\r\nc",
      "Replaced lines 2-2 in block 'notes'",
    ],
    ["🔥🌍", { op: "set_text", text: "🔥🌎" }, "🔥🌎", "Set the text of block 'notes'"],
  ])("%j: %j", (content, operation, text, message) => {
    const text_ = block({ type: "text" }, { content });
    expect(text_.edit(operation)).toEqual([{ op: operation.op, message }]);
    expect(text_.rendered()).toBe(text);
    expect(text_.reopened()).toBe(text);
  });

  it.each([
    [{ op: "replace_text", old: "nope", new: "x" }, "Text not found: 'nope'"],
    [
      { op: "replace_text", mode: "nth", n: 3, old: "line 1", new: "x" },
      "Occurrence #3 of 'line 1' not found: there are 1",
    ],
    [{ op: "replace_text", mode: "regex", old: "(", new: "x" }, "not a regular expression of RE2"],
    [{ op: "replace_text", mode: "regex", old: "(?=x)", new: "x" }, "not a regular expression of RE2"],
    [{ op: "replace_text", mode: "regex", old: "z+", new: "x" }, "Pattern not found: 'z+'"],
    [{ op: "edit_range", startLine: 4, endLine: 7, text: "x" }, "Lines 4-7 out of bounds (the text has 6 lines)"],
    [{ op: "patch", patch: "nonsense" }, "The patch holds no hunk"],
    [{ op: "patch", patch: "@@ -1,2 +1,1 @@\n line one\n" }, "The patch is no unified diff"],
    [{ op: "patch", patch: "@@ -1,1 +1,1 @@\n-line one\n+x\n" }, "The patch does not apply: hunk 1 of 1"],
    [{ op: "push_item", item: "x" }, "push_item does not apply to a text; it takes set_text, append_text"],
    [{ op: "set_text", text: "x", section: "notes" }, "Field not found: notes"],
    [
      { op: "set_text", text: "x".repeat(101) },
      "The block would hold 101 characters; its charLimit is 100, and it holds 35 now",
    ],
    [{ op: "redo" }, "Nothing to redo"],
  ])("refuses %j and changes nothing", (operation, message) => {
    const text = block({ type: "text" }, { content: lines, charLimit: 100 });
    expect(() => text.edit([{ op: "append_text", text: "more" }, operation])).toThrow(message);
    expect(text.value()).toBe(lines);
    expect(text.version()).toBe(1);
  });

  it("a regular expression that would not end elsewhere takes its time, and no more", () => {
    const text = block({ type: "text" }, { content: `${"a".repeat(4000)}!`, charLimit: 5000 });
    expect(() => text.edit({ op: "replace_text", mode: "regex", old: "^(a+)+$", new: "x" })).toThrow(
      "Pattern not found",
    );
    expect(() => text.edit({ op: "replace_text", mode: "regex", old: "(a{1000}){1000}", new: "x" })).toThrow(
      /not a regular expression of RE2|too large/,
    );
  });

  it("texts that differ everywhere are set in bounded time", () => {
    const many = (letter: string) => `${letter}\n`.repeat(50_000);
    const text = block({ type: "text" }, { content: many("a"), charLimit: 200_000 });
    text.edit({ op: "set_text", text: many("b") });
    expect(text.value()).toBe(many("b"));
  });
});

describe("operations on a map", () => {
  const schema = {
    type: "map",
    fields: [
      { name: "tags", type: "list" },
      { name: "name", type: "text", required: true },
      { name: "age", type: "number" },
      { name: "sure", type: "boolean" },
      { name: "met", type: "timestamp" },
      { name: "seen", type: "counter" },
    ],
  };

  it("removes from a list by index or by value", () => {
    const map = block(schema, { content: { name: "Alice", tags: ["tag1", "tag2", { a: 1 }, "tag3"] } });
    map.edit([
      { op: "remove_from_list", field: "tags", index: 1 },
      { op: "remove_from_list", field: "tags", value: { a: 1 } },
    ]);
    expect(map.value()).toEqual({ name: "Alice", tags: ["tag1", "tag3"], seen: 0 });
    expect(() => map.edit({ op: "remove_from_list", field: "tags", index: 9 })).toThrow(
      "Index 9 out of bounds (len=2)",
    );
    expect(() => map.edit({ op: "remove_from_list", field: "tags", value: "tag9" })).toThrow(
      `'tags' does not hold "tag9"`,
    );
  });

  it.each([
    [{ op: "set_field", field: "nope", value: 1 }, "Field not found: nope"],
    [{ op: "set_field", field: "age", value: "old" }, `Field 'age' takes a number, not "old"`],
    [{ op: "set_field", field: "sure", value: 1 }, "Field 'sure' takes true or false, not 1"],
    [{ op: "set_field", field: "met", value: "yesterday" }, `Field 'met' takes an ISO 8601 time, not "yesterday"`],
    [{ op: "set_field", field: "tags", value: "a" }, `Field 'tags' takes a list, not "a"`],
    [{ op: "set_field", field: "name", value: null }, "Field 'name' is required"],
    [{ op: "increment", field: "age", by: 1 }, "increment takes a counter field; 'age' is a number"],
    [{ op: "append_to_list", field: "name", value: 1 }, "append_to_list takes a list field; 'name' is a text"],
    [{ op: "increment", field: "seen", by: 1e308 }, "Field 'seen' cannot count that far"],
  ])("refuses %j", (operation, message) => {
    const map = block(schema, { content: { name: "Alice", seen: 9_007_199_254_740_000 } });
    expect(() => map.edit(operation)).toThrow(message);
    expect(map.value()).toEqual({ name: "Alice", seen: 9_007_199_254_740_000 });
  });

  it("sets and clears fields", () => {
    const map = block(schema, { content: { name: "Alice" } });
    map.edit([
      { op: "set_field", field: "met", value: "2026-02-18T15:00:00Z" },
      { op: "set_field", field: "seen", value: 7 },
      { op: "set_field", field: "age", value: 30 },
      { op: "set_field", field: "age", value: null },
    ]);
    expect(map.value()).toEqual({ name: "Alice", met: "2026-02-18T15:00:00Z", seen: 7 });
  });
});

describe("operations on a list", () => {
  it("inserts, sets, moves and deletes", () => {
    const list = block({ type: "list" });
    list.edit([
      { op: "push_item", item: "first" },
      { op: "push_item", item: "second" },
      { op: "insert_item", index: 1, item: "middle" },
    ]);
    expect(list.rendered()).toBe("1. first\n2. middle\n3. second");
    expect(() => list.edit({ op: "insert_item", index: 9, item: "x" })).toThrow("Index 9 out of bounds (len=3)");
    expect(() => list.edit({ op: "delete_item", index: 3 })).toThrow("Index 3 out of bounds (len=3)");
    list.edit({ op: "delete_item", index: 1 });
    expect(list.rendered()).toBe("1. first\n2. second");
    list.edit([
      { op: "move_item", from: 1, to: 0 },
      { op: "set_item", index: 1, item: { done: true } },
    ]);
    expect(list.rendered()).toBe("1. second\n[x] {done: true}");
    expect(list.reopened()).toEqual(["second", { done: true }]);
  });

  it("takes only items that its schema allows", () => {
    const tasks = block({
      type: "list",
      itemSchema: {
        type: "map",
        fields: [
          { name: "title", type: "text", required: true },
          { name: "done", type: "boolean", default: false },
        ],
      },
    });
    tasks.edit({ op: "push_item", item: { title: "Task" } });
    expect(tasks.value()).toEqual([{ title: "Task", done: false }]);
    expect(() => tasks.edit({ op: "push_item", item: { title: "x", who: 1 } })).toThrow("Field not found: who");
    expect(() => tasks.edit({ op: "push_item", item: {} })).toThrow("Field 'title' is required");
    expect(() => tasks.edit({ op: "set_item", index: 0, item: "x" })).toThrow("An item must be an object of fields");
    const words = block({ type: "list", itemSchema: { type: "text" } });
    expect(() => words.edit({ op: "push_item", item: 1 })).toThrow("An item must be a text, not 1");
    const numbers = block({ type: "list", itemSchema: { type: "integer", minimum: 3 } });
    expect(() => numbers.edit({ op: "push_item", item: 1 })).toThrow("The item breaks its schema");
    expect(() => block({ type: "list", itemSchema: { type: "array", minItems: "x" } })).toThrow("itemSchema minItems");
  });

  it("refuses what its house could not hold", () => {
    const list = block({ type: "list" }, { charLimit: 200_000 });
    for (let batch = 0; batch < 10; batch += 1) {
      list.edit(Array.from({ length: 100 }, () => ({ op: "push_item", item: 1 })));
    }
    expect(() => list.edit({ op: "push_item", item: 1 })).toThrow("1001 are more than 1000 (maxListItems)");
  });
});

describe("counters", () => {
  const counter = () => block({ type: "map", fields: [{ name: "n", type: "counter" }] });
  const set = (value: number) => ({ op: "set_field", field: "n", value });
  const add = (by: number) => ({ op: "increment", field: "n", by });

  it("are set to the very number, from wherever they were", () => {
    const map = counter();
    for (const value of [0.1, 0.3, -1.5, 0.1, Number.MAX_SAFE_INTEGER, 1, 0.7, 123_456_789.123, -0.01, 0]) {
      map.edit(set(value));
      expect([map.value(), map.reopened()]).toEqual([{ n: value }, { n: value }]);
    }
    map.edit([add(0.1), add(0.2)]);
    expect(map.rendered()).toBe("n: 0.3");
  });

  it("count as far as numbers are exact", () => {
    const map = counter();
    map.edit(set(Number.MAX_SAFE_INTEGER));
    expect(() => map.edit(add(1))).toThrow("cannot count that far");
    expect(() => map.edit(add(1e308))).toThrow("cannot count that far");
    expect(() => map.edit(set(1e300))).toThrow("Field 'n' takes a number of at most 9007199254740991");
    map.edit(add(-1));
    expect(() => map.edit(add(Number.MAX_SAFE_INTEGER), { on: 1 })).toThrow("cannot count that far");
    expect(map.value()).toEqual({ n: Number.MAX_SAFE_INTEGER - 1 });
  });
});

describe("a log's entries", () => {
  it("hold declared fields only", () => {
    const log = block({ type: "log", entryFields: [{ name: "level", type: "number", required: true }] });
    expect(() => log.edit({ op: "append_log_entry", entry: { level: 1, who: "x" } })).toThrow("Field not found: who");
    expect(() => log.edit({ op: "append_log_entry", entry: {} })).toThrow("Field 'level' is required");
    expect(() => log.edit({ op: "append_log_entry", entry: "text" })).toThrow("Field 'level' takes a number");
    expect(() => log.edit({ op: "append_log_entry", entry: { level: 1, timestamp: "now" } })).toThrow(
      "Field 'timestamp'",
    );
  });
});

describe("fields with hostile names", () => {
  it("are fields like any other", () => {
    const fields = [{ name: "constructor" }, { name: "toString", type: "list" }, { name: "valueOf", type: "counter" }];
    const map = block({ type: "map", fields });
    expect(map.rendered()).toBe("valueOf: 0");
    map.edit({ op: "set_field", field: "constructor", value: "x" });
    expect(map.rendered()).toBe("constructor: x\nvalueOf: 0");
    const list = block({ type: "list", itemSchema: { type: "map", fields } });
    list.edit({ op: "push_item", item: { constructor: "x" } });
    expect(list.value()).toEqual([{ constructor: "x" }]);
    const log = block({ type: "log", entryFields: ["hasOwnProperty"] });
    log.edit({ op: "append_log_entry", entry: {} });
    expect(log.rendered()).toBe("[2026-02-18T15:00:00.000Z]");
    expect(() => block({ type: "map", fields: [{ name: "__proto__" }] })).toThrow("another name");
  });
});
