import { abortAllDurableObjects } from "cloudflare:test";
import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { loadLoro } from "../../src/agent/memory/documents/loro.ts";
import { Block, BlockChange, BlockDetail, BlockShare, EditedBlock } from "../../src/protocol/block.ts";
import { call, expectOk, openHouse } from "../support/house.ts";
import { problemIn } from "./operations.ts";

beforeAll(() => loadLoro(), 60_000);

const Items = <Item extends z.ZodType>(item: Item) =>
  z.object({ items: z.array(item), nextCursor: z.string().nullable() });

const openAgent = async (name = "Analyst", house?: Awaited<ReturnType<typeof openHouse>>) => {
  const home = house ?? (await openHouse());
  const agent = await home.agent({ name });
  const at = `/v1/agents/${agent.id}/blocks`;
  const bearer = home.secretKey;
  const send = (method: string, path: string, body?: unknown) => call(`${at}${path}`, { method, bearer, body });
  return {
    house: home,
    agent,
    send,
    create: async (body: object) =>
      (await expectOk(z.object({ block: BlockDetail }), send("POST", "", { label: "notes", type: "working", ...body })))
        .block,
    read: (label = "notes", query = "") => expectOk(BlockDetail, send("GET", `/${label}${query}`)),
    list: async () => (await expectOk(Items(Block), send("GET", ""))).items,
    edit: (operations: unknown, more: object = {}, label = "notes") =>
      send("POST", `/${label}/operations`, {
        operations: Array.isArray(operations) ? operations : [operations],
        ...more,
      }),
    edited: (operations: unknown, more: object = {}, label = "notes") =>
      expectOk(
        EditedBlock,
        send("POST", `/${label}/operations`, {
          operations: Array.isArray(operations) ? operations : [operations],
          ...more,
        }),
      ),
    history: async () => (await expectOk(Items(BlockChange), send("GET", "/notes/history"))).items,
  };
};

const set = (text: string) => ({ op: "set_text", text });
const append = (text: string) => ({ op: "append_text", text });

