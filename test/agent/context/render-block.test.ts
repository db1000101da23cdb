import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { renderBlock } from "../../../src/agent/context/blocks.ts";
import { render } from "../../../src/agent/memory/documents/render.ts";
import { BlockSchema } from "../../../src/protocol/block-schema.ts";

const unfenced = (text: string): string => text.replace(/<\\(\\*)(\/?)(?=block)/gi, "<$1$2");

const pieces = [
  "<block:",
  "</block:notes>",
  "<\\/block:notes>",
  "</BLOCK>",
  "<",
  "\\",
  "/",
  "block",
  "\n",
  "x",
  '"',
  ">",
];
const hostile = fc
  .array(fc.oneof(fc.constantFrom(...pieces), fc.string({ maxLength: 3 })), { maxLength: 12 })
  .map((all) => all.join(""));

/** Every schema in one, with texts, items, entries and fields that try to end the block that shows them. */
const schema = BlockSchema.parse({
  type: "composite",
  sections: [
    { name: "text", schema: { type: "text" } },
    { name: "window", schema: { type: "text", viewport: { startLine: 2, displayLines: 2 } } },
    { name: "list", schema: { type: "list" } },
    { name: "log", schema: { type: "log" } },
    {
      name: "map",
      schema: {
        type: "map",
        fields: [
          { name: "word", type: "text" },
          { name: "tags", type: "list", readOnly: true },
        ],
      },
    },
  ],
});
const item = fc.oneof(hostile, fc.dictionary(hostile, hostile, { maxKeys: 3 }), fc.array(hostile, { maxLength: 2 }));
const value = fc.record({
  text: hostile,
  window: hostile,
  list: fc.array(item, { maxLength: 3 }),
  log: fc.array(fc.record({ timestamp: hostile, agent: hostile, message: hostile }), { maxLength: 3 }),
  map: fc.record({ word: hostile, tags: fc.array(item, { maxLength: 3 }) }),
});

describe("a block in a prompt", () => {
  it("says what it is, what it is for, and what it holds", () => {
    const block = { label: "notes", permission: "Append", rendered: "Content shared from another agent" } as const;
    expect(renderBlock({ ...block, sharedFrom: "Archive", description: "" })).toBe(
      '<block:notes permission="Append" shared_from="Archive">\nContent shared from another agent\n</block:notes>',
    );
    expect(renderBlock({ ...block, description: "What it is for" })).toBe(
      '<block:notes permission="Append">\nWhat it is for\n\nContent shared from another agent\n</block:notes>',
    );
    expect(renderBlock({ ...block, rendered: "" })).toBe('<block:notes permission="Append">\n\n</block:notes>');
  });

  it("[S2] nothing that it holds ends it, or begins another, and all of it can be read back", () => {
    fc.assert(
      fc.property(hostile, hostile, hostile, (rendered, description, sharedFrom) => {
        const text = renderBlock({ label: "notes", permission: "Admin", sharedFrom, description, rendered });
        expect(text.match(/<\/?block/gi)).toEqual(["<block", "</block"]);
        const [first = ""] = text.split("\n");
        expect(first.startsWith('<block:notes permission="Admin" shared_from="') && first.endsWith('">')).toBe(true);
        expect(JSON.parse(first.slice('<block:notes permission="Admin" shared_from='.length, -1))).toBe(sharedFrom);
        const inner = text.slice(first.length + 1, -"\n</block:notes>".length);
        expect(unfenced(inner)).toBe([description, rendered].filter((part) => part !== "").join("\n\n"));
      }),
      { numRuns: 1000 },
    );
  });

  it("[S2] nor does anything that a value of any schema holds, as it is rendered", () => {
    fc.assert(
      fc.property(value, (held) => {
        const rendered = render(schema, held);
        const text = renderBlock({ label: "notes", permission: "ReadWrite", rendered });
        expect(text.match(/<\/?block/gi)).toEqual(["<block", "</block"]);
        expect(unfenced(text.slice(text.indexOf("\n") + 1, -"\n</block:notes>".length))).toBe(rendered);
      }),
      { numRuns: 1000, seed: 42 },
    );
  });
});
