import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { renderBlock } from "../../../src/agent/context/blocks.ts";
import { render } from "../../../src/agent/memory/documents/render.ts";
import { BlockSchema } from "../../../src/protocol/block-schema.ts";
import { quoteLines, unquoteLine, unquoteLines } from "../../../src/shared/quote.ts";

/** What stands between the tags, without its bars. Every line must have one. */
const inner = (text: string): string[] => {
  const [opening, ...lines] = text.split("\n");
  expect(opening).toMatch(/^<block:notes .*>$/);
  expect(lines.pop()).toBe("</block:notes>");
  for (const line of lines) expect(line).toMatch(/^ {2}\|(?: |$)/);
  return lines.map((line) => unquoteLine(line) ?? "");
};

/** The same text without what an escape or another line end changes. */
const asShown = (text: string): string[] => unquoteLines(quoteLines(text)).split("\n");

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
      '<block:notes permission="Append" shared_from="Archive">\n  | Content shared from another agent\n</block:notes>',
    );
    expect(renderBlock({ ...block, description: "What it is for" })).toBe(
      '<block:notes permission="Append">\n  | What it is for\n  |\n  | Content shared from another agent\n</block:notes>',
    );
    expect(renderBlock({ ...block, rendered: "" })).toBe('<block:notes permission="Append">\n</block:notes>');
  });

  it("[S2] nothing that it holds ends it, or begins another, and all of it can be read back", () => {
    fc.assert(
      fc.property(hostile, hostile, hostile, (rendered, description, sharedFrom) => {
        const text = renderBlock({ label: "notes", permission: "Admin", sharedFrom, description, rendered });
        const [first = ""] = text.split("\n");
        expect(first.startsWith('<block:notes permission="Admin" shared_from="') && first.endsWith('">')).toBe(true);
        expect(JSON.parse(first.slice('<block:notes permission="Admin" shared_from='.length, -1))).toBe(sharedFrom);
        const parts = [description, rendered].filter((part) => part !== "");
        expect(inner(text)).toEqual(parts.length === 0 ? [] : asShown(parts.join("\n\n")));
      }),
      { numRuns: 1000 },
    );
  });

  it("[S2] nor does anything that a value of any schema holds, as it is rendered", () => {
    fc.assert(
      fc.property(value, (held) => {
        const rendered = render(schema, held);
        const text = renderBlock({ label: "notes", permission: "ReadWrite", rendered });
        expect(inner(text)).toEqual(rendered === "" ? [] : asShown(rendered));
      }),
      { numRuns: 1000, seed: 42 },
    );
  });
});