describe("blocks over HTTP", () => {
  it("begin with what is said of them, and the rest by default", async () => {
    const { create, read, list } = await openAgent();
    const made = await create({ charLimit: 0 });
    expect(made).toMatchObject({
      label: "notes",
      type: "working",
      permission: "ReadWrite",
      description: "",
      schema: { type: "text" },
      pinned: false,
      charLimit: 5000,
      version: 1,
      rendered: "",
      value: "",
    });
    await create({ label: "persona", type: "core", content: "I am calm.", pinned: true, permission: "ReadOnly" });
    expect(await read("persona")).toMatchObject({
      rendered: "I am calm.",
      value: "I am calm.",
      permission: "ReadOnly",
    });
    expect((await list()).map(({ label }) => label)).toEqual(["notes", "persona"]);
  });

  it("are edited, all operations or none, with what each did", async () => {
    const { create, edited, edit, read } = await openAgent();
    await create({ schema: { type: "list" } });
    const done = await edited([
      { op: "push_item", item: { done: false, title: "Milk" } },
      { op: "push_item", item: "Eggs" },
    ]);
    expect(done).toEqual({
      rendered: "[ ] {done: false, title: Milk}\n2. Eggs",
      value: [{ done: false, title: "Milk" }, "Eggs"],
      version: 2,
      results: [
        { op: "push_item", message: "Inserted item 0 into block 'notes'" },
        { op: "push_item", message: "Inserted item 1 into block 'notes'" },
      ],
    });
    const refused = await edit([
      { op: "push_item", item: "Bread" },
      { op: "insert_item", index: 9, item: "x" },
    ]);
    expect(await problemIn(refused)).toMatchObject({
      status: 422,
      code: "edit_refused",
      detail: "Index 9 out of bounds (len=3)",
    });
    expect(await read()).toMatchObject({ version: 2, value: done.value, rendered: done.rendered });
  });

  it("keep their versions with who made them, and show any of them again", async () => {
    const { house, agent, create, edited, history, read, send } = await openAgent();
    const mia = await house.person("Mia");
    await create({ content: "initial" });
    await edited(append(" first"), { as: "agent" });
    const asMia = await call(`/v1/agents/${agent.id}/blocks/notes/operations`, {
      method: "POST",
      bearer: house.secretKey,
      headers: { "x-entity-id": mia.id },
      body: { operations: [set("Mia's")] },
    });
    expect(asMia.status).toBe(200);
    await edited({ op: "undo" }, { as: "agent" });
    expect((await history()).map(({ version, author, operations }) => [version, author, operations])).toEqual([
      [4, `agent:${agent.id}:undo`, ["undo"]],
      [3, `human:${mia.id}:edit`, ["set_text"]],
      [2, `agent:${agent.id}:append`, ["append_text"]],
      [1, "system:create", []],
    ]);
    expect(await read("notes", "?version=2")).toMatchObject({ version: 2, rendered: "initial first" });
    expect(await read("notes", "?version=1")).toMatchObject({ version: 1, rendered: "initial" });
    expect(await read()).toMatchObject({ version: 4, rendered: "Mia's" });
    expect(await problemIn(await send("GET", "/notes?version=9"))).toMatchObject({
      status: 404,
      detail: "there is no version 9; the newest is 4",
    });
  });

  it("undo and redo walk the edits of each by itself", async () => {
    const { create, edited, edit } = await openAgent();
    await create({});
    await edited(set("initial"));
    await edited(append(" first"), { as: "agent" });
    await edited(append(" second"), { as: "agent" });
    expect(await edited({ op: "undo" }, { as: "agent" })).toMatchObject({ rendered: "initial first" });
    expect(await edited({ op: "redo" }, { as: "agent" })).toMatchObject({ rendered: "initial first second" });
    await edited([{ op: "undo" }, { op: "undo" }], { as: "agent" });
    expect((await problemIn(await edit({ op: "undo" }, { as: "agent" }))).detail).toBe("Nothing to undo");
    expect(await edited({ op: "undo" })).toMatchObject({ rendered: "" });
  });

  it("merge what two changed without seeing each other's", async () => {
    const { create, edited } = await openAgent();
    await create({ content: "one two three" });
    await edited({ op: "replace_text", old: "one", new: "1" }, { as: "agent" });
    const merged = await edited({ op: "replace_text", old: "three", new: "3" }, { onVersion: 1 });
    expect(merged).toMatchObject({ rendered: "1 two 3", version: 3 });
  });

  it("hold agents to the block's permission, and not the workspace's key", async () => {
    const { create, edit, edited, send } = await openAgent();
    await create({ permission: "Append", content: "a" });
    expect(await problemIn(await edit(set("x"), { as: "agent" }))).toMatchObject({
      status: 403,
      code: "forbidden",
      detail: "Permission denied: Overwrite requires ReadWrite permission, but block has Append (set_text)",
    });
    expect(await edited(append("b"), { as: "agent" })).toMatchObject({ rendered: "ab" });
    expect(await edited(set("c"))).toMatchObject({ rendered: "c" });
    expect((await send("DELETE", "/notes?as=agent")).status).toBe(403);
    expect((await send("DELETE", "/notes")).status).toBe(204);
    expect((await send("GET", "/notes")).status).toBe(404);
  });

  it("a deleted one's label can be used again, and what it held is gone with it", async () => {
    const { create, read, send, history } = await openAgent();
    await create({ content: "old" });
    expect(await problemIn(await send("POST", "", { label: "notes", type: "core" }))).toMatchObject({
      status: 409,
      code: "name_taken",
    });
    await send("DELETE", "/notes");
    expect((await send("DELETE", "/notes")).status).toBe(404);
    await create({ content: "new" });
    expect(await read()).toMatchObject({ rendered: "new", version: 1 });
    expect(await history()).toHaveLength(1);
  });

  it("are changed in how they are kept and shown", async () => {
    const { create, edited, send, read } = await openAgent();
    await create({ content: Array.from({ length: 10 }, (_, index) => `Line ${index + 1}`).join("\n") });
    const patch = (body: object) => send("PATCH", "/notes", body);
    await patch({ viewport: { startLine: 3, displayLines: 3 }, pinned: true, type: "core", description: "Mine" });
    expect(await read()).toMatchObject({
      pinned: true,
      type: "core",
      description: "Mine",
      schema: { type: "text", viewport: { startLine: 3, displayLines: 3 } },
      rendered: "[Showing lines 3-5 of 10]\nLine 3\nLine 4\nLine 5",
      version: 1,
    });
    expect(await edited({ op: "edit_range", startLine: 4, endLine: 4, text: "four" })).toMatchObject({
      rendered: "[Showing lines 3-5 of 10]\nLine 3\nfour\nLine 5",
    });
    await patch({ viewport: null, charLimit: 10 });
    expect((await read()).rendered).toContain("Line 1\n");
    expect(await problemIn(await send("POST", "/notes/operations", { operations: [append("more")] }))).toMatchObject({
      status: 413,
      code: "text_too_long",
    });
    expect((await patch({ schema: { type: "list" } })).status).toBe(409);
  });

  it.each([
    [{ label: "a b", type: "core" }, 400],
    [{ label: "</block:x>", type: "core" }, 400],
    [{ label: "x", type: "hot" }, 400],
    [{ label: "x", type: "core", permission: "bogus" }, 400],
    [{ label: "x", type: "core", nope: 1 }, 400],
    [{ label: "x", type: "core", schema: { type: "map", fields: [{ name: "a" }, { name: "a" }] } }, 400],
    [{ label: "x", type: "core", schema: { type: "map", fields: [{ name: "a", type: "number", default: "x" }] } }, 422],
    [
      {
        label: "x",
        type: "core",
        schema: { type: "composite", sections: [{ name: "a", schema: { type: "composite", sections: [] } }] },
      },
      400,
    ],
    [{ label: "x", type: "core", schema: { type: "list" }, content: "text" }, 422],
    [{ label: "x", type: "core", charLimit: 3, content: "text" }, 413],
    [{ label: "x", type: "core", charLimit: 200_001 }, 400],
  ])("[S4] %j is refused, and nothing made", async (body, status) => {
    const { send, list } = await openAgent();
    const refused = await send("POST", "", body);
    expect((await problemIn(refused)).status).toBe(status);
    expect(await list()).toEqual([]);
  });

  it.each([
    [[], 400],
    [[{ op: "nope" }], 400],
    [[{ op: "set_text" }], 400],
    [[{ op: "set_text", text: "x", more: 1 }], 400],
    [[{ op: "set_text", text: "x".repeat(200_001) }], 413],
    [[{ op: "set_text", text: "x".repeat(2_000_000) }], 413],
    [[{ op: "replace_text", mode: "nth", old: "a", new: "b" }], 400],
    [[{ op: "edit_range", startLine: 3, endLine: 2, text: "" }], 400],
    [[{ op: "push_item", item: 1 }], 422],
    [[{ op: "patch", patch: "@@ -9,1 +9,1 @@\n-nope\n+x\n" }], 422],
    [[{ op: "replace_text", mode: "regex", old: "(?<=a)b", new: "x" }], 422],
    [[{ op: "append_text", text: "\ud83d" }], 400],
  ])("[S4] operations %# are refused, and nothing changed", async (operations, status) => {
    const { create, send, read } = await openAgent();
    await create({ content: "abc" });
    const refused = await send("POST", "/notes/operations", { operations });
    expect((await problemIn(refused)).status).toBe(status);
    expect(await read()).toMatchObject({ value: "abc", version: 1 });
  });

  it("[D1] survive their object's end, long histories too", async () => {
    const { create, edited, read } = await openAgent();
    await create({ schema: { type: "list", maxItems: 5 } });
    for (let round = 0; round < 70; round += 1) await edited({ op: "push_item", item: round });
    await abortAllDurableObjects();
    expect(await read("notes", "?version=3")).toMatchObject({ value: [0, 1] });
    expect(await edited(Array.from({ length: 70 }, () => ({ op: "undo" })))).toMatchObject({ value: [] });
  });
});

