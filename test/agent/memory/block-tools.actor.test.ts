import { abortAllDurableObjects } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, test, vi } from "vitest";
import * as z from "zod";
import { Agent } from "../../../src/agent/agent.ts";
import { spaceAnswerMs } from "../../../src/agent/bounds.ts";
import { loadLoro } from "../../../src/agent/memory/documents/document.ts";
import { CreateBlock, type EditBlock } from "../../../src/protocol/block.ts";
import type { EntityRef } from "../../../src/protocol/rpc.ts";
import { unwrap } from "../../../src/shared/errors.ts";
import { armFault } from "../../../src/shared/fault.ts";
import { yesTo } from "../../support/as-shown.ts";
import { createGate } from "../../support/gate.ts";
import {
  call,
  installModel,
  type ScriptedPart,
  type ScriptedStep,
  scriptedModel,
  step,
  text,
} from "../../support/scripted-model.ts";
import { shorten } from "../../support/shorten.ts";
import { ended, openHouse, passTime, runsOf, undoLater } from "../fixture.ts";

/** What agents do with their blocks, by their tools. */
const restore = undoLater();

// It takes its time under vite, which makes it anew for each file.
beforeAll(() => loadLoro(), 60_000);

const scene = async (settings: { continuity?: "timeline" | "consciousness" } = {}) => {
  const house = await openHouse();
  const ann = await house.person("Ann");
  const ben = await house.person("Ben");
  const agent = await house.agent({ name: "Analyst", continuity: "timeline", ...settings });
  const archive = await house.agent({ name: "Archive", continuity: "timeline" });
  const eve = await house.agent({ name: "Eve", continuity: "timeline" });
  const space = await house.space("Alpha", [ann, ben, agent]);
  await house.space("Beta", [agent, archive, eve]);
  const { workspaceId } = house;
  const stub = (of: EntityRef = agent) => env.AGENT.getByName(of.id);
  const play = (...steps: ScriptedStep[]): void => {
    restore.push(installModel(scriptedModel(steps)));
  };
  /** What the calls of the agent's runs came to, in order. */
  const results = async () =>
    (await runsOf(workspaceId, agent))
      .reverse()
      .flatMap((run) => run.steps)
      .flatMap((one) => one.toolCalls)
      .map(({ output }) => output);
  const go = async (): Promise<void> => {
    await space.post(ann, "Go");
    await ended(workspaceId, agent, 1);
  };
  return {
    ...{ workspaceId, ann, ben, agent, archive, eve, space, play, results, go },
    /** Plays a run that makes these calls, one a step. Answers what they came to. */
    run: async (...calls: ScriptedPart[]) => {
      play(...calls.map((each) => step(each)), step(text("Done.")));
      await go();
      return results();
    },
    create: async (block: object, of?: EntityRef) =>
      unwrap(
        await stub(of).createBlock(
          workspaceId,
          CreateBlock.parse({ label: "notes", type: "working", ...block }),
          "system",
        ),
      ),
    block: async (label = "notes", of?: EntityRef) => unwrap(await stub(of).block(workspaceId, label)),
    history: async (label = "notes", of?: EntityRef) =>
      unwrap(await stub(of).blockHistory(workspaceId, label, { limit: 100 })).items,
    share: async (permission: "ReadOnly" | "Append" | "Human", of: EntityRef, to: EntityRef) =>
      unwrap(await stub(of).shareBlock(workspaceId, "notes", { granteeId: to.id, permission })),
  };
};

const edit = (operations: EditBlock["operations"] | object[], more: object = {}) =>
  call("block_edit", { label: "notes", operations, ...more });

