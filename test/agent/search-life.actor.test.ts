import { env } from "cloudflare:workers";
import { afterEach, describe, expect, test, vi } from "vitest";
import { replyWaitMs, searchBatchRows, searchPauseMs } from "../../src/agent/bounds.ts";
import { CreateBlock } from "../../src/protocol/block.ts";
import type { Principal } from "../../src/protocol/principal.ts";
import type { EntityRef } from "../../src/protocol/rpc.ts";
import { SearchQuery } from "../../src/protocol/search.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { yesTo } from "../support/as-shown.ts";
import { call, step, text } from "../support/scripted-model.ts";
import { agentStub, ended, openScene, passTime, rowsIn, scripted, statementsOf } from "./fixture.ts";

/** Search over what an agent was told and said, as part of its own life. */
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const continuities = ["consciousness", "timeline"] as const;
type Stage = Awaited<ReturnType<typeof stage>>;

const stage = async (continuity: (typeof continuities)[number], settings: object = {}) => {
  const scene = await openScene({ continuity, ...settings });
  const { house, agent, analyst } = scene;
  const key: Principal = { kind: "key", workspaceId: house.workspaceId, keyId: "key" };
  const find = async (query: string, types: SearchQuery["types"] = ["consciousness"], more: object = {}) =>
    unwrap(await agent.search(house.workspaceId, SearchQuery.parse({ query, types, mode: "fts", ...more })));
  const leave = async (): Promise<void> => {
    unwrap(await scene.space.stub().removeMember(key, analyst.id));
    await vi.waitFor(async () => expect((await find("nothing", ["message"])).items).toEqual([]));
    await vi.waitFor(async () => expect(await column(analyst, "select left from spaces")).toEqual([1]));
  };
  return { ...scene, key, find, leave };
};

const column = async (agent: EntityRef, query: string): Promise<unknown[]> =>
  (await rowsIn(agent, query)).map((row) => Object.values(row)[0]);

/** Husam asks about quinces, and the agent answers about medlars. */
const quinces = async (staged: Stage) => {
  scripted([
    step(call("enter_space", { spaceId: staged.space.id })),
    step(call("send_message", { text: "Medlars ripen\nin November" })),
    step(text("Done.")),
  ]);
  const asked = await staged.space.post(staged.husam, "I hear that the quinces\nare ripe");
  const [run] = await ended(staged.house.workspaceId, staged.analyst, 1);
  return { asked, run };
};

