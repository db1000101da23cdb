import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { contentOf, partsOf } from "../../../../src/agent/memory/documents/cells.ts";
import { openDocument } from "../../../../src/agent/memory/documents/document.ts";
import { render } from "../../../../src/agent/memory/documents/render.ts";
import { applySplices, changesBetween, mergeText } from "../../../../src/agent/memory/documents/text-changes.ts";
import { BlockSchema } from "../../../../src/protocol/block-schema.ts";
import { nodeLoro } from "../../../support/node/loro.ts";
import { block } from "./block.ts";

const loro = nodeLoro();
/** A property is many documents. */
vi.setConfig({ testTimeout: 30_000 });

/** All five schemas in one, so that every operation is drawn. */
const fields = [
  { name: "word", type: "text" },
  { name: "tags", type: "list" },
  { name: "seen", type: "counter" },
];
const schema = {
  type: "composite",
  sections: ["text", "list", "log", "map"].map((type) => ({
    name: type,
    schema: type === "map" ? { type, fields } : { type },
  })),
};

const word = fc.string({ unit: "grapheme", minLength: 1, maxLength: 5 });
const index = fc.nat(4);
const inSection =
  (section: string) =>
  <Shape extends object>(shape: fc.Arbitrary<Shape>) =>
    shape.map((each) => ({ ...each, section }));
const [inText, inList, inMap] = [inSection("text"), inSection("list"), inSection("map")];

const operation = fc.oneof(
  inText(fc.record({ op: fc.constant("append_text"), text: word })),
  inText(fc.record({ op: fc.constant("set_text"), text: fc.array(word).map((words) => words.join(" ")) })),
  inText(fc.record({ op: fc.constant("replace_text"), old: word, new: word, mode: fc.constantFrom("first", "all") })),
  inList(fc.record({ op: fc.constant("push_item"), item: word })),
  inList(fc.record({ op: fc.constant("insert_item"), index, item: word })),
  inList(fc.record({ op: fc.constant("set_item"), index, item: fc.record({ done: fc.boolean() }) })),
  inList(fc.record({ op: fc.constant("delete_item"), index })),
  inList(fc.record({ op: fc.constant("move_item"), from: index, to: index })),
  inMap(fc.record({ op: fc.constant("set_field"), field: fc.constant("word"), value: fc.option(word) })),
  inMap(
    fc.record({ op: fc.constant("set_field"), field: fc.constant("tags"), value: fc.array(word, { maxLength: 3 }) }),
  ),
  inMap(fc.record({ op: fc.constant("append_to_list"), field: fc.constant("tags"), value: word })),
  inMap(fc.record({ op: fc.constant("remove_from_list"), field: fc.constant("tags"), index })),
  inMap(fc.record({ op: fc.constant("increment"), field: fc.constant("seen"), by: fc.integer({ min: -9, max: 9 }) })),
  fc.record({ op: fc.constant("append_log_entry"), entry: word, section: fc.constant("log") }),
);

/** One that does not apply as things are is refused, and changes nothing. */
const tried = (work: () => void): boolean => {
  try {
    work();
    return true;
  } catch {
    return false;
  }
};