describe("a block that an agent keeps with the people of a space", () => {
  test("is shared with a space by name, and taken back; all else is told as it is", async () => {
    const { play, go, results, create, space, agent, workspaceId } = await scene();
    await create({ content: "x", permission: "ReadWrite" });
    const share = (input: object) => call("block_share", { label: "notes", ...input });
    play(
      step(
        share({ space: "Alpha" }),
        share({ space: "Gamma" }),
        share({ space: "Alpha", agent: "Archive" }),
        share({}),
        share({ space: "Alpha", permission: "Human" }),
        share({ space: "Beta", permission: "Admin" }),
        share({ space: "Beta", permission: "ReadOnly" }),
      ),
      step(
        call("block_unshare", { label: "notes", space: "Beta" }),
        call("block_unshare", { label: "notes", space: "Beta" }),
      ),
      step(text("done")),
    );
    await go();
    expect(await results()).toMatchObject([
      { success: true },
      { error: { code: "not_found", message: expect.stringContaining('you are in no space "Gamma"') } },
      { error: { code: "tool_input_invalid" } },
      { error: { code: "tool_input_invalid" } },
      { error: { code: "tool_input_invalid" } },
      { error: { code: "forbidden", message: expect.stringContaining("the block has ReadWrite") } },
      { success: true },
      { success: true },
      { error: { code: "not_found" } },
    ]);
    const shared = unwrap(await env.AGENT.getByName(agent.id).blockGrants(workspaceId, "notes"));
    expect(shared).toMatchObject([{ granteeId: space.id, permission: "ReadWrite" }]);
  });

  test("[D1] is changed on the version that the agent read, though a person was faster", async () => {
    const { run, create, block, agent, workspaceId } = await scene();
    await create({ schema: { type: "list" }, content: ["a", "b", "c"] });
    const operations = [{ op: "delete_item", index: 0 } as const];
    unwrap(await env.AGENT.getByName(agent.id).editBlock(workspaceId, "notes", { operations, as: "system" }, "system"));
    await run(edit([{ op: "set_item", index: 1, item: "B" }], { onVersion: 1 }));
    expect((await block()).value).toEqual(["B", "c"]);
  });
});

