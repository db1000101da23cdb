import { describe, expect, it } from "vitest";
import { checkFits } from "../../../../src/agent/memory/documents/check-content.ts";
import { BlockSchema } from "../../../../src/protocol/block-schema.ts";
import { block } from "./block.ts";

const lines = "line 1\nline 2\nline 3\nline 4\nline 5\n";

const append = (text: string) => ({ op: "append_text", text });
const replace = (old: string, next: string, more: object = {}) => ({ op: "replace_text", old, new: next, ...more });
const range = (startLine: number, endLine: number, text: string) => ({ op: "edit_range", startLine, endLine, text });
const patch = (hunks: string) => ({ op: "patch", patch: hunks });
const regex = { mode: "regex" };

describe("operations on a text", () => {
  it.each<[string, { op: string; [name: string]: unknown }, string, string]>([
    ["Hello", append(", world!"), "Hello, world!", "Appended to block 'notes'"],
    ["Hi, x!", replace("x", "y"), "Hi, y!", "Replaced first occurrence of 'x' with 'y' in 'notes'"],
    [
      "x a x b x",
      replace("x", "y", { mode: "nth", n: 2 }),
      "x a y b x",
      "Replaced occurrence #2 of 'x' with 'y' in 'notes'",
    ],
    ["a b a", replace("a", "aa", { mode: "all" }), "aa b aa", "Replaced 2 occurrence(s) of 'a' with 'aa' in 'notes'"],
    [
      "a brown fox",
      replace("\\b[bB]\\w+", "blue", regex),
      "a blue fox",
      "Replaced regex match 'brown' with 'blue' in 'notes'",
    ],
    [
      "on 12-30",
      replace("(\\d+)-(\\d+)", "$2.$1 ($$, $9)", regex),
      "on 30.12 ($, $9)",
      "Replaced regex match '12-30' with '$2.$1 ($$, $9)' in 'notes'",
    ],
    [lines, range(2, 4, "A\nB"), "line 1\nA\nB\nline 5\n", "Replaced lines 2-4 in block 'notes'"],
    [lines, range(2, 5, ""), "line 1\n", "Replaced lines 2-5 in block 'notes'"],
    ["a\r\nb\r\nc", range(2, 2, "B\nand more"), "a\r\nB\r\nand more\r\nc", "Replaced lines 2-2 in block 'notes'"],
    ["Hello 🌍 world", replace("🌍", "🌎"), "Hello 🌎 world", "Replaced first occurrence of '🌍' with '🌎' in 'notes'"],
    [
      "🔥start end",
      replace("start", "begin"),
      "🔥begin end",
      "Replaced first occurrence of 'start' with 'begin' in 'notes'",
    ],
    ["🔥🌍", { op: "set_text", text: "🔥🌎" }, "🔥🌎", "Set the text of block 'notes'"],
    ...[
      ["line 1\nline 2\n", "--- a/file\n+++ b/file\n@@ -1,2 +1,2 @@\n line 1\n-line 2\n+LINE 2\n", "line 1\nLINE 2\n"],
      ["new\nline 1\nline 2\n", "@@ -1,2 +1,3 @@\n line 1\n+between\n line 2\n", "new\nline 1\nbetween\nline 2\n"],
      ["a\nb\nc\nd\n", "@@ -2,0 +3 @@\n+between\n", "a\nb\nbetween\nc\nd\n"],
      ["", "@@ -0,0 +1 @@\n+first\n", "first\n"],
      ["a\n", "@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n", "b"],
      ["a", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n", "b\n"],
      ["a\r\nb\r\n", "@@ -1,2 +1,3 @@\n a\n-b\n+B\n+C\n", "a\r\nB\r\nC\r\n"],
      ["a\nb\n", "@@ -1,2 +1,2 @@\r\n a\r\n-b\r\n+B\r\n", "a\nB\n"],
    ].map(([before = "", hunks = "", after = ""]): [string, { op: string }, string, string] => {
      return [before, patch(hunks), after, "Applied 1 hunk(s) to block 'notes'"];
    }),
  ])("$3 (%#)", (content, operation, expected, message) => {
    const text = block({ type: "text" }, { content });
    expect(text.edit(operation)).toEqual([{ op: operation.op, message }]);
    expect(text.rendered()).toBe(expected);
    expect(text.reopened()).toBe(expected);
  });

  it.each([
    [replace("nope", "x"), "Text not found: 'nope'"],
    [replace("line 1", "x", { mode: "nth", n: 3 }), "Occurrence #3 of 'line 1' not found: there are 1"],
    [replace("(", "x", regex), "not a regular expression of RE2"],
    [replace("(?=x)", "x", regex), "not a regular expression of RE2"],
    [replace("z+", "x", regex), "Pattern not found: 'z+'"],
    [range(4, 7, "x"), "Lines 4-7 out of bounds (the text has 6 lines)"],
    [patch("nonsense"), "The patch holds no hunk"],
    [patch("@@ -1,2 +1,1 @@\n line one\n"), "The patch is no unified diff"],
    [patch("@@ -1,1 +1,1 @@\n-line one\n+x\n"), "The patch does not apply: hunk 1 of 1"],
    [{ op: "push_item", item: "x" }, "push_item does not apply to a text; it takes set_text, append_text"],
    [{ op: "set_text", text: "x", section: "notes" }, "Field not found: notes"],
    [
      { op: "set_text", text: "x".repeat(101) },
      "The block would hold 101 characters; its charLimit is 100, and it holds 35 now",
    ],
    [{ op: "redo" }, "Nothing to redo"],
  ])("refuses $op and changes nothing: $1 (%#)", (operation, message) => {
    const text = block({ type: "text" }, { content: lines, charLimit: 100 });
    expect(() => text.edit([append("more"), operation])).toThrow(message);
    expect(text.value()).toBe(lines);
    expect(text.version()).toBe(1);
  });

  it("[C13] a regular expression that would not end elsewhere takes its time, and no more", () => {
    const text = block({ type: "text" }, { content: `${"a".repeat(4000)}!`, charLimit: 5000 });
    expect(() => text.edit(replace("^(a+)+$", "x", regex))).toThrow("Pattern not found");
    const tooLarge = /not a regular expression of RE2|too large/;
    expect(() => text.edit(replace("(a{1000}){1000}", "x", regex))).toThrow(tooLarge);
    // In RE2 the bracket is a quoted character, and no class begins.
    expect(() => text.edit(replace(`\\Q[\\E|${"a{1000}".repeat(100)}`, "x", regex))).toThrow("holds \\Q");
    const each = replace("a{1000}".repeat(4), "x", regex);
    expect(() => text.edit([each, each, each])).toThrow("patterns are too large: together");
  });

  it("[C13] a hundred operations change no more places together than one edit may", () => {
    const text = block({ type: "text" }, { content: "a".repeat(100_000), charLimit: 200_000 });
    const all = (count: number) =>
      Array.from({ length: count }, (_, index) =>
        replace(index % 2 ? "b" : "a", index % 2 ? "a" : "b", { mode: "all" }),
      );
    text.edit(all(2));
    const from = performance.now();
    expect(() => text.edit(all(100))).toThrow("maxEditSplices");
    expect(performance.now() - from).toBeLessThan(3000);
  });

  it("[C13] the patterns of a hundred operations cost together what one may cost", () => {
    const text = block({ type: "text" }, { content: `${"a".repeat(20_000)}!`, charLimit: 50_000 });
    const each = replace("(?:[a-z]?[a-y]?){15}!", "!", regex);
    text.edit(each);
    const from = performance.now();
    expect(() => text.edit(Array.from({ length: 100 }, () => each))).toThrow("maxPatternSteps");
    expect(performance.now() - from).toBeLessThan(3000);
    expect(text.version()).toBe(2);
    // The next edit has a budget of its own.
    text.edit(replace("!", "?", regex));
  });

  it("[C13] the items of an edit, or of a new schema, share one budget for their checks", () => {
    const tags = (count: number) => Array.from({ length: count }, (_, at) => `${at}`);
    const unique = { type: "list", itemSchema: { type: "array", uniqueItems: true } };
    const list = block(unique, { content: [tags(300)], charLimit: 200_000 });
    const push = { op: "push_item", item: tags(300) };
    list.edit([push, push]);
    expect(() => list.edit(Array.from({ length: 100 }, () => push))).toThrow("maxSchemaSteps");
    expect(list.value()).toHaveLength(3);
    const content = Array.from({ length: 20 }, () => tags(300));
    expect(() => block(unique, { content, charLimit: 200_000 })).toThrow("maxSchemaSteps");
    const plain = BlockSchema.parse({ type: "list" });
    expect(() => checkFits(plain, BlockSchema.parse(unique), content)).toThrow("maxSchemaSteps");
  });

  it("texts that differ everywhere are set in bounded time", () => {
    const many = (letter: string) => `${letter}\n`.repeat(50_000);
    const text = block({ type: "text" }, { content: many("a"), charLimit: 200_000 });
    text.edit({ op: "set_text", text: many("b") });
    expect(text.value()).toBe(many("b"));
  });
});

describe("operations on a map", () => {
  const name = { name: "name", type: "text", required: true };
  const others = { tags: "list", age: "number", sure: "boolean", met: "timestamp", seen: "counter" };
  const fields = [name, ...Object.entries(others).map(([field, type]) => ({ name: field, type }))];
  const schema = { type: "map", fields };
  const set = (field: string, value: unknown) => ({ op: "set_field", field, value });
  const remove = (more: object) => ({ op: "remove_from_list", field: "tags", ...more });

  it("removes from a list by index or by value", () => {
    const map = block(schema, { content: { name: "Alice", tags: ["tag1", "tag2", { a: 1 }, "tag3"] } });
    map.edit([remove({ index: 1 }), remove({ value: { a: 1 } })]);
    expect(map.value()).toEqual({ name: "Alice", tags: ["tag1", "tag3"], seen: 0 });
    expect(() => map.edit(remove({ index: 9 }))).toThrow("Index 9 out of bounds (len=2)");
    expect(() => map.edit(remove({ value: "tag9" }))).toThrow("'tags' does not hold that value: load the block");
  });

  it.each([
    [set("nope", 1), "Field not found: nope"],
    [set("age", "old"), "Field 'age' takes a number, not a text"],
    [set("sure", 1), "Field 'sure' takes true or false, not a number"],
    [set("met", "yesterday"), "Field 'met' takes an ISO 8601 time, such as 2026-"],
    [set("tags", "a"), "Field 'tags' takes a list, not a text"],
    [set("name", null), "Field 'name' is required"],
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
    map.edit([set("met", "2026-02-18T15:00:00Z"), set("seen", 7), set("age", 30), set("age", null)]);
    expect(map.value()).toEqual({ name: "Alice", met: "2026-02-18T15:00:00Z", seen: 7 });
  });
});

describe("operations on a list", () => {
  const push = (item: unknown) => ({ op: "push_item", item });
  const insert = (index: number, item: unknown) => ({ op: "insert_item", index, item });
  const remove = (index: number) => ({ op: "delete_item", index });

  it("inserts, sets, moves and deletes", () => {
    const list = block({ type: "list" });
    list.edit([push("first"), push("second"), insert(1, "middle")]);
    expect(list.rendered()).toBe("1. first\n2. middle\n3. second");
    expect(() => list.edit(insert(9, "x"))).toThrow("Index 9 out of bounds (len=3)");
    expect(() => list.edit(remove(3))).toThrow("Index 3 out of bounds (len=3)");
    list.edit(remove(1));
    expect(list.rendered()).toBe("1. first\n2. second");
    list.edit([
      { op: "move_item", from: 1, to: 0 },
      { op: "set_item", index: 1, item: { done: true } },
    ]);
    expect(list.rendered()).toBe("1. second\n[x] {done: true}");
    expect(list.reopened()).toEqual(["second", { done: true }]);
  });

  it("takes only items that its schema allows", () => {
    const title = { name: "title", type: "text", required: true };
    const fields = [title, { name: "done", type: "boolean", default: false }];
    const tasks = block({ type: "list", itemSchema: { type: "map", fields } });
    tasks.edit(push({ title: "Task" }));
    expect(tasks.value()).toEqual([{ title: "Task", done: false }]);
    expect(() => tasks.edit(push({ title: "x", who: 1 }))).toThrow("Field not found: who");
    expect(() => tasks.edit(push({}))).toThrow("Field 'title' is required");
    expect(() => tasks.edit({ op: "set_item", index: 0, item: "x" })).toThrow("An item must be an object of fields");
    const words = block({ type: "list", itemSchema: { type: "text" } });
    expect(() => words.edit(push(1))).toThrow("An item must be a text, not a number");
    const numbers = block({ type: "list", itemSchema: { type: "integer", minimum: 3 } });
    expect(() => numbers.edit(push(1))).toThrow("The item breaks its schema");
    const named = block({ type: "list", itemSchema: { type: "object", required: ["x"], properties: { x: {} } } });
    expect(() => named.edit(push({}))).toThrow(/"x"\. The fields are: x \(any value, required\)$/);
    expect(() => block({ type: "list", itemSchema: { type: "array", minItems: "x" } })).toThrow("itemSchema minItems");
  });

  it("refuses what its house could not hold", () => {
    const list = block({ type: "list" }, { charLimit: 200_000 });
    for (let batch = 0; batch < 10; batch += 1) {
      list.edit(Array.from({ length: 100 }, () => push(1)));
    }
    expect(() => list.edit(push(1))).toThrow("1001 are more than 1000 (maxListItems)");
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
    const add = (entry: unknown) => () => log.edit({ op: "append_log_entry", entry });
    expect(add({ level: 1, who: "x" })).toThrow("Field not found: who");
    expect(add({})).toThrow("Field 'level' is required");
    expect(add("text")).toThrow("Field 'level' takes a number");
    expect(add({ level: 1, timestamp: "now" })).toThrow("Field 'timestamp'");
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
