import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, test, vi } from "vitest";
import * as z from "zod";
import { Agent } from "../../../src/agent/agent.ts";
import { maxSearchEntries } from "../../../src/agent/bounds.ts";
import { loadLoro } from "../../../src/agent/memory/documents/document.ts";
import { CreateBlock, type Permission, UpdateBlock } from "../../../src/protocol/block.ts";
import { ContextConfig } from "../../../src/protocol/context-config.ts";
import type { EntityRef } from "../../../src/protocol/rpc.ts";
import { unwrap } from "../../../src/shared/errors.ts";
import { armFault } from "../../../src/shared/fault.ts";
import {
  apiError,
  call,
  installModel,
  refusal,
  type ScriptedPart,
  type ScriptedStep,
  scriptedModel,
  step,
  text,
} from "../../support/scripted-model.ts";
import { type AgentSettings, ended, openHouse, passTime, rowsIn, runsOf, undoLater, userTexts } from "../fixture.ts";

/** How an agent finds its blocks and those of others, puts them away, brings them back and deletes them. */
const restore = undoLater();

// It takes its time under vite, which makes it anew for each file.
beforeAll(() => loadLoro(), 60_000);

const scene = async (settings: Partial<AgentSettings> = {}) => {
  const house = await openHouse();
  const ann = await house.person("Ann");
  const reader = await house.agent({ name: "Analyst", ...settings });
  const scribe = await house.agent({ name: "Scribe" });
  const space = await house.space("Alpha", [ann, reader]);
  const { workspaceId } = house;
  const stub = (of: EntityRef = reader) => env.AGENT.getByName(of.id);
  let runs = 0;
  const tell = async (words: string): Promise<void> => {
    await space.post(ann, words);
    runs += 1;
    await ended(workspaceId, reader, runs);
  };
  return {
    ...{ workspaceId, ann, reader, scribe, space, stub, tell },
    /** Plays a run that makes these calls, one a step. Answers what these came to. */
    run: async (...calls: ScriptedPart[]) => {
      restore.push(installModel(scriptedModel([...calls.map((each) => step(each)), step(text("Done."))])));
      await tell("Go");
      const [newest] = await runsOf(workspaceId, reader);
      return (newest?.steps ?? []).flatMap(({ toolCalls }) => toolCalls).map(({ output }) => output);
    },
    play: async (...steps: ScriptedStep[]): Promise<void> => {
      restore.push(installModel(scriptedModel(steps)));
      await tell("Go on");
    },
    /** Plays a run without calls. Answers what its model read that earlier runs did not. */
    read: async (words = "And now?"): Promise<string> => {
      const model = scriptedModel(() => ({ ...step(text("Read it.")), usage: null }));
      restore.push(installModel(model));
      await tell(words);
      const { prompt } = model.calls.at(-1) ?? { prompt: [] };
      const own = prompt.slice(prompt.findLastIndex(({ role }) => role === "assistant") + 1);
      return userTexts({ prompt: own }).join("\n");
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
    share: async (label: string, permission: Permission) =>
      unwrap(await stub(scribe).shareBlock(workspaceId, label, { granteeId: reader.id, permission })),
  };
};

const list = (input: object = {}) => call("block_list", input);
const refused = (code: string, message: string) => ({
  success: false,
  error: { code, message: expect.stringContaining(message) },
});

describe.each(["consciousness", "timeline"] as const)("a %s", (continuity) => {
  test("[K10] lists its own blocks and those that others share with it, by type and by owner", async () => {
    const { run, create, share, scribe } = await scene({ continuity });
    await create({ label: "persona", type: "core", content: "calm", permission: "ReadOnly" });
    await create({ schema: { type: "list" }, content: ["Milk"], pinned: true, description: "What to buy" });
    await create({ label: "plan", content: "Ship it." }, scribe);
    await share("plan", "ReadWrite");
    const notes = {
      ...{ label: "notes", type: "working", schema: "list", permission: "ReadWrite", size: 7, shared: false },
      ...{ owner: "Analyst", description: "What to buy", pinned: true, archived: false },
    };
    const persona = { label: "persona", type: "core", schema: "text", permission: "ReadOnly", size: 4, pinned: false };
    const plan = {
      ...{ label: "plan", type: "working", schema: "text", permission: "ReadWrite", size: 8, shared: true },
      ...{ owner: "Scribe", pinned: false, archived: false },
    };
    const outputs = await run(
      list(),
      list({ type: "core" }),
      list({ shared: true }),
      list({ shared: false, type: "working" }),
      list({ type: "poem" }),
    );
    expect(outputs).toEqual([
      { blocks: [notes, expect.objectContaining(persona), plan] },
      { blocks: [expect.objectContaining(persona)] },
      { blocks: [plan] },
      { blocks: [notes] },
      refused("tool_input_invalid", "type"),
    ]);
  });

  test("[K10] is told of a block that is newly shared with it, and finds and reads it", async () => {
    const { run, read, create, share, scribe, stub, workspaceId, reader } = await scene({ continuity });
    const line = (permission: string) =>
      `"plan" is ${continuity === "timeline" ? "" : "now "}shared with you by "Scribe" (${permission}): block_load to read it`;
    expect(await read()).not.toContain("shared with you");
    await create({ label: "plan", description: "How we ship", content: "The zeppelin leaves at noon." }, scribe);
    await share("plan", "ReadWrite");
    const heading = continuity === "timeline" ? "BLOCKS:\n  - " : "STATE CHANGES:\n  BLOCKS:\n    - ";
    expect(await read()).toContain(`${heading}${line("ReadWrite")}`);
    const again = await read();
    if (continuity === "timeline") expect(again).toContain(line("ReadWrite"));
    else expect(again).not.toContain("shared with you");

    const [hits, , loaded] = await run(
      call("search", { query: "zeppelin" }),
      call("search", { query: "ship", types: ["block"] }),
      call("block_load", { label: "plan", from: "Scribe" }),
    );
    const source = { authorId: scribe.id, authorName: "Scribe", label: "plan" };
    const hit = { type: "block", excerpt: "The zeppelin leaves at noon.", source };
    expect(hits).toMatchObject({ results: expect.arrayContaining([expect.objectContaining(hit)]) });
    expect(loaded).toMatchObject({ content: "The zeppelin leaves at noon.", sharedFrom: "Scribe" });

    await share("plan", "ReadOnly");
    expect(await read()).toContain(line("ReadOnly"));
    unwrap(await stub(scribe).unshareBlock(workspaceId, "plan", reader.id));
    const gone = await read();
    if (continuity === "timeline") expect(gone).not.toContain("shared with you");
    else expect(gone).toContain('    - "plan" is no longer shared with you');
    const [none] = await run(call("search", { query: "zeppelin", types: ["block"] }));
    expect(none).toMatchObject({ results: [] });
    if (continuity === "timeline") return;
    const reuse = (await runsOf(workspaceId, reader)).flatMap(({ prefixReuse }) => prefixReuse ?? []);
    expect(reuse.length).toBeGreaterThan(5);
    expect(Math.min(...reuse)).toBeGreaterThan(0.99);
  });

  test("[K10] brings back a block that it put away, of the type and pinned as it was", async () => {
    const { run, create, block, stub, workspaceId } = await scene({ continuity });
    await create({ pinned: true, content: "a" });
    await create({ label: "persona", type: "core" });
    unwrap(await stub().updateBlock(workspaceId, "persona", UpdateBlock.parse({ type: "archival" }), "human:ann"));
    await create({ label: "diary", type: "log", schema: { type: "log" } });
    await create({ label: "old", type: "archival", content: "b" });
    const outputs = await run(
      call("block_archive", { label: "notes" }),
      call("block_archive", { label: "notes" }),
      list({ type: "archival" }),
      call("block_restore", { label: "notes" }),
      call("block_restore", { label: "notes" }),
      call("block_restore", { label: "old" }),
      call("block_restore", { label: "nothing" }),
      call("block_archive", { label: "diary" }),
      call("block_restore", { label: "diary" }),
      call("block_restore", { label: "persona" }),
    );
    expect(outputs).toMatchObject([
      { success: true },
      refused("conflict", '"notes" is put away already'),
      {
        blocks: [
          { label: "notes", archived: true, pinned: false },
          { label: "old", archived: false },
          { label: "persona", archived: true },
        ],
      },
      { success: true, type: "working", pinned: true },
      refused("conflict", '"notes" is not put away'),
      refused("conflict", '"old" was never put away'),
      refused("not_found", 'no block "nothing"'),
      { success: true },
      { success: true, type: "log", pinned: false },
      refused("forbidden", '"persona" was a core block: a person put it away'),
    ]);
    expect(await block()).toMatchObject({ type: "working", pinned: true, value: "a" });
  });

  test("[K10] is told what a pin would not change", async () => {
    const { run, create, share, block, scribe } = await scene({ continuity });
    await create({ pinned: true });
    await create({ label: "persona", type: "core" });
    await create({ label: "diary", type: "log", schema: { type: "log" } });
    await create({ label: "old", type: "archival" });
    await create({ label: "plan", type: "archival" }, scribe);
    await share("plan", "ReadOnly");
    const outputs = await run(
      call("block_pin", { label: "notes" }),
      call("block_pin", { label: "persona" }),
      call("block_pin", { label: "diary" }),
      call("block_pin", { label: "old" }),
      call("block_pin", { label: "plan" }),
      call("block_unpin", { label: "notes" }),
      call("block_unpin", { label: "notes" }),
      call("block_archive", { label: "notes" }),
      call("block_pin", { label: "notes" }),
      call("block_restore", { label: "plan" }),
    );
    expect(outputs).toMatchObject([
      refused("conflict", '"notes" is pinned already'),
      refused("conflict", '"persona" is a core block'),
      refused("conflict", '"diary" is a log block'),
      refused("conflict", '"old" is an archival block'),
      refused("conflict", '"plan" is an archival block'),
      { success: true },
      refused("conflict", '"notes" is not pinned'),
      { success: true },
      refused("conflict", "block_restore brings it back"),
      refused("forbidden", '"plan" is a block of "Scribe"'),
    ]);
    expect(await block()).toMatchObject({ type: "archival", pinned: false });
  });

  test("[K10] deletes what its permission allows, its own and others', and is refused the rest", async () => {
    const { run, create, share, stub, scribe, workspaceId } = await scene({ continuity });
    await create({ permission: "Admin", content: "mine" });
    await create({ label: "kept", content: "mine too" });
    for (const label of ["plan", "rules"]) await create({ label, content: "theirs" }, scribe);
    await share("plan", "Admin");
    await share("rules", "ReadWrite");
    const outputs = await run(
      call("block_delete", { label: "notes" }),
      call("block_delete", { label: "kept" }),
      call("block_delete", { label: "plan", from: "Scribe" }),
      call("block_delete", { label: "rules" }),
      call("block_delete", { label: "nothing" }),
      list(),
    );
    expect(outputs).toMatchObject([
      { success: true },
      refused("forbidden", "Delete requires Admin permission, but block has ReadWrite"),
      { success: true },
      refused("forbidden", "Delete requires Admin permission, but block has ReadWrite"),
      refused("not_found", 'there is no block "nothing"'),
      { blocks: [{ label: "kept" }, { label: "rules" }] },
    ]);
    const labels = async (of?: EntityRef) => unwrap(await stub(of).blocks(workspaceId)).map(({ label }) => label);
    expect(await labels()).toEqual(["kept", "rules"]);
    expect(await labels(scribe)).toEqual(["rules"]);
  });

  const keeping = ["block_archive", "block_restore", "block_unpin", "block_delete"];

  test.each(["agent.after-call", "agent.after-effect"] as const)(
    "[K10] [R3] cut at %s, blocks are put away, brought back and deleted once",
    async (point) => {
      const { create, share, stub, space, ann, reader, scribe, workspaceId } = await scene({ continuity });
      await create({ permission: "Admin", pinned: true });
      await create({ content: "of the same label" }, scribe);
      await share("notes", "Admin");
      const script = scriptedModel((_, index) => {
        const name = keeping[index];
        if (name !== undefined) void armFault(point);
        return step(name === undefined ? text("Done.") : call(name, { label: "notes" }));
      });
      restore.push(installModel(script));
      await space.post(ann, "Go").catch(() => undefined);
      await vi.waitFor(
        async () => {
          await passTime(reader, 26_000).catch(() => undefined);
          expect((await runsOf(workspaceId, reader)).map(({ status }) => status)).toEqual(["completed"]);
        },
        { timeout: 20_000, interval: 50 },
      );
      const [newest] = await runsOf(workspaceId, reader);
      const outputs = (newest?.steps ?? []).flatMap(({ toolCalls }) => toolCalls).map(({ output }) => output);
      expect(outputs).toMatchObject(keeping.map(() => ({ success: true })));
      expect(unwrap(await stub().blocks(workspaceId))).toMatchObject([{ rendered: "of the same label" }]);
    },
    30_000,
  );
});

test("[K10] a block whose owner does not answer is listed as unavailable, and is in no search", async () => {
  const { run, create, share, scribe } = await scene();
  await create({ label: "plan", content: "The zeppelin leaves at noon." }, scribe);
  await share("plan", "ReadWrite");
  const [before] = await run(call("search", { query: "zeppelin" }));
  expect(before).toMatchObject({ results: [{ type: "block" }] });
  const { setTimeout: later } = globalThis;
  vi.stubGlobal("setTimeout", (work: () => void, delay = 0) => later(work, delay / 20));
  restore.push(() => vi.unstubAllGlobals());
  const silent = vi.spyOn(Agent.prototype, "readSharedBlocks").mockRejectedValue(new Error("overloaded"));
  restore.push(() => silent.mockRestore());
  const [blocks, after] = await run(list(), call("search", { query: "zeppelin", types: ["block"] }));
  const known = { label: "plan", type: "working", permission: "ReadWrite", shared: true, owner: "Scribe" };
  expect(blocks).toEqual({ blocks: [{ ...known, pinned: false, unavailable: true }] });
  expect(after).toMatchObject({ results: [], notes: [expect.stringContaining('"Scribe" did not answer')] });
});

test("[K10] pages through a list of blocks that a result has no room for", async () => {
  const { run, create } = await scene();
  const labels = Array.from({ length: 90 }, (_, at) => `b${at + 10}`);
  for (const label of labels) await create({ label, description: "as we all know ".repeat(60) });
  const Page = z.object({ blocks: z.array(z.object({ label: z.string() })), omitted: z.string().optional() });
  const [first] = z.array(Page).parse(await run(list()));
  const offset = first?.blocks.length ?? 0;
  expect(first?.omitted).toBe(`${labels.length - offset} more do not fit: ask with offset: ${offset}`);
  const [second, bad] = await run(list({ offset }), list({ offset: -1 }));
  expect([...(first?.blocks ?? []), ...Page.parse(second).blocks].map(({ label }) => label)).toEqual(labels);
  expect(second).not.toHaveProperty("omitted");
  expect(bad).toMatchObject(refused("tool_input_invalid", "offset: must be at least 0"));
});

test("[K10] lists one block at least, without its description, where there is no room", async () => {
  const context = { maxTokens: 4000, reservedResponseTokens: 500, memoryTokens: 300 };
  const { run, create } = await scene({ context: ContextConfig.parse(context) });
  for (const label of ["b1", "b2"]) await create({ label, description: "字".repeat(2000) });
  const [first, second] = await run(list(), list({ offset: 1 }));
  expect(first).toMatchObject({ blocks: [{ label: "b1" }], omitted: "1 more do not fit: ask with offset: 1" });
  expect(second).toMatchObject({ blocks: [{ label: "b2" }] });
  expect(JSON.stringify(second)).not.toContain("字");
});

test("[K10] reads all that a log of another holds, and is told why only its owner does the rest", async () => {
  const { run, create, share, scribe } = await scene();
  const content = Array.from({ length: 9 }, (_, at) => ({ message: `entry ${at}` }));
  await create({ label: "diary", type: "log", schema: { type: "log", displayLimit: 3 }, content }, scribe);
  await share("diary", "ReadWrite");
  const [shown, whole, ...others] = await run(
    call("block_load", { label: "diary" }),
    call("block_load", { label: "diary", startLine: 9 }),
    call("block_viewport", { label: "diary" }),
    call("block_history", { label: "diary" }),
    call("block_share", { label: "diary", space: "Alpha" }),
    call("block_unshare", { label: "diary", space: "Alpha" }),
  );
  expect(JSON.stringify(shown)).not.toContain("entry 0");
  expect(JSON.stringify(whole)).toContain("entry 0");
  const theirs = refused("forbidden", '"diary" is a block of "Scribe": only its owner may do that with it');
  expect(others).toMatchObject([theirs, theirs, theirs, theirs]);
});

const Page = z.object({ content: z.string(), note: z.string().optional() });
const words = (of: number): string => Array.from({ length: of }, (_, at) => `“naïve” 😀 word${at}`).join(" ");
const texts: [what: string, block: object, whole: string][] = [
  ["one long line", { content: words(8000) }, words(8000)],
  [
    "lines short and long",
    { content: `a\n\n${words(3000)}\n${"字".repeat(9000)}\n` },
    `a\n\n${words(3000)}\n${"字".repeat(9000)}\n`,
  ],
  ["long items", { schema: { type: "list" }, content: [words(4000), "b"] }, `1. ${words(4000)}\n2. b`],
];

test.for(texts)("[K10] every character of %s is read by following the notes", async ([, block, whole]) => {
  const { run, create, share, scribe } = await scene({ continuity: "timeline" });
  await create({ ...block, charLimit: 200_000 }, scribe);
  await share("notes", "ReadOnly");
  let read = "";
  let next: object | undefined = {};
  for (let pages = 0; next && pages < 20; pages += 1) {
    const [page] = z.array(Page).parse(await run(call("block_load", { label: "notes", from: "Scribe", ...next })));
    read += page?.content ?? "";
    const [, given] = /^cut: .*; block_load with from: "Scribe", (.*) reads on$/.exec(page?.note ?? "") ?? [];
    next = given === undefined ? undefined : JSON.parse(`{${given.replace(/(\w+):/g, '"$1":')}}`);
    if (next && !("offset" in next)) read += "\n";
  }
  expect(read === whole).toBe(true);
});

test("[K10] says that it hides what a viewport does not show, and nothing else", async () => {
  const { run, create } = await scene();
  const viewport = (content: string) => ({
    content,
    schema: { type: "text", viewport: { startLine: 1, displayLines: 1 } },
  });
  await create(viewport("all of it\n"));
  await create({ label: "more", ...viewport("some\nof it") });
  const load = (label: string, more: object = {}) => call("block_load", { label, ...more });
  const outputs = await run(
    load("notes"),
    load("more"),
    load("more", { startLine: 1, offset: 4 }),
    load("more", { lines: 1 }),
  );
  expect(outputs[0]).not.toHaveProperty("hidden");
  const hidden = "it holds more than is shown: block_load with startLine: 1 reads all that it holds";
  expect(outputs.slice(1)).toMatchObject([
    { hidden, content: "[Showing lines 1-1 of 2]\nsome" },
    refused("tool_input_invalid", "offset: line 1 has 4 characters"),
    { content: "some", note: "cut: 1 of 2 lines; block_load with startLine: 2 reads on" },
  ]);
});

test("[K10] search finds a shared block whole, and blocks alone once the index is full", async () => {
  const { run, create, share, scribe, reader } = await scene();
  const find = (query: string) => call("search", { query, types: ["block"] });
  const schema = { type: "text", viewport: { startLine: 1, displayLines: 1 } };
  await create({ label: "plan", schema, content: "Zinc\nand yttrium" }, scribe);
  await share("plan", "ReadWrite");
  await create({ permission: "Admin", content: "xenon" });
  const plan = { results: [{ source: { label: "plan" } }] };
  expect(await run(find("yttrium"))).toMatchObject([plan]);
  await rowsIn(reader, `update search_state set passages = ${maxSearchEntries + 9}`);
  await create({ label: "late", content: "tungsten" }, scribe);
  await share("late", "ReadOnly");
  const gone = call("block_delete", { label: "notes" });
  const [, ...found] = await run(gone, find("yttrium"), find("tungsten"), find("xenon"));
  expect(found).toMatchObject([plan, { results: [{ source: { label: "late" } }] }, { results: [] }]);
  expect(JSON.stringify(found[2])).toContain(`maxSearchEntries (${maxSearchEntries}) is reached`);
});

test("[K10] a block that its owner took back unheard is off the list once its owner says so", async () => {
  const { run, read, create, share, stub, scribe, reader, workspaceId } = await scene({ continuity: "timeline" });
  await create({ label: "plan" }, scribe);
  await share("plan", "Admin");
  const deaf = vi.spyOn(Agent.prototype, "dropSharedBlock").mockResolvedValue({ ok: true, value: null });
  restore.push(() => deaf.mockRestore());
  unwrap(await stub(scribe).unshareBlock(workspaceId, "plan", reader.id));
  expect(await read()).toContain('"plan" is shared with you');
  const outputs = await run(call("block_load", { label: "plan", version: 1 }));
  expect(outputs).toMatchObject([refused("not_found", 'no block "plan" is shared with you')]);
  expect(await read()).toContain('"plan" is shared with you');
  expect(await run(call("block_load", { label: "plan" }))).toMatchObject(outputs);
  expect(await read()).not.toContain("shared with you by");
});

describe("a shared block is told again", () => {
  const news = '"plan" is now shared with you by "Scribe" (Append)';
  const withPlan = async (settings: Partial<AgentSettings> = {}) => {
    const { create, share, scribe, ...all } = await scene(settings);
    await create({ label: "plan" }, scribe);
    await share("plan", "Append");
    return all;
  };

  test("[K10] after a compaction, and never twice before", async () => {
    const { read } = await withPlan({
      context: {
        ...{ maxTokens: 5000, reservedResponseTokens: 500, minRecentCycles: 1, compaction: { strategy: "truncate" } },
      },
    });
    const told: boolean[] = [];
    for (let cycle = 0; cycle < 16; cycle += 1) {
      told.push((await read("some words that say little ".repeat(40))).includes(news));
    }
    expect(told[0]).toBe(true);
    const again = told.indexOf(true, 1);
    expect(again).toBeGreaterThan(1);
  });

  test("[K10] after a run whose model refused the cycle that told of it", async () => {
    const { play, read } = await withPlan();
    expect(await read()).toContain(news);
    for (const _ of [1, 2]) expect(await read()).not.toContain(news);
    const tooLong = apiError(400, { responseBody: '{"error":{"code":"context_length_exceeded"}}' });
    await play(refusal(tooLong), step(text("Shorter.")));
    expect(await read()).toContain(news);
    expect(await read()).not.toContain(news);
  });
});
