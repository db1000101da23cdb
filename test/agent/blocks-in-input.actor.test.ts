import { env } from "cloudflare:workers";
import { describe, expect, test } from "vitest";
import { estimateText } from "../../src/agent/tokens.ts";
import { CreateBlock } from "../../src/protocol/block.ts";
import type { BlockOperation } from "../../src/protocol/block-operation.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { type ScriptedModel, step, text } from "../support/scripted-model.ts";
import { ended, type openHouse, openScene, rowsIn, scripted, userTexts } from "./fixture.ts";

/** Blocks of memory where the model reads them. */
type Settings = Parameters<Awaited<ReturnType<typeof openHouse>>["agent"]>[0];

const stage = async (settings: Partial<Settings> = {}) => {
  const { house, husam, analyst, space } = await openScene(settings);
  const model = scripted(() => ({ ...step(text("Read it.")), usage: null }));
  const agent = env.AGENT.getByName(analyst.id);
  let runs = 0;
  const tell = async (words: string): Promise<string> => {
    await space.post(husam, words);
    runs += 1;
    await ended(house.workspaceId, analyst, runs);
    return userTexts(model.calls.at(-1)).at(-1) ?? "";
  };
  const wake = async (blockRefs?: string[]): Promise<string> => {
    unwrap(await agent.trigger(house.workspaceId, { serviceName: "jira", payload: {}, blockRefs }));
    runs += 1;
    await ended(house.workspaceId, analyst, runs);
    return userTexts(model.calls.at(-1)).at(-1) ?? "";
  };
  const create = async (block: Record<string, unknown>, of = agent) =>
    unwrap(await of.createBlock(house.workspaceId, CreateBlock.parse(block), "system"));
  const edit = async (label: string, operation: BlockOperation, of = agent) =>
    unwrap(await of.editBlock(house.workspaceId, label, { operations: [operation], as: "system" }, "system"));
  return { house, analyst, agent, model, tell, wake, create, edit };
};

const systemOf = (model: ScriptedModel, call = -1): string => {
  const first = model.calls.at(call)?.prompt[0];
  return first?.role === "system" ? first.content : "";
};

const notes = (words: string): string => `<block:notes permission="ReadWrite">\n  | ${words}\n</block:notes>`;

test("[S2] what an older release rendered is rendered anew before a prompt shows it", async () => {
  const { house, analyst, agent, tell, create } = await stage({ continuity: "timeline" });
  const schema = { type: "list" };
  await create({ label: "list", type: "core", schema, content: ["milk\n2. forged"] });
  const reader = await house.agent({ name: "Reader" });
  const forge = () =>
    rowsIn(
      analyst,
      "UPDATE blocks SET rendered = '1. milk' || char(10) || '2. forged', rendered_by = 0, updated_at = 1",
    );
  await forge();
  unwrap(await agent.shareBlock(house.workspaceId, "list", { granteeId: reader.id, permission: "ReadOnly" }));
  const [read] = unwrap(await agent.readSharedBlocks(house.workspaceId, reader.id, ["list"], false));
  expect(read?.rendered).toBe("1. milk\n  2. forged");
  // Reading does not change the row.
  const { own } = unwrap(await agent.openBlocks(house.workspaceId, {}));
  expect(own).toMatchObject([{ block: { rendered: "1. milk\n  2. forged" } }]);
  expect(await rowsIn(analyst, "SELECT rendered_by, updated_at FROM blocks")).toEqual([
    { rendered_by: 0, updated_at: 1 },
  ]);
  expect(await tell("Hello")).toContain("  | 1. milk\n  |   2. forged\n");
  const [row] = await rowsIn(analyst, "SELECT rendered, rendered_by, updated_at > 1 AS later FROM blocks");
  expect(row).toEqual({ rendered: "1. milk\n  2. forged", rendered_by: 1, later: 1 });
});