describe("block tools", () => {
  test("an agent makes a block, changes it, reads it, and knows what was done", async () => {
    const { run, block, history, agent } = await scene();
    const made = { label: "notes", schema: { type: "list" }, permission: "Admin", pinned: true, content: ["Milk"] };
    const [created, edited, loaded, undone, versions] = await run(
      call("block_create", made),
      edit([
        { op: "push_item", item: { title: "Eggs", done: false } },
        { op: "delete_item", index: 0 },
      ]),
      call("block_load", { label: "notes" }),
      edit([{ op: "undo" }]),
      call("block_history", { label: "notes" }),
      call("block_unpin", { label: "notes" }),
      call("block_archive", { label: "notes" }),
    );
    expect(created).toEqual({ success: true, label: "notes", version: 1 });
    expect(edited).toEqual({
      success: true,
      version: 2,
      results: ["Inserted item 1 into block 'notes'", "Deleted item 0 of block 'notes'"],
      content: "[ ] {done: false, title: Eggs}",
    });
    expect(loaded).toMatchObject({
      label: "notes",
      type: "working",
      permission: "Admin",
      version: 2,
      content: "[ ] {done: false, title: Eggs}",
    });
    expect(undone).toMatchObject({ version: 3, content: "1. Milk" });
    expect(versions).toMatchObject({ versions: [{ version: 3, author: `agent:${agent.id}:undo` }, {}, {}] });
    expect(await block()).toMatchObject({ type: "archival", pinned: false, value: ["Milk"] });
    expect((await history()).map(({ author }) => author)).toEqual([
      `agent:${agent.id}:undo`,
      `agent:${agent.id}:delete`,
      `agent:${agent.id}:create`,
    ]);
  });

  test("[S4] what cannot be done is told to the model, and changes nothing", async () => {
    const { run, create, block } = await scene();
    await create({ permission: "Append", content: "a" });
    await create({ label: "persona", type: "core", content: "calm" });
    const outputs = await run(
      edit([{ op: "set_text", text: "x" }]),
      edit([{ op: "append_text" }]),
      edit([{ op: "append_text", text: "\ud83d" }]),
      edit([{ op: "push_item", item: 1 }]),
      call("block_edit", { label: "nope", operations: [{ op: "undo" }] }),
      call("block_archive", { label: "persona" }),
      call("block_create", { label: "notes" }),
      call("block_create", { label: "more", schema: { type: "poem" } }),
      call("block_viewport", { label: "notes", startLine: 1 }),
      call("block_share", { label: "notes", agent: "Archive", permission: "Admin" }),
      call("block_share", { label: "notes", agent: "Nobody" }),
    );
    const codes = outputs.map((result) => (result as { error?: { code: string } }).error?.code);
    expect(codes).toEqual([
      ...["forbidden", "tool_input_invalid", "tool_input_invalid", "edit_refused", "not_found", "forbidden"],
      ...["name_taken", "tool_input_invalid", "tool_input_invalid", "forbidden", "not_found"],
    ]);
    expect(await block()).toMatchObject({ value: "a", version: 1 });
  });

  test("a long text is read through a viewport, within the room that a result has", async () => {
    const { run, create } = await scene();
    await create({
      content: Array.from({ length: 30_000 }, (_, line) => `line ${line}`)
        .join("\n")
        .slice(0, 200_000),
      charLimit: 200_000,
    });
    const [first, , windowed, page, end] = await run(
      call("block_load", { label: "notes" }),
      call("block_viewport", { label: "notes", startLine: 100, displayLines: 2 }),
      call("block_load", { label: "notes" }),
      call("block_load", { label: "notes", startLine: 7, lines: 2 }),
      call("block_load", { label: "notes", startLine: 30_000 }),
    );
    const { note } = z.object({ note: z.string() }).parse(first);
    const [, shown] = /^cut: (\d+) of \d+ lines; block_load with startLine: \d+ reads on$/.exec(note) ?? [];
    expect(note).toContain(`startLine: ${Number(shown) + 1} `);
    expect(page).toMatchObject({ content: "line 6\nline 7", note: expect.stringContaining("startLine: 9 reads on") });
    const beyond = expect.stringMatching(/^startLine: it has (\d+) lines, so \1 is the last$/);
    expect(end).toMatchObject({ error: { code: "tool_input_invalid", message: beyond } });
    expect(windowed).toHaveProperty("hidden");
    expect(windowed).toMatchObject({
      content: expect.stringMatching(/^\[Showing lines 100-101 of \d+\]\nline 99\nline 100$/),
    });
  });

  test.each(["agent.after-call", "agent.after-effect"] as const)(
    "[R2] [R3] an edit that is cut at %s is made once",
    async (point) => {
      const { play, results, block, history, space, ann, agent, workspaceId } = await scene();
      play(
        step(call("block_create", { label: "notes", content: "a" })),
        step(edit([{ op: "append_text", text: "b" }])),
        step(text("Done.")),
        step(text("Done.")),
      );
      void armFault(point, 1);
      await space.post(ann, "Go").catch(() => undefined);
      await vi.waitFor(
        async () => {
          await passTime(agent, 26_000).catch(() => undefined);
          expect((await runsOf(workspaceId, agent)).map(({ status }) => status)).toEqual(["completed"]);
        },
        { timeout: 10_000, interval: 50 },
      );
      expect(await block()).toMatchObject({ value: "ab", version: 2 });
      expect(await history()).toHaveLength(2);
      expect(await results()).toMatchObject([
        { success: true, version: 1 },
        { success: true, version: 2, content: "ab" },
      ]);
    },
  );
});