describe.each(continuities)("%s", (continuity) => {
  test("[K3] what a message told it is found as its life, with its author, place and run", async () => {
    const staged = await stage(continuity);
    const { asked, run } = await quinces(staged);
    const { items } = await staged.find("ripe quinces");
    expect(items[0]).toMatchObject({
      type: "consciousness",
      role: "user",
      excerpt: asked.text,
      createdAt: asked.createdAt,
    });
    expect(items[0]?.source).toMatchObject({
      ...{ spaceId: staged.space.id, spaceName: "Alpha", messageId: asked.id, runId: run?.id },
      ...{ authorId: staged.husam.id, authorName: "Husam" },
    });
    expect((await staged.find("medlars")).items).toMatchObject([{ role: "assistant", source: { runId: run?.id } }]);
  });

  test("[K3] a message is one hit where all types are asked for, and a message where messages are", async () => {
    const staged = await stage(continuity);
    const { asked } = await quinces(staged);
    for (const types of [[], ["message"], ["consciousness", "message"]] as const) {
      expect((await staged.find("quinces", [...types])).items).toMatchObject([{ type: "message", id: asked.id }]);
    }
    expect((await staged.find("quinces", ["block", "archival"])).items).toEqual([]);
  });

  test.each(["before", "after"])(
    "[K3] what it was told and said is found %s it left, not as messages",
    async (when) => {
      const staged = await stage(continuity);
      const { asked, run } = await quinces(staged);
      if (when === "before") expect((await staged.find("quinces")).items).toHaveLength(1);
      await staged.leave();
      for (const words of ["quinces", "medlars"]) {
        for (const types of [[], ["consciousness"]] as const) {
          const { items } = await staged.find(words, [...types]);
          expect(items).toMatchObject([{ type: "consciousness", source: { runId: run?.id, spaceName: "Alpha" } }]);
        }
        expect((await staged.find(words, ["message"])).items).toEqual([]);
      }
      unwrap(await staged.space.stub().addMember(staged.key, staged.analyst));
      await vi.waitFor(async () =>
        expect((await staged.find("quinces", [])).items).toMatchObject([{ type: "message", id: asked.id }]),
      );
    },
  );

  test.each(["enter_space", "read_messages"])("[K3] what %s showed it is found after it left", async (tool) => {
    const staged = await stage(continuity);
    unwrap(await staged.space.stub().removeMember(staged.key, staged.analyst.id));
    const { id } = await staged.space.post(staged.husam, "The quinces\nare ripe");
    unwrap(await staged.space.stub().addMember(staged.key, staged.analyst));
    scripted([step(call(tool, { spaceId: staged.space.id })), step(text("Read."))]);
    await staged.space.post(staged.husam, "Look around");
    await ended(staged.house.workspaceId, staged.analyst, 1);
    await staged.leave();
    expect((await staged.find("quinces")).items).toMatchObject([{ type: "consciousness", source: { messageId: id } }]);
  });

  test("[K3] what stood in its input is found after it left", async () => {
    const staged = await stage(continuity);
    const { house, space, husam, analyst } = staged;
    unwrap(await space.stub().addMember(staged.key, await house.person("Sara")));
    unwrap(await space.stub().update(staged.key, { wakePolicy: "addressed" }));
    const model = scripted([step(text("Read."))]);
    const { id } = await space.post(husam, 'The "quinces"\nare ripe');
    await space.post(husam, "@Analyst take note");
    await ended(house.workspaceId, analyst, 1);
    expect(JSON.stringify(model.calls)).toContain("quinces");
    await staged.leave();
    const { items } = await staged.find("quinces");
    expect(items).toMatchObject([
      { excerpt: 'The "quinces"\nare ripe', source: { messageId: id, spaceName: "Alpha" } },
    ]);
  });

  test.each(["member", "former member"])("[K3] a %s finds nothing of a space that was deleted", async (who) => {
    const staged = await stage(continuity);
    await quinces(staged);
    if (who === "former member") await staged.leave();
    expect((await staged.find("quinces", [])).items).toHaveLength(1);
    if (who === "former member") {
      unwrap(await staged.space.stub().addMember(staged.key, await staged.house.person("Mole")));
      unwrap(await staged.space.stub().update(staged.key, { name: "Layoffs" }));
    }
    unwrap(await staged.space.stub().remove(staged.key));
    await vi.waitFor(async () => expect((await staged.find("quinces", [])).items).toEqual([]));
    expect(await column(staged.analyst, "select id from search_entries where type = 'message'")).toEqual([]);
    // Its snapshot of the space stays as it was.
    const [snapshot] = await column(staged.analyst, "select snapshot from spaces");
    expect(JSON.parse(String(snapshot))).toMatchObject({ name: "(deleted space)", deleted: true });
    expect(snapshot).not.toContain("Mole");
  });

  test("[K3] what it keeps is one hit, and is found by none of its words once it is deleted", async () => {
    const { house, analyst, agent, space, husam, find } = await stage(continuity);
    const run = async (count: number, ...calls: ReturnType<typeof call>[]) => {
      scripted([...calls.map((each) => step(each)), step(text("Done."))]);
      await space.post(husam, "Go on");
      return (await ended(house.workspaceId, analyst, count))[0];
    };
    const label = "burrow";
    const keeping = await run(
      1,
      call("recall", { op: "insert", content: "Quokkas smile", metadata: { sure: "surely" } }),
      call("block_create", { label, content: "Wombats dig.", description: "Marsupials", permission: "Admin" }),
      call("block_edit", { label, operations: [{ op: "append_text", text: " Numbats nap." }] }),
    );
    const hits = async (): Promise<string[]> => {
      const words = ["quokkas", "surely", "wombats", "marsupials", "numbats"];
      const found = await Promise.all(words.map((word) => find(word, [])));
      return found.flatMap(({ items }) => items.map(({ type }) => type));
    };
    expect(await hits()).toEqual(["archival", "archival", "block", "block", "block"]);
    for (const { id: callId } of keeping?.steps.flatMap(({ toolCalls }) => toolCalls) ?? []) {
      const { places } = unwrap(await agent.knows(house.workspaceId, { callId }));
      expect(places).toContainEqual(expect.objectContaining({ tool: "search" }));
    }
    const [fact] = (await find("quokkas", [])).items;
    await run(2, call("recall", { op: "delete", id: fact?.id }), call("block_delete", { label }));
    expect(await hits()).toEqual([]);
    expect((await find(label)).items.length).toBeGreaterThan(0);
  });

  test.each(["deleted", "unshared"])("[K3] an edit that people agreed to leaves no word of a %s block", async (how) => {
    const { house, analyst, agent, space, husam, find } = await stage(continuity);
    const scribe = await house.agent({ name: "Scribe" });
    const owner = how === "deleted" ? agent : env.AGENT.getByName(scribe.id);
    const block = { label: "burrow", content: "Wombats dig.", permission: "Human" };
    unwrap(await owner.createBlock(house.workspaceId, CreateBlock.parse(block), "system"));
    const grant = { granteeId: analyst.id, permission: "Human" } as const;
    if (how === "unshared") unwrap(await owner.shareBlock(house.workspaceId, "burrow", grant));
    const from = how === "unshared" ? "Scribe" : undefined;
    const edit = { label: "burrow", from, operations: [{ op: "append_text", text: " Numbats nap." }] };
    const steps = [step(call("enter_space", { spaceId: space.id })), step(call("block_edit", edit))];
    scripted((_, index) => steps[index] ?? step(text("Done.")));
    await space.post(husam, "Go on");
    await ended(house.workspaceId, analyst, 1);
    const { toolCall } = (await space.messages()).at(-1) ?? {};
    unwrap(await space.stub().answerToolCall(space.as(husam), toolCall?.id ?? "", yesTo(toolCall ?? {})));
    const edited = async () => unwrap(await owner.block(house.workspaceId, "burrow")).rendered;
    await vi.waitFor(async () => expect(await edited()).toContain("Numbats"));
    await ended(house.workspaceId, analyst, continuity === "timeline" ? 1 : 2);
    expect((await find("wombats", [])).items).toMatchObject([{ type: "block", excerpt: "Wombats dig. Numbats nap." }]);
    if (how === "deleted") unwrap(await owner.deleteBlock(house.workspaceId, "burrow", "system", "system"));
    else unwrap(await owner.unshareBlock(house.workspaceId, "burrow", analyst.id));
    expect((await find("wombats", [])).items).toEqual([]);
    // People were shown the edit in a message of their space, which stays.
    expect((await find("numbats", [])).items).toMatchObject([{ type: "message" }]);
  });

  test("[K3] an index from before is brought up once, in the background and in bounded batches", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const staged = await stage(continuity);
    const { asked } = await quinces(staged);
    await staged.find("quinces");
    // As it was: messages that say nothing of the agent's life, and nothing that follows it.
    await column(
      staged.analyst,
      "update search_entries set lived = null, message_id = case type when 'message' then ref end",
    );
    await column(staged.analyst, "delete from search_sources where name = 'told'");
    const statements = await statementsOf(agentStub(staged.analyst));
    await passTime(staged.analyst, 24 * 60 * 60_000);
    await vi.waitFor(async () =>
      expect(await column(staged.analyst, "select ref from search_entries where lived is not null")).toContain(
        asked.id,
      ),
    );
    for (const { cursor } of statements) expect(cursor.rowsRead).toBeLessThanOrEqual(2 * searchBatchRows);
    expect((await staged.find("quinces", [])).items).toHaveLength(1);
    await passTime(staged.analyst, searchPauseMs);
    expect((await staged.find("quinces")).items).toMatchObject([{ source: { messageId: asked.id } }]);
  });
});

