import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { blocksInInput, blocksText, type KnownBlock, keyOf, labelOf } from "../../../src/agent/context/blocks.ts";
import { estimateText } from "../../../src/agent/tokens.ts";

/** Which blocks an input holds, in which order, and which of them leave where they do not fit. */
type Given = KnownBlock & { referenced: boolean };

const block = (label: string, more: Partial<Given> = {}): Given => ({
  key: label,
  label,
  type: "working",
  permission: "ReadWrite",
  rendered: `What ${label} holds.`,
  pinned: false,
  referenced: false,
  usedAt: 0,
  ...more,
});

/** Those that an event references are the batch's. */
const chosen = (blocks: Given[], maxTokens: number) => {
  const batchBlocks = new Set(blocks.filter(({ referenced }) => referenced).map(({ label }) => label));
  return blocksInInput(blocks, { batchBlocks, maxTokens });
};

const labels = (blocks: Given[], maxTokens = 10_000): string[] =>
  chosen(blocks, maxTokens).shown.map(({ label }) => label);

describe("which blocks an input holds", () => {
  test("core blocks always, working ones if pinned or referenced; core first, own first, by label", () => {
    const blocks = [
      block("pinned_config", { pinned: true }),
      block("user_profile", { referenced: true }),
      block("ephemeral_context", { referenced: true }),
      block("unpinned"),
      block("old", { type: "archival", pinned: true }),
      block("seen", { type: "log", pinned: true }),
      block("shared_core", { type: "core", sharedFrom: "Archive", key: "shared_core@ent_2" }),
      block("persona", { type: "core" }),
      block("core_memory", { type: "core" }),
      block("a_shared", { pinned: true, sharedFrom: "Archive", key: "a_shared@ent_2" }),
    ];
    expect(labels(blocks)).toEqual([
      ...["core_memory", "persona", "shared_core", "ephemeral_context"],
      ...["pinned_config", "user_profile", "a_shared"],
    ]);
  });

  test("each stands in its fence, with its description, its permission and who shares it", () => {
    const shared = {
      permission: "Append",
      sharedFrom: "Archive",
      rendered: "Content shared from another agent",
    } as const;
    const { shown } = chosen(
      [
        block("core_memory", { type: "core", description: "Core agent memory", rendered: "Content for core_memory" }),
        block("shared_notes", { ...shared, pinned: true }),
      ],
      1000,
    );
    expect(blocksText(shown)).toBe(
      [
        '<block:core_memory permission="ReadWrite">',
        "  | Core agent memory",
        "  |",
        "  | Content for core_memory",
        "</block:core_memory>",
        '<block:shared_notes permission="Append" shared_from="Archive">',
        "  | Content shared from another agent",
        "</block:shared_notes>",
      ].join("\n"),
    );
  });

  test("blocks of one label that different agents share are told apart", () => {
    expect([keyOf("notes"), keyOf("notes", "ent_1"), keyOf("notes", "ent_2")].map(labelOf)).toEqual([
      "notes",
      "notes",
      "notes",
    ]);
    expect(new Set([keyOf("notes"), keyOf("notes", "ent_1"), keyOf("notes", "ent_2")]).size).toBe(3);
  });
});

describe("blocks that do not fit", () => {
  const long = (label: string, more: Partial<Given>) =>
    block(label, { rendered: `${label} says a few more words.\n`.repeat(30), ...more });

  test("working blocks leave first, unpinned before pinned, longest unused first", () => {
    const blocks = [
      long("core", { type: "core" }),
      long("pinned_old", { pinned: true, usedAt: 1 }),
      long("pinned_new", { pinned: true, usedAt: 9 }),
      long("referenced", { referenced: true, usedAt: 100 }),
    ];
    const sizeOf = (...those: string[]): number =>
      estimateText(blocksText(chosen(blocks, 10_000).shown.filter(({ label }) => those.includes(label))));
    const three = sizeOf("core", "pinned_new", "pinned_old") + 10;
    const two = sizeOf("core", "pinned_new") + 10;
    expect(labels(blocks, three)).toEqual(["core", "pinned_new", "pinned_old"]);
    expect(labels(blocks, two)).toEqual(["core", "pinned_new"]);
    expect(chosen(blocks, two).dropped).toEqual([
      { name: "block:referenced", reason: "it does not fit context.memoryTokens: block_load reads it" },
      { name: "block:pinned_old", reason: "it does not fit context.memoryTokens: block_load reads it" },
    ]);
  });

  test("a core one never leaves: it is cut at its end, and says so", () => {
    const { shown, dropped } = chosen([long("core", { type: "core" })], 100);
    expect(shown[0]?.text).toMatch(
      /^<block:core permission="ReadWrite">\n( {2}\| core says a few more words\.\n)+ {2}\[The rest does not fit context\.memoryTokens: block_load reads it\]\n<\/block:core>$/,
    );
    expect(estimateText(shown[0]?.text ?? "")).toBeLessThanOrEqual(100);
    expect(dropped).toEqual([{ name: "block:core", reason: "its end does not fit context.memoryTokens" }]);
  });

  test("whatever they are, all core ones are there, in order, and what is left out is named", () => {
    const any = fc.record({
      type: fc.constantFrom("core" as const, "working" as const, "archival" as const, "log" as const),
      lines: fc.integer({ min: 0, max: 40 }),
      pinned: fc.boolean(),
      referenced: fc.boolean(),
      usedAt: fc.integer({ min: 0, max: 9 }),
    });
    fc.assert(
      fc.property(fc.array(any, { maxLength: 8 }), fc.integer({ min: 200, max: 2000 }), (all, maxTokens) => {
        const blocks = all.map(({ lines, ...more }, index) =>
          block(`b${index}`, { ...more, rendered: "Some words.\n".repeat(lines) }),
        );
        const { shown, dropped } = chosen(blocks, maxTokens);
        const wanted = blocks.filter(
          ({ type, pinned, referenced }) => type === "core" || (type === "working" && (pinned || referenced)),
        );
        const left = dropped
          .filter(({ reason }) => reason.startsWith("it does"))
          .map(({ name }) => name.slice("block:".length));
        expect([...shown.map(({ label }) => label), ...left].sort()).toEqual(wanted.map(({ label }) => label).sort());
        expect(shown.filter(({ type }) => type === "core").length).toBe(
          wanted.filter(({ type }) => type === "core").length,
        );
        expect(shown.reduce((sum, { text }) => sum + estimateText(text), 0)).toBeLessThanOrEqual(maxTokens);
        expect(chosen(blocks, maxTokens)).toEqual({ shown, dropped });
      }),
      { numRuns: 1000, seed: 33 },
    );
  });
});
