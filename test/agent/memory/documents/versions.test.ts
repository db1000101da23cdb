import { describe, expect, it } from "vitest";
import { atState, forkOf, openDocument, snapshotOf, stateOf } from "../../../../src/agent/memory/documents/document.ts";
import { nodeLoro } from "../../../support/node/loro.ts";
import { agent, block } from "./block.ts";

const by = (author: string) => ({ author });

describe("undo and redo", () => {
  it("walk an author's own edits", () => {
    const text = block({ type: "text" });
    text.edit({ op: "set_text", text: "initial" }, by("system"));
    text.edit({ op: "append_text", text: " first" }, by("agent"));
    text.edit({ op: "append_text", text: " second" }, by("agent"));
    const undo = () => text.edit({ op: "undo" }, by("agent"));
    const redo = () => text.edit({ op: "redo" }, by("agent"));
    expect(undo()).toEqual([{ op: "undo", message: "Undid the last change in block 'notes'" }]);
    expect(text.rendered()).toBe("initial first");
    expect(redo()).toEqual([{ op: "redo", message: "Redid the last change in block 'notes'" }]);
    expect(text.rendered()).toBe("initial first second");
    expect(redo).toThrow("Nothing to redo");
    undo();
    undo();
    expect(text.rendered()).toBe("initial");
    expect(undo).toThrow("Nothing to undo");
    redo();
    redo();
    expect(text.rendered()).toBe("initial first second");
    expect(text.reopened()).toBe("initial first second");
  });

  it("an edit after an undo leaves nothing to redo", () => {
    const list = block({ type: "list" });
    list.edit({ op: "push_item", item: 1 });
    list.edit([{ op: "undo" }, { op: "push_item", item: 2 }]);
    expect(list.value()).toEqual([2]);
    expect(() => list.edit({ op: "redo" })).toThrow("Nothing to redo");
  });

  it("within one edit they are of its operations first", () => {
    const text = block({ type: "text" }, { content: "initial" });
    text.edit([{ op: "append_text", text: " first" }, { op: "append_text", text: " second" }, { op: "undo" }]);
    expect(text.rendered()).toBe("initial first");
    expect(text.version()).toBe(2);
    text.edit([{ op: "append_text", text: " x" }, { op: "undo" }, { op: "undo" }, { op: "redo" }]);
    expect(text.reopened()).toBe("initial first");
  });

  it("leave what others changed since", () => {
    const text = block({ type: "text" }, { content: "the cat sat\nthe dog ran\n" });
    text.edit({ op: "replace_text", old: "cat", new: "lion" }, by("agent"));
    text.edit({ op: "replace_text", old: "dog", new: "old dog" }, by("person"));
    text.edit({ op: "append_text", text: "the end\n" }, by("agent"));
    text.edit({ op: "replace_text", old: "the end", new: "the end, so far" }, by("person"));
    text.edit({ op: "undo" }, by("agent"));
    text.edit({ op: "undo" }, by("agent"));
    expect(text.value()).toBe("the cat sat\nthe old dog ran\n, so far");
  });

  it("a field that another set since keeps that value, and there is more to undo", () => {
    const map = block({ type: "map", fields: [{ name: "a" }, { name: "n", type: "counter" }] });
    const set = (value: string) => ({ op: "set_field", field: "a", value });
    map.edit({ op: "increment", field: "n", by: 5 }, by("agent"));
    map.edit(set("agent's"), by("agent"));
    map.edit([set("person's"), { op: "increment", field: "n", by: 1 }], by("person"));
    map.edit({ op: "undo" }, by("agent"));
    expect(map.value()).toEqual({ a: "person's", n: 6 });
    map.edit({ op: "undo" }, by("agent"));
    expect(map.value()).toEqual({ a: "person's", n: 1 });
  });

  it("of fractions give back the very number", () => {
    const map = block({ type: "map", fields: [{ name: "n", type: "counter" }] });
    const seen: unknown[] = [];
    for (const by of [0.1, 0.2, 0.3, 1e6, -1e6, 7.77]) {
      seen.push(map.value());
      map.edit({ op: "increment", field: "n", by });
    }
    for (const before of seen.reverse()) {
      map.edit({ op: "undo" });
      expect(map.value()).toEqual(before);
      expect(map.reopened()).toEqual(before);
    }
  });

  it("are not the agent's where what it changed is read-only since", () => {
    const fields = [{ name: "a" }, { name: "b" }];
    const before = block({ type: "map", fields }, { content: { a: "start" } });
    const set = (field: string) => before.edit({ op: "set_field", field, value: "set" }, { by: agent("Admin") });
    set("a");
    set("b");
    const held = before.with({ type: "map", fields: [{ name: "a", readOnly: true }, { name: "b" }] });
    held.edit({ op: "undo" }, { by: agent("Admin") });
    expect(held.value()).toEqual({ a: "set" });
    expect(() => held.edit({ op: "undo" }, { by: agent("Admin") })).toThrow("What undo would change is read-only");
    expect(held.value()).toEqual({ a: "set" });
    held.edit({ op: "undo" });
    expect(held.value()).toEqual({ a: "start" });
  });

  it("put items back where they were, among what came meanwhile", () => {
    const list = block({ type: "list" }, { content: ["a", "b", "c", "d"] });
    list.edit({ op: "delete_item", index: 1 }, by("agent"));
    list.edit({ op: "move_item", from: 2, to: 0 }, by("agent"));
    list.edit({ op: "insert_item", index: 1, item: "new" }, by("person"));
    expect(list.value()).toEqual(["d", "new", "a", "c"]);
    list.edit({ op: "undo" }, by("agent"));
    expect(list.value()).toEqual(["new", "a", "c", "d"]);
    list.edit({ op: "undo" }, by("agent"));
    expect(list.value()).toEqual(["new", "a", "b", "c", "d"]);
  });
});