test("[K3] what its input showed as seen before is found after it left", async () => {
  const staged = await stage("timeline");
  const { house, space, husam, agent } = staged;
  unwrap(await space.stub().removeMember(staged.key, staged.analyst.id));
  await space.post(husam, "The quinces are ripe");
  unwrap(await space.stub().addMember(staged.key, staged.analyst));
  for (const continuity of continuities) unwrap(await agent.update(house.workspaceId, { continuity }));
  const model = scripted([step(text("Read."))]);
  await space.post(husam, "Look around");
  await ended(house.workspaceId, staged.analyst, 1);
  expect(JSON.stringify(model.calls)).toMatch(/quinces are ripe[^\n]{0,9}\[SEEN\]/);
  await staged.leave();
  expect((await staged.find("quinces")).items).toMatchObject([{ excerpt: "The quinces are ripe" }]);
});

test("[K3] a question that nobody answered is found until its space is deleted", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  const { house, analyst, space, husam, find, key } = await stage("consciousness", { messaging: "threaded" });
  const asks = call("send_message", { text: "@Husam where is the zanzibar?", wait: true });
  const steps = [step(call("enter_space", { spaceId: space.id })), step(asks)];
  scripted((_, index) => steps[index] ?? step(text("Read.")));
  await space.post(husam, "Go on");
  await ended(house.workspaceId, analyst, 1);
  await passTime(analyst, replyWaitMs + 1000);
  const [, told] = await ended(house.workspaceId, analyst, 2);
  expect((await find("no answer zanzibar")).items).toContainEqual(
    expect.objectContaining({ role: "user", source: expect.objectContaining({ runId: told?.id, spaceId: space.id }) }),
  );
  unwrap(await space.stub().remove(key));
  await vi.waitFor(async () => expect((await find("zanzibar", [])).items).toEqual([]));
});