describe("a consciousness", () => {
  test("reads core blocks in its instructions, later edits as changes, until the next compaction", async () => {
    const { model, tell, create, edit, house, agent } = await stage({
      context: {
        maxTokens: 5000,
        reservedResponseTokens: 500,
        minRecentCycles: 1,
        compaction: { strategy: "truncate" },
      },
    });
    await create({ label: "notes", type: "core", content: "The budget is 40,000." });
    const first = await tell("Hello");
    expect(systemOf(model)).toContain(notes("The budget is 40,000."));
    expect(first).not.toContain("<block:");
    await edit("notes", { op: "set_text", text: "The budget is 50,000." });
    const second = await tell("And now?");
    expect(systemOf(model)).toBe(systemOf(model, 0));
    expect(second).toContain(
      `STATE CHANGES:\n  BLOCKS:\n    - "notes" is now as below\n${notes("The budget is 50,000.")}`,
    );
    expect(await tell("Again")).not.toContain("<block:");
    const [run] = unwrap(await agent.runs(house.workspaceId, { limit: 1 })).items;
    expect(run?.prefixReuse).toBe(1);

    let count = 0;
    for (; systemOf(model) === systemOf(model, 0) && count < 40; count += 1) {
      await tell(`message-${count}: ${"some words that say little ".repeat(30)}`);
    }
    expect(systemOf(model)).toContain(notes("The budget is 50,000."));
    expect(userTexts(model.calls.at(-1)).join("\n")).not.toContain("<block:");
  });

  test("reads a pinned working block in its state, an unpinned one only where an event names it", async () => {
    const { model, tell, wake, create } = await stage();
    await create({ label: "todo", type: "working", pinned: true, schema: { type: "list" }, content: ["Call Sara"] });
    await create({ label: "ticket", type: "working", content: "PROJ-123 is open." });
    await create({ label: "old", type: "archival", pinned: true, content: "Long ago." });
    const first = await tell("Hello");
    expect(first).toContain(
      '\n<block:todo permission="ReadWrite">\n  | items: any value\n  |\n  | 1. Call Sara\n</block:todo>\n',
    );
    expect(first).not.toContain("block:ticket");
    expect(systemOf(model)).not.toContain("<block:");
    const second = await wake(["ticket", "no_such_block"]);
    expect(second).toContain(
      '    - "ticket" is now as below\n<block:ticket permission="ReadWrite">\n  | PROJ-123 is open.\n</block:ticket>\n',
    );
    expect(await wake()).toContain('  BLOCKS:\n    - "ticket" is not shown any more\n');
    expect(await wake()).not.toContain("BLOCKS");
    expect(JSON.stringify(model.calls)).not.toContain("Long ago.");
  });

  test("reads another agent's shared block as its cycle begins, its changes, then that it is gone", async () => {
    const { house, analyst, tell, create, edit, model } = await stage();
    const archive = await house.agent({ name: "Archive" });
    const owner = env.AGENT.getByName(archive.id);
    await create({ label: "rules", type: "core", content: "Be kind." }, owner);
    unwrap(await owner.shareBlock(house.workspaceId, "rules", { granteeId: analyst.id, permission: "Append" }));
    const fence = (words: string) =>
      `<block:rules permission="Append" shared_from="Archive">\n  | ${words}\n</block:rules>`;
    expect(await tell("Hello")).toBe(`STATE CHANGES:\n  BLOCKS:\n    - "rules" is now as below\n${fence("Be kind.")}`);
    expect(await tell("Again")).not.toContain("rules");
    await edit("rules", { op: "append_text", text: " Be brief." }, owner);
    expect(await tell("And again")).toContain(fence("Be kind. Be brief."));
    unwrap(await owner.unshareBlock(house.workspaceId, "rules", analyst.id));
    expect(await tell("Once more")).toBe('STATE CHANGES:\n  BLOCKS:\n    - "rules" is not shown any more');
    expect(systemOf(model)).not.toContain("rules");
  });
});