describe("sharing", () => {
  const two = async () => {
    const owner = await openAgent("Archive");
    const reader = await openAgent("Analyst", owner.house);
    const share = (permission?: string) =>
      owner.send("PUT", `/notes/shares/${reader.agent.id}`, permission === undefined ? {} : { permission });
    return { owner, reader, share };
  };

  it("gives another agent a block, with a permission of its own", async () => {
    const { owner, reader, share } = await two();
    await owner.create({ content: "a", permission: "ReadOnly" });
    const { share: made } = await expectOk(z.object({ share: BlockShare }), share());
    expect(made).toMatchObject({ agentId: reader.agent.id, permission: "Append" });
    expect(await reader.list()).toMatchObject([
      {
        label: "notes",
        rendered: "a",
        permission: "Append",
        sharedFrom: { agentId: owner.agent.id, agentName: "Archive" },
      },
    ]);
    expect(await reader.edited(append("b"), { as: "agent" })).toMatchObject({ rendered: "ab", version: 2 });
    expect((await problemIn(await reader.edit(set("x"), { as: "agent" }))).detail).toBe(
      "Permission denied: Overwrite requires ReadWrite permission, but block has Append (set_text)",
    );
    expect((await owner.history())[0]?.author).toBe(`agent:${reader.agent.id}:append`);
    await share("ReadOnly");
    expect((await reader.edit(append("c"), { as: "agent" })).status).toBe(403);
    expect(await reader.read()).toMatchObject({ permission: "ReadOnly", value: "ab" });
    expect((await reader.send("DELETE", "/notes")).status).toBe(404);
  });

  it("ends at once", async () => {
    const { owner, reader, share } = await two();
    await owner.create({ content: "a" });
    await share("Admin");
    expect((await owner.send("DELETE", `/notes/shares/${reader.agent.id}`)).status).toBe(204);
    expect((await owner.send("DELETE", `/notes/shares/${reader.agent.id}`)).status).toBe(404);
    expect((await reader.send("GET", "/notes")).status).toBe(404);
    expect((await reader.edit(append("b"))).status).toBe(404);
    expect(await reader.list()).toEqual([]);
    await share();
    await owner.send("DELETE", "/notes");
    expect(await reader.list()).toEqual([]);
  });

  it("[S1] reaches no agent of another workspace, and none that was never made", async () => {
    const { owner } = await two();
    const stranger = await openAgent("Stranger");
    await owner.create({});
    expect((await owner.send("PUT", `/notes/shares/${stranger.agent.id}`, {})).status).toBe(404);
    expect((await owner.send("PUT", "/notes/shares/ent_made_up", {})).status).toBe(404);
    const shares = await expectOk(Items(BlockShare), owner.send("GET", "/notes/shares"));
    expect(shares.items).toEqual([]);
    expect(await stranger.list()).toEqual([]);
  });

  it("an owner that is gone takes its blocks along", async () => {
    const { owner, reader, share } = await two();
    await owner.create({ content: "a" });
    await share();
    const bearer = owner.house.secretKey;
    expect((await call(`/v1/agents/${owner.agent.id}`, { method: "DELETE", bearer })).status).toBe(204);
    expect(await reader.list()).toEqual([]);
  });
});