describe("shared blocks", () => {
  test("a reader edits at its owner with the permission that it was given", async () => {
    const { run, create, share, block, history, agent, archive, workspaceId } = await scene();
    await create({ content: "a" }, archive);
    await share("Append", archive, agent);
    const outputs = await run(
      call("block_load", { label: "notes" }),
      edit([{ op: "append_text", text: "b" }]),
      edit([{ op: "set_text", text: "x" }]),
      call("block_load", { label: "notes", from: "Archive" }),
      call("block_pin", { label: "notes" }),
    );
    expect(outputs).toMatchObject([
      { content: "a", permission: "Append", sharedFrom: "Archive" },
      { success: true, version: 2, content: "ab" },
      { success: false, error: { code: "forbidden" } },
      { content: "ab" },
      { success: true },
    ]);
    expect(await block("notes", archive)).toMatchObject({ value: "ab", pinned: false });
    expect((await history("notes", archive))[0]?.author).toBe(`agent:${agent.id}:append`);
    expect(unwrap(await env.AGENT.getByName(agent.id).blocks(workspaceId))).toMatchObject([
      { label: "notes", pinned: true },
    ]);
  });

  test("[R5] [R2] an edit that reaches the owner after the reader stopped waiting changes nothing", async () => {
    const { create, share, block, agent, archive, workspaceId } = await scene();
    await create({ content: "a" }, archive);
    await share("Append", archive, agent);
    const operations = [{ op: "append_text" as const, text: "b" }];
    const by = { kind: "agent" as const, agentId: agent.id, name: agent.name };
    const edited = (until: number) =>
      env.AGENT.getByName(archive.id).editSharedBlock(workspaceId, "notes", { by, operations, until });
    expect(await edited(Date.now() - 1)).toMatchObject({ ok: false, problem: { code: "unavailable" } });
    expect((await block("notes", archive)).rendered).toBe("a");
    unwrap(await edited(Date.now() + 60_000));
    expect((await block("notes", archive)).rendered).toBe("ab");
  });

  test("[R5] [R2] an edit that its owner comes to after the run was canceled is not made", async () => {
    shorten(spaceAnswerMs);
    const { play, create, share, block, space, ann, agent, archive, workspaceId } = await scene();
    await create({ content: "a" }, archive);
    await share("Append", archive, agent);
    const gate = createGate();
    const come = vi.fn<() => void>();
    const { editSharedBlock } = Agent.prototype;
    const owner = vi.spyOn(Agent.prototype, "editSharedBlock").mockImplementation(async function (
      this: Agent,
      ...edited: Parameters<typeof editSharedBlock>
    ) {
      gate.reach();
      await gate.opened;
      return editSharedBlock.apply(this, edited).finally(come);
    });
    restore.push(() => owner.mockRestore());
    play(step(edit([{ op: "append_text", text: "b" }])));
    await space.post(ann, "Go");
    await gate.reached;
    const [run] = await runsOf(workspaceId, agent);
    unwrap(await env.AGENT.getByName(agent.id).cancelRun(workspaceId, run?.id ?? ""));
    vi.setSystemTime(Date.now() + spaceAnswerMs);
    gate.open();
    await vi.waitFor(() => expect(come).toHaveBeenCalledTimes(owner.mock.calls.length));
    expect((await block("notes", archive)).rendered).toBe("a");
  });

  test("[R3] [R2] an edit whose answer was lost is reported as outcome_unknown", async () => {
    const { run, create, share, block, agent, archive } = await scene();
    await create({ content: "a" }, archive);
    await share("Append", archive, agent);
    const { editSharedBlock } = Agent.prototype;
    const owner = vi.spyOn(Agent.prototype, "editSharedBlock").mockImplementation(async function (
      this: Agent,
      ...edited: Parameters<typeof editSharedBlock>
    ) {
      await editSharedBlock.apply(this, edited);
      throw new Error("overloaded");
    });
    restore.push(() => owner.mockRestore());
    const outputs = await run(edit([{ op: "append_text", text: "b" }]));
    expect((await block("notes", archive)).rendered).toBe("ab");
    expect(outputs).toMatchObject([{ success: false, error: { code: "outcome_unknown" } }]);
  });

  test("[S4] an owner that never answers delays only its own block, which reads as unavailable", async () => {
    const { create, share, agent, archive, workspaceId } = await scene();
    await create({ content: "a" }, archive);
    await share("Append", archive, agent);
    const never = (): Promise<never> => new Promise(() => undefined);
    const { block } = Agent.prototype;
    const silent = [
      vi.spyOn(Agent.prototype, "readSharedBlocks").mockImplementation(never),
      vi.spyOn(Agent.prototype, "block").mockImplementation(function (this: Agent, ...[of, label, version, granteeId]) {
        return granteeId === undefined ? block.call(this, of, label, version) : never();
      }),
    ];
    const { timeout } = AbortSignal;
    const soon = vi.spyOn(AbortSignal, "timeout").mockImplementation((ms) => timeout.call(AbortSignal, ms / 300));
    restore.push(() => {
      for (const spy of [...silent, soon]) spy.mockRestore();
    });
    const stub = env.AGENT.getByName(agent.id);
    expect(unwrap(await stub.blocks(workspaceId))).toMatchObject([{ label: "notes", rendered: "(unavailable)" }]);
    expect(await stub.block(workspaceId, "notes")).toMatchObject({ ok: false, problem: { code: "unavailable" } });
  });

  test("an agent shares its own, and takes it back at once", async () => {
    const { play, go, results, create, space, ann, agent, archive, workspaceId } = await scene();
    await create({ content: "a" });
    play(
      step(call("block_share", { label: "notes", agent: "Archive", permission: "ReadOnly" })),
      step(text("Done.")),
      step(call("block_unshare", { label: "notes", agent: archive.id })),
      step(text("Done.")),
    );
    await go();
    expect(unwrap(await env.AGENT.getByName(archive.id).block(workspaceId, "notes"))).toMatchObject({
      value: "a",
      permission: "ReadOnly",
      sharedFrom: { agentId: agent.id, agentName: "Analyst" },
    });
    await space.post(ann, "Back");
    await ended(workspaceId, agent, 2);
    expect(await results()).toEqual([{ success: true }, { success: true }]);
    expect((await env.AGENT.getByName(archive.id).block(workspaceId, "notes")).ok).toBe(false);
  });

  test("its own block comes before another's of the same name, which is reached by its owner", async () => {
    const { run, create, share, block, agent, archive } = await scene();
    await create({ content: "mine" });
    await create({ content: "theirs" }, archive);
    await share("Append", archive, agent);
    const outputs = await run(
      call("block_load", { label: "notes" }),
      call("block_load", { label: "notes", from: "Archive" }),
      call("block_edit", { label: "notes", from: "Nobody", operations: [{ op: "set_text", text: "x" }] }),
    );
    const refused = { error: { code: "not_found", message: expect.stringContaining("leave out from") } };
    expect(outputs).toMatchObject([{ content: "mine" }, { content: "theirs" }, refused]);
    expect((await block()).rendered).toBe("mine");
  });
});