describe("an edit that changes nothing", () => {
  it.each([
    [{ type: "text" }, "x", { op: "set_text", text: "x" }],
    [{ type: "list" }, ["x"], { op: "set_item", index: 0, item: "x" }],
    [{ type: "map", fields: [{ name: "a" }] }, { a: "x" }, { op: "set_field", field: "a", value: "x" }],
    [{ type: "map", fields: [{ name: "n", type: "counter" }] }, { n: 1 }, { op: "increment", field: "n", by: 0 }],
  ])("is no version of %j", (schema, content, operation) => {
    const held = block(schema, { content });
    expect(held.edit(operation)).toHaveLength(1);
    expect(held.version()).toBe(1);
  });
});

describe("an edit of an earlier version", () => {
  it("merges with what came since", () => {
    const text = block({ type: "text" }, { content: "one two three" });
    text.edit({ op: "replace_text", old: "one", new: "1" }, by("agent"));
    text.edit({ op: "replace_text", old: "three", new: "3" }, { author: "person", on: 1 });
    expect(text.value()).toBe("1 two 3");
    expect(text.reopened()).toBe("1 two 3");
  });

  it("keeps what both put into a list, and counts what both counted", () => {
    const list = block({ type: "list", maxItems: 4 }, { content: ["a", "b"] });
    const push = (item: unknown) => ({ op: "push_item", item });
    list.edit(push("agent's"), by("agent"));
    list.edit([push("person's"), { op: "delete_item", index: 0 }], { author: "person", on: 1 });
    expect(list.value()).toHaveLength(3);
    expect(list.value()).toEqual(expect.arrayContaining(["b", "agent's", "person's"]));
    list.edit([push(1), push(2)], { author: "person", on: 2 });
    expect(list.value()).toHaveLength(4);
    const map = block({ type: "map", fields: [{ name: "n", type: "counter" }] });
    map.edit({ op: "increment", field: "n", by: 2 });
    map.edit({ op: "increment", field: "n", by: 3 }, { on: 1 });
    expect(map.value()).toEqual({ n: 5 });
  });

  it("is refused where the merged result would be too large", () => {
    const text = block({ type: "text" }, { charLimit: 10 });
    text.edit({ op: "append_text", text: "12345678" });
    expect(() => text.edit({ op: "append_text", text: "12345678" }, { on: 1 })).toThrow("would hold 16 characters");
    expect(text.value()).toBe("12345678");
  });

  it("takes back nothing", () => {
    const text = block({ type: "text" });
    text.edit({ op: "append_text", text: "x" });
    expect(() => text.edit({ op: "undo" }, { on: 1 })).toThrow("leave out onVersion");
  });
});

describe("a snapshot without the oldest of its history", () => {
  it("goes on, merges and goes back as far as it reaches", () => {
    const loro = nodeLoro();
    const whole = openDocument(loro, []);
    const states = ["a", "b", "c", "d"].map((letter) => {
      whole.getText("text").insert(0, letter.repeat(1000));
      whole.commit();
      return stateOf(whole);
    });
    const [, second = "", third = ""] = states;
    const shallow = openDocument(loro, [], snapshotOf(whole, second));
    const read = (state: string) => atState(shallow, state, () => shallow.getText("text").toString().length);
    expect([read(second), read(third)]).toEqual([2000, 3000]);
    expect(shallow.getText("text").toString()).toBe(whole.getText("text").toString());
    const before = shallow.version();
    shallow.getText("text").insert(0, "new");
    shallow.commit();
    const fork = forkOf(shallow, second);
    fork.getText("text").insert(0, "old");
    fork.commit();
    shallow.import(fork.export({ mode: "update", from: shallow.version() }));
    expect(shallow.getText("text").toString()).toHaveLength(4006);
    const again = openDocument(loro, [shallow.export({ mode: "update", from: before })], snapshotOf(whole, second));
    expect(again.getText("text").toString()).toBe(shallow.getText("text").toString());
  });
});