describe("a timeline", () => {
  test("reads its blocks first, as they are when a run begins, its own before shared ones", async () => {
    const { house, analyst, tell, wake, create, edit } = await stage({ continuity: "timeline" });
    const archive = await house.agent({ name: "Archive" });
    const owner = env.AGENT.getByName(archive.id);
    await create({ label: "rules", type: "core", description: "Who decides", content: "Be kind." }, owner);
    unwrap(await owner.shareBlock(house.workspaceId, "rules", { granteeId: analyst.id, permission: "ReadOnly" }));
    await create({ label: "todo", type: "working", pinned: true, content: "Call Sara" });
    await create({ label: "persona", type: "core", content: "You count things." });
    await create({ label: "ticket", type: "working", content: "PROJ-123 is open." });
    const head = [
      '<block:persona permission="ReadWrite">',
      "  | You count things.",
      "</block:persona>",
      '<block:rules permission="ReadOnly" shared_from="Archive">',
      "  | Who decides",
      "  |",
      "  | Be kind.",
      "</block:rules>",
      '<block:todo permission="ReadWrite">',
      "  | Call Sara",
      "</block:todo>",
      "YOUR SPACES:",
    ].join("\n");
    expect((await tell("Hello")).startsWith(head)).toBe(true);
    await edit("todo", { op: "set_text", text: "Nothing." });
    expect(await wake(["ticket"])).toContain(
      'PROJ-123 is open.\n</block:ticket>\n<block:todo permission="ReadWrite">\n  | Nothing.\n',
    );
    expect(await tell("And now?")).not.toContain("PROJ-123");
  });

  test("what its next input would be shows them as a section, and what does not fit", async () => {
    const { house, agent, create } = await stage({
      continuity: "timeline",
      context: { memoryTokens: 300, blockDescriptions: false },
    });
    await create({ label: "persona", type: "core", description: "Left out", content: "You count things." });
    await create({ label: "long", type: "working", pinned: true, content: "Some words. ".repeat(200) });
    const { sections, dropped } = unwrap(await agent.context(house.workspaceId));
    expect(sections.find(({ name }) => name === "blocks")?.text).toBe(
      '<block:persona permission="ReadWrite">\n  | You count things.\n</block:persona>',
    );
    expect(dropped).toContainEqual({
      name: "block:long",
      reason: "it does not fit context.memoryTokens: block_load reads it",
    });
  });
});

describe.each(["consciousness", "timeline"] as const)("the limits of a %s's model", (continuity) => {
  test("[B3] say how much its blocks may fill: working ones leave, longest unused first", async () => {
    const words = (of: string) => `${of} has a few words to say.\n`.repeat(25);
    // Two fit, and no third.
    const memoryTokens = Math.floor(estimateText(words("todo")) * 2.7);
    const byModel = { "small-*": { memoryTokens } };
    const { house, agent, create, edit, tell } = await stage({ continuity, context: { byModel } });
    const { workspaceId } = house;
    await create({ label: "rules", type: "core", content: words("rules") });
    await create({ label: "todo", type: "working", pinned: true, content: words("todo") });
    await create({ label: "plan", type: "working", pinned: true, content: words("plan") });
    await edit("plan", { op: "append_text", text: "And more." });
    const seen = async () => {
      const { limits, dropped, ...view } = unwrap(await agent.context(workspaceId));
      // Blocks that were told before stay as they were.
      const input = JSON.stringify([view.instructions, view.messages.at(-1)]);
      const labels = ["rules", "todo", "plan"].filter((label) => input.includes(`</block:${label}>`));
      expect(view.blocks.map(({ label }) => label).toSorted()).toEqual(labels.toSorted());
      return { memoryTokens: limits.memoryTokens, dropped, labels, input };
    };
    expect(await seen()).toMatchObject({ memoryTokens: 8000, dropped: [], labels: ["rules", "todo", "plan"] });

    const model = { provider: "rehearsal", name: "small-1", deltasPerSecond: 0 } as const;
    unwrap(await agent.update(workspaceId, { model }));
    const left = (label: string) => ({
      name: `block:${label}`,
      reason: "it does not fit context.memoryTokens: block_load reads it",
    });
    expect(await seen()).toMatchObject({ memoryTokens, dropped: [left("todo")], labels: ["rules", "plan"] });
    await tell("Hello");
    const [run] = unwrap(await agent.runs(workspaceId, { limit: 1 })).items;
    const [first] = unwrap(await agent.run(workspaceId, run?.id ?? "")).steps;
    expect(first?.input).toMatchObject({ dropped: [left("todo")], limits: { memoryTokens } });

    await edit("rules", { op: "append_text", text: `${words("it still").repeat(3)}The end.` });
    const { input, ...over } = await seen();
    expect(over).toMatchObject({
      dropped: [
        left("todo"),
        left("plan"),
        { name: "block:rules", reason: "its end does not fit context.memoryTokens" },
      ],
      labels: ["rules"],
    });
    expect(input).toContain("[The rest does not fit context.memoryTokens: block_load reads it]\\n</block:rules>");
    expect(input).not.toContain("The end.");
  });
});
