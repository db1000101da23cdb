import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { maxShownFields } from "../../../src/agent/bounds.ts";
import { blocksInInput, blocksText, type KnownBlock, renderBlock } from "../../../src/agent/context/blocks.ts";
import { compose } from "../../../src/agent/context/compose.ts";
import { renderStateChanges, toldBlocks } from "../../../src/agent/context/consciousness/state.ts";
import { fieldLines } from "../../../src/agent/memory/documents/declared-fields.ts";
import { render } from "../../../src/agent/memory/documents/render.ts";
import { estimateText } from "../../../src/agent/tokens.ts";
import type { Json } from "../../../src/protocol/block.ts";
import { BlockSchema } from "../../../src/protocol/block-schema.ts";
import { due, snapshotOf } from "./cast.ts";
import { hostile } from "./hostile.ts";
import { readable } from "./readable.ts";

/** The fields that structured blocks declare, where a model reads them. */
const block = (label: string, schema: unknown, value: Json, more: Partial<KnownBlock> = {}): KnownBlock => {
  const parsed = BlockSchema.parse(schema);
  return {
    ...{ key: label, label, type: "core", permission: "ReadWrite", pinned: false, usedAt: 0, ...more },
    ...{ fields: fieldLines(parsed).join("\n"), rendered: render(parsed, value) },
  };
};

const contact = {
  type: "map",
  fields: [
    { name: "name", required: true, description: "Who it is" },
    { name: "mail", description: "Where to write; never at night" },
    { name: "visits", type: "counter" },
    { name: "since", type: "timestamp", readOnly: true },
  ],
};
const tasks = {
  type: "list",
  itemSchema: {
    type: "object",
    properties: { what: { type: "string", description: "In a few words" }, done: { type: "boolean" } },
    required: ["what"],
  },
};
const blocks = [
  block("contact", contact, { name: "Sara", visits: 3 }, { description: "Whom we write to" }),
  block("diary", { type: "log", entryFields: ["mood", { name: "level", type: "number" }] }, []),
  block("memo", { type: "text" }, "A text shows none."),
  block(
    "project",
    {
      type: "composite",
      sections: [
        { name: "facts", schema: { type: "map", fields: [{ name: "lead" }] }, description: "What is agreed" },
        { name: "log", schema: { type: "log" }, readOnly: true },
        { name: "notes", schema: { type: "text" } },
      ],
    },
    { facts: { lead: "Omar" }, log: [], notes: "Ask Sara." },
  ),
  block("tasks", tasks, []),
];
const shown = (maxTokens = 8000) => blocksInInput(blocks, { batchBlocks: new Set(), maxTokens });

test("[K11] a timeline reads what each structured block may hold above what it holds", async () => {
  const trigger = due("daily", "Daily Report", "Post it");
  const input = readable(compose(snapshotOf({ now: "15:07", spaces: [], blocks: shown(), trigger })));
  await expect(input.slice(input.indexOf("━━━ user"))).toMatchFileSnapshot("./timeline/structured-blocks.golden.txt");
});

test("[K11] a consciousness reads it with a block that changed", async () => {
  const changed = shown().shown.filter(({ label }) => label === "contact" || label === "tasks");
  const text = renderStateChanges({}, { BLOCKS: toldBlocks(changed) }, changed);
  await expect(`${text}\n`).toMatchFileSnapshot("./consciousness/structured-blocks.golden.txt");
});

describe("the fields of a schema", () => {
  const lines = (schema: unknown): string[] => fieldLines(BlockSchema.parse(schema));
  const many = Array.from({ length: 64 }, (_, index) => ({ name: `f${index}`, description: "words ".repeat(160) }));

  test.each([
    [{ type: "text" }, []],
    [{ type: "map", fields: [] }, ["fields: none"]],
    [{ type: "list" }, ["items: any value"]],
    [{ type: "list", itemSchema: { type: "text" } }, ["items: text"]],
    [{ type: "list", itemSchema: { type: "integer", minimum: 3 } }, ["items: integer"]],
    [{ type: "list", itemSchema: { type: ["string", "null"] } }, ["items: string or null"]],
    [{ type: "list", itemSchema: { enum: ["a\n", "b"] } }, ['items: one of "a\\n", "b"']],
    [
      { type: "list", itemSchema: { anyOf: [{ type: "null" }] } },
      ["items: by its schema: block_load with schema: true shows it"],
    ],
    [
      { type: "list", itemSchema: { properties: { state: { const: 5 }, n: { enum: [..."abcdefghij"] } } } },
      ['item fields: state (one of 5) · n (one of "a", "b", "c", "d", "e", "f", "g", "h", 2 more)'],
    ],
    [
      { type: "list", itemSchema: { properties: { "a b": {}, c: { type: "number" } } } },
      ["item fields: a b (any value) · c (number)"],
    ],
    [{ type: "list", itemSchema: { properties: { "a: b": true } } }, ['item fields: "a: b" (any value)']],
    [{ type: "log" }, ["entry fields: message (text)"]],
  ])("$0 read $1", (schema, expected) => expect(lines(schema)).toEqual(expected));

  test("[B3] are named up to a bound, the others counted, with the beginning of what each is for", () => {
    const [line = ""] = lines({ type: "map", fields: many });
    expect(line.split(" · ")).toHaveLength(maxShownFields + 1);
    expect(line.endsWith(` · ${64 - maxShownFields} more`)).toBe(true);
    expect(line.length).toBeLessThan(maxShownFields * 140);
    const sections = [1, 2, 3].map((index) => ({ name: `s${index}`, schema: { type: "map", fields: many } }));
    expect(lines({ type: "composite", sections }).map((each) => each.split(" · ").length)).toEqual([
      maxShownFields + 1,
      1,
      1,
    ]);
  });

  test("[B3] leave a core block that does not fit before its name does", () => {
    const large = block("large", { type: "map", fields: many }, { f0: "x" });
    const { shown, dropped } = blocksInInput([large], { batchBlocks: new Set(), maxTokens: 300 });
    expect(estimateText(blocksText(shown))).toBeLessThanOrEqual(300);
    expect(blocksText(shown)).toContain("<block:large");
    expect(dropped).toEqual([{ name: "block:large", reason: "its end does not fit context.memoryTokens" }]);
  });

  test("[S2] stand on one line each, whatever their descriptions and names are", () => {
    const property = fc.record({ type: fc.constantFrom("string", "number"), description: hostile });
    const any = fc.dictionary(hostile, property, { minKeys: 1, maxKeys: 4 });
    fc.assert(
      fc.property(any, hostile, (properties, description) => {
        const [items = "", ...none] = fieldLines({ type: "list", itemSchema: { type: "object", properties } as never });
        const [fields = ""] = fieldLines({ type: "map", fields: [{ name: "name", type: "text", description }] });
        const all = [items, fields];
        expect(none).toEqual([]);
        for (const line of all) expect(line.split(/\r\n|[\n\r\v\f\u0085\u2028\u2029]/)).toHaveLength(1);
        const text = renderBlock({ label: "notes", permission: "Admin", fields: all.join("\n"), rendered: "x" });
        const [, ...shown] = text.split("\n").slice(0, -1);
        for (const line of shown) expect(line.startsWith("  |")).toBe(true);
      }),
      { numRuns: 500 },
    );
  });
});

test("[K11] an agent whose blocks are all texts reads no fields", () => {
  const memo = block("memo", { type: "text" }, "x");
  expect(memo.fields).toBe("");
  expect(renderBlock(memo)).not.toContain("fields");
});