describe("consent", () => {
  const asked = async (space: Awaited<ReturnType<typeof scene>>["space"]) =>
    vi.waitFor(async () => {
      const found = (await space.messages()).flatMap(({ toolCall }) => toolCall ?? []).at(-1);
      if (found?.status !== "requires_action") throw new Error(`nothing is asked: ${found?.status}`);
      return found;
    });

  test("a block of Human waits for anybody's yes, and is edited then", async () => {
    const { play, results, create, block, history, space, ann, ben, agent, workspaceId } = await scene();
    await create({ permission: "Human", content: "a" });
    play(step(edit([{ op: "set_text", text: "b" }])), step(text("Done.")));
    const { id } = await space.post(ann, "Go");
    const waiting = await asked(space);
    expect(waiting).toMatchObject({ name: "block_edit", input: { label: "notes" }, awaits: { kind: "approval" } });
    expect(await block()).toMatchObject({ value: "a" });
    await abortAllDurableObjects();
    unwrap(await space.stub().answerToolCall(space.as(ben), waiting.id, yesTo(waiting)));
    await ended(workspaceId, agent, 1);
    expect(await block()).toMatchObject({ value: "b", version: 2 });
    expect((await history())[0]).toMatchObject({ author: `agent:${agent.id}:edit`, sources: [id] });
    expect(await results()).toMatchObject([{ success: true, version: 2 }]);
  });

  test("a block of Partner waits for its partner, whose no is told", async () => {
    const { play, results, create, block, space, ann, ben, agent, workspaceId } = await scene();
    await create({ permission: "Partner", partnerEntityId: ben.id, content: "a" });
    play(step(edit([{ op: "append_text", text: "b" }])), step(text("Done.")));
    await space.post(ann, "Go");
    const waiting = await asked(space);
    expect((await space.stub().answerToolCall(space.as(ann), waiting.id, yesTo(waiting))).ok).toBe(false);
    unwrap(
      await space.stub().answerToolCall(space.as(ben), waiting.id, { result: { approved: false, note: "not yet" } }),
    );
    await ended(workspaceId, agent, 1);
    expect(await results()).toMatchObject([{ success: false, error: { code: "approval_rejected" } }]);
    expect(JSON.stringify(await results())).toContain("not yet");
    expect(await block()).toMatchObject({ value: "a", version: 1 });
  });

  test("[C2] the yes of who is the block's partner no more changes nothing", async () => {
    const { play, results, create, block, space, ann, ben, agent, workspaceId } = await scene();
    await create({ permission: "Partner", partnerEntityId: ben.id, content: "a" });
    play(step(edit([{ op: "append_text", text: "b" }])), step(text("Done.")));
    await space.post(ann, "Go");
    const waiting = await asked(space);
    await env.AGENT.getByName(agent.id).updateBlock(workspaceId, "notes", { partnerEntityId: ann.id }, "system");
    unwrap(await space.stub().answerToolCall(space.as(ben), waiting.id, yesTo(waiting)));
    await ended(workspaceId, agent, 1);
    expect(await results()).toMatchObject([{ success: false, error: { code: "approval_changed" } }]);
    expect(await block()).toMatchObject({ value: "a", version: 1 });
  });

  test("[C2] the yes to an edit of a place edits what stood there when people were asked", async () => {
    const { play, results, create, share, block, space, ann, agent, archive, workspaceId } = await scene();
    await create({ content: "rent: 10\ngift: 20" }, archive);
    await share("Human", archive, agent);
    play(step(edit([{ op: "edit_range", startLine: 2, endLine: 2, text: "gift: 0" }])), step(text("Done.")));
    await space.post(ann, "Go");
    const waiting = await asked(space);
    const faster = { operations: [{ op: "replace_text", old: "rent", new: "lead: 5\nrent", mode: "first" } as const] };
    unwrap(
      await env.AGENT.getByName(archive.id).editBlock(workspaceId, "notes", { ...faster, as: "system" }, "system"),
    );
    unwrap(await space.stub().answerToolCall(space.as(ann), waiting.id, yesTo(waiting)));
    await ended(workspaceId, agent, 1);
    expect(await block("notes", archive)).toMatchObject({ value: "lead: 5\nrent: 10\ngift: 0" });
    expect(waiting.awaits?.shown).toContainEqual({ path: "input.onVersion", text: "1", hidden: 0 });
    expect(await results()).toMatchObject([{ success: true, version: 3 }]);
  });

  test("[C2] the yes to an edit of a block edits none that was made under its label since", async () => {
    const { play, results, create, block, space, ann, agent, workspaceId } = await scene();
    await create({ permission: "Human", content: "a" });
    play(step(edit([{ op: "set_text", text: "b" }])), step(text("Done.")));
    await space.post(ann, "Go");
    const waiting = await asked(space);
    unwrap(await env.AGENT.getByName(agent.id).deleteBlock(workspaceId, "notes", "system", "system"));
    vi.setSystemTime(Date.now() + 1000);
    await create({ permission: "Human", content: "x" });
    unwrap(await space.stub().answerToolCall(space.as(ann), waiting.id, yesTo(waiting)));
    await ended(workspaceId, agent, 1);
    expect(await block()).toMatchObject({ value: "x" });
    expect(await results()).toMatchObject([{ error: { code: "approval_changed" } }]);
  });

  test.each<[string, { from?: string }]>([
    ["no other agent's", {}],
    ["none of who is called so by then", { from: "Archive" }],
  ])("[C1] the yes to an edit of one agent's block edits %s", async (_, named) => {
    const { play, results, create, share, block, space, ann, agent, archive, eve, workspaceId } = await scene();
    await create({ content: "a" }, archive);
    await share("Human", archive, agent);
    play(step(edit([{ op: "append_text", text: "b" }], named)), step(text("Done.")));
    await space.post(ann, "Go");
    const waiting = await asked(space);
    unwrap(await env.AGENT.getByName(archive.id).unshareBlock(workspaceId, "notes", agent.id));
    if (named.from) unwrap(await env.AGENT.getByName(eve.id).update(workspaceId, { name: named.from }));
    await create({ content: "x" }, eve);
    await share("Human", eve, agent);
    unwrap(await space.stub().answerToolCall(space.as(ann), waiting.id, yesTo(waiting)));
    await ended(workspaceId, agent, 1);
    expect(await block("notes", eve)).toMatchObject({ value: "x" });
    const target = { path: "target", text: `a block of "Archive" (${archive.id})`, hidden: 0 };
    expect(waiting.awaits?.shown).toContainEqual(target);
    expect(await results()).toMatchObject([{ error: { code: "approval_changed" } }]);
  });

  test("a living agent goes on meanwhile, and hears of the edit through its inbox", async () => {
    const { play, create, block, space, ann, agent, workspaceId } = await scene({ continuity: "consciousness" });
    await create({ permission: "Human", content: "a" });
    play(
      step(call("enter_space", { spaceId: space.id })),
      step(edit([{ op: "append_text", text: "b" }])),
      step(text("Asked.")),
      step(text("Done.")),
    );
    await space.post(ann, "Go");
    const waiting = await asked(space);
    await ended(workspaceId, agent, 1);
    unwrap(await space.stub().answerToolCall(space.as(ann), waiting.id, yesTo(waiting)));
    const runs = await ended(workspaceId, agent, 2);
    expect(runs[1]?.trigger).toMatchObject({ type: "tool_result" });
    expect(await block()).toMatchObject({ value: "ab" });
  });

  test("what no consent allows asks nobody, nor does a partner's block without partner", async () => {
    const { run, create, space } = await scene();
    await create({ permission: "Human", schema: { type: "list" }, content: ["a"] });
    await create({ label: "other", permission: "Partner" });
    const outputs = await run(
      edit([{ op: "delete_item", index: 0 }]),
      call("block_edit", { label: "other", operations: [{ op: "append_text", text: "x" }] }),
      call("block_share", { label: "other", agent: "Archive", permission: "Human" }),
    );
    expect(outputs).toMatchObject(Array.from({ length: 3 }, () => ({ error: { code: "forbidden" } })));
    expect((await space.messages()).flatMap(({ toolCall }) => toolCall ?? [])).toEqual([]);
  });

  test("consent for a shared block is asked in the reader's space, and the owner makes the edit", async () => {
    const { play, create, share, block, space, ann, agent, archive, workspaceId } = await scene();
    await create({ content: "a" }, archive);
    await share("Human", archive, agent);
    play(step(edit([{ op: "append_text", text: "b" }], { from: "Archive" })), step(text("Done.")));
    await space.post(ann, "Go");
    const waiting = await asked(space);
    unwrap(await space.stub().answerToolCall(space.as(ann), waiting.id, yesTo(waiting)));
    await ended(workspaceId, agent, 1);
    expect(await block("notes", archive)).toMatchObject({ value: "ab" });
  });
});
