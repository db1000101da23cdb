import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { CreateBlock } from "../../../src/protocol/block.ts";
import { unwrap } from "../../../src/shared/errors.ts";
import { call, installModel, scriptedModel, step, text } from "../../support/scripted-model.ts";
import { ended, openHouse, undoLater } from "../fixture.ts";

/** The switch that leaves an agent without the tools for its memory. */
const restore = undoLater();

const calls = {
  block_load: { label: "notes" },
  block_edit: { label: "notes", operations: [{ op: "set_text", text: "Changed." }] },
  block_create: { label: "more", type: "working", description: "", schema: { type: "text" } },
  block_pin: { label: "notes" },
  block_unpin: { label: "notes" },
  block_archive: { label: "notes" },
  block_viewport: { label: "notes", startLine: 1, displayLines: 1 },
  block_share: { label: "notes", agentId: "ent_X" },
  block_unshare: { label: "notes", agentId: "ent_X" },
  block_history: { label: "notes" },
  recall: { op: "insert", content: "Remember this." },
  search: { query: "Remember" },
};
const names = Object.keys(calls);

test.for(["consciousness", "timeline"] as const)(
  "a %s with memoryTools off has no memory tools; its blocks are still read",
  async (continuity) => {
    const house = await openHouse();
    const { workspaceId } = house;
    const husam = await house.person("Husam");
    const analyst = await house.agent({ name: "Analyst", continuity, memoryTools: false });
    const space = await house.space("Alpha", [husam, analyst]);
    const agent = env.AGENT.getByName(analyst.id);
    unwrap(
      await agent.createBlock(
        workspaceId,
        CreateBlock.parse({ label: "notes", type: "core", content: "As it was." }),
        "system",
      ),
    );
    const model = scriptedModel([
      step(...Object.entries(calls).map(([name, input]) => call(name, input))),
      step(text("None of them.")),
      step(text("All of them.")),
    ]);
    restore.push(installModel(model));
    const offered = () => (model.calls.at(-1)?.tools ?? []).map(({ name }) => name);

    await space.post(husam, "What do you keep?");
    const [run] = await ended(workspaceId, analyst, 1);
    expect(offered().filter((name) => names.includes(name))).toEqual([]);
    expect(offered()).toContain("set_memories");
    const made = run?.steps[0]?.toolCalls ?? [];
    expect(made.map(({ name }) => name)).toEqual(names);
    for (const { output } of made) expect(output).toMatchObject({ error: { code: "tool_unknown" } });
    expect(JSON.stringify(model.calls[0]?.prompt)).toContain("As it was.");
    const blocks = unwrap(await agent.blocks(workspaceId));
    expect(blocks.map(({ label, rendered, pinned }) => [label, rendered, pinned])).toEqual([
      ["notes", "As it was.", false],
    ]);
    expect(unwrap(await agent.archival(workspaceId, { limit: 10 })).items).toEqual([]);

    unwrap(await agent.update(workspaceId, { memoryTools: true }));
    await space.post(husam, "And now?");
    await ended(workspaceId, analyst, 2);
    expect(offered().filter((name) => names.includes(name))).toEqual(names);
  },
);