test("[K3] words of an inbox message are found after its cycle was compacted away", async () => {
  const staged = await stage("consciousness", {
    context: { maxTokens: 5000, reservedResponseTokens: 500, minRecentCycles: 1 },
  });
  scripted(() => ({ ...step(text("Read it.")), usage: null }));
  const asked = await staged.space.post(
    staged.husam,
    `The caretaker hid the pomegranates. ${"Filler words. ".repeat(200)}`,
  );
  await ended(staged.house.workspaceId, staged.analyst, 1);
  for (let run = 2; run <= 8; run += 1) {
    await staged.space.post(staged.husam, `Number ${run}: ${"some words that say little ".repeat(90)}`);
    await ended(staged.house.workspaceId, staged.analyst, run);
  }
  const { messages } = unwrap(await staged.agent.context(staged.house.workspaceId));
  expect(JSON.stringify(messages)).not.toContain("pomegranates");
  const { items } = await staged.find("pomegranates");
  expect(items).toMatchObject([{ type: "consciousness", source: { messageId: asked.id, authorName: "Husam" } }]);
});

test("[K3] what vectors alone find is narrowed to its life as well", async () => {
  const staged = await stage("timeline", { messaging: "simple" });
  const { asked } = await quinces(staged);
  const mode = { mode: "vector" };
  expect((await staged.find("quinces ripe", [], mode)).items.length).toBeGreaterThan(0);
  expect((await staged.find("quinces ripe", ["consciousness"], mode)).items[0]).toMatchObject({
    source: { messageId: asked.id },
  });
  await staged.leave();
  expect((await staged.find("quinces ripe", ["message"], mode)).items).toEqual([]);
  expect((await staged.find("quinces ripe", ["consciousness"], mode)).items).toHaveLength(1);
});

test("[K3] what hostile names and words told it is found by those words, and by who said them", async () => {
  const staged = await stage("consciousness");
  scripted(() => step(text("Read.")));
  const words = 'He said "[\\"Alpha\\", spc_1] zanzibar": tea\tand\u2028tulips';
  await staged.space.post(staged.husam, words);
  await ended(staged.house.workspaceId, staged.analyst, 1);
  await staged.leave();
  for (const word of ["zanzibar", "tulips", "tea", "Husam"]) {
    expect((await staged.find(word)).items).toMatchObject([{ excerpt: words, source: { authorName: "Husam" } }]);
  }
});