describe("documents", () => {
  it("undo of everything gives the start, and redo of everything the end", () => {
    fc.assert(
      fc.property(fc.array(fc.array(operation, { minLength: 1, maxLength: 3 }), { maxLength: 12 }), (edits) => {
        const held = block(schema, { charLimit: 100_000 });
        const start = held.value();
        for (const operations of edits) tried(() => held.edit(operations));
        const end = held.value();
        let undone = 0;
        while (tried(() => held.edit({ op: "undo" }))) undone += 1;
        expect(held.value()).toEqual(start);
        for (let redone = 0; redone < undone; redone += 1) held.edit({ op: "redo" });
        expect(held.value()).toEqual(end);
        expect(held.reopened()).toEqual(end);
      }),
      { numRuns: 40 },
    );
  });

  it("edits of two who did not see each other's converge, and lose no insert", () => {
    const edit = fc.record({ operation, editor: fc.constantFrom("agent", "person"), stale: fc.boolean() });
    fc.assert(
      fc.property(fc.array(edit, { maxLength: 15 }), (edits) => {
        const held = block(schema, { charLimit: 100_000 });
        const base = held.version();
        let log = 0;
        let seen = 0;
        for (const { operation: drawn, editor, stale } of edits) {
          const done = tried(() => held.edit(drawn, { author: editor, ...(stale ? { on: base } : {}) }));
          if (!done) continue;
          if (drawn.op === "append_log_entry") log += 1;
          if ("by" in drawn) seen += drawn.by;
        }
        const value = held.value();
        expect(value).toMatchObject({ map: { seen } });
        expect(value).toHaveProperty("log.length", log);
        // In whatever order its updates come, they make the same document.
        const updates = held.versions.map(({ update }) => update);
        const shuffled = openDocument(loro, [updates[0] ?? new Uint8Array(), ...updates.slice(1).toReversed()]);
        expect(contentOf(shuffled, BlockSchema.parse(schema))).toEqual(value);
        expect(held.reopened()).toEqual(value);
      }),
      { numRuns: 40 },
    );
  });

  it("what two push at once is there, whatever was pushed and taken out before", () => {
    fc.assert(
      fc.property(
        fc.array(word, { minLength: 1, maxLength: 4 }),
        fc.array(word, { minLength: 1, maxLength: 4 }),
        (one, other) => {
          const list = block({ type: "list" }, { content: ["a", "b"], charLimit: 100_000 });
          list.edit([...one.map((item) => ({ op: "push_item", item })), { op: "delete_item", index: 0 }]);
          list.edit(
            [
              { op: "delete_item", index: 0 },
              { op: "move_item", from: 0, to: 0 },
              ...other.map((item) => ({ op: "insert_item", index: 0, item })),
            ],
            { on: 1 },
          );
          expect(list.value()).toHaveLength(one.length + other.length + 1);
          expect(list.value()).toEqual(expect.arrayContaining([...one, ...other, "b"]));
          const text = block({ type: "text" }, { content: "base", charLimit: 100_000 });
          text.edit({ op: "append_text", text: one.join("") });
          text.edit({ op: "append_text", text: other.join("") }, { on: 1 });
          expect(text.value()).toContain(one.join(""));
          expect(text.value()).toContain(other.join(""));
        },
      ),
      { numRuns: 40 },
    );
  });

  it("what they show is a function of what they hold", () => {
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 12 }), (operations) => {
        const held = block(schema, { charLimit: 100_000 });
        for (const each of operations) tried(() => held.edit(each));
        const again = JSON.parse(JSON.stringify(held.value()));
        expect(render(BlockSchema.parse(schema), again)).toBe(held.rendered());
      }),
      { numRuns: 40 },
    );
  });

  it("no part of a schema shares a container with another", () => {
    const cells = partsOf(BlockSchema.parse(schema)).flatMap((part) => part.cells);
    const contents = { string: "x", undefined: '"x"', number: 1, object: [{ key: 1, json: "1" }] };
    for (const cell of cells) {
      const doc = openDocument(loro, []);
      cell.write(doc, cell.empty, Object.entries(contents).find(([type]) => type === typeof cell.empty)?.[1]);
      expect(cells.filter(({ read, empty }) => JSON.stringify(read(doc)) !== JSON.stringify(empty))).toEqual([cell]);
    }
  });
});

describe("texts", () => {
  const text = fc.oneof(
    fc.string({ unit: "grapheme", maxLength: 40 }),
    fc.array(fc.constantFrom("a", "b", "\n", "🔥", "🌍"), { maxLength: 40 }).map((parts) => parts.join("")),
  );

  it("the changes between two make one of the other, and never part a surrogate pair", () => {
    fc.assert(
      fc.property(text, text, (old, next) => {
        const splices = changesBetween(old, next);
        expect(applySplices(old, splices)).toBe(next);
        for (const { at, remove, insert } of splices) {
          expect(old.slice(at, at + remove).isWellFormed()).toBe(true);
          expect(insert.isWellFormed()).toBe(true);
        }
      }),
    );
  });

  it("a merge with what did not change is the other, and a merge is always whole", () => {
    fc.assert(
      fc.property(text, text, text, (base, ours, theirs) => {
        expect(mergeText(base, base, theirs)).toBe(theirs);
        expect(mergeText(base, ours, base)).toBe(ours);
        expect(mergeText(base, ours, theirs).isWellFormed()).toBe(true);
      }),
    );
  });
});
