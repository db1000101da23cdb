import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { renderBlock } from "../../../src/agent/context/render-block.ts";

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
});
