import { runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import * as z from "zod";
import { loadLoro } from "../../src/agent/memory/documents/document.ts";
import { Block, BlockChange, BlockDetail, BlockSpace, EditedBlock } from "../../src/protocol/block.ts";
import { principalHeader } from "../../src/protocol/principal.ts";
import { listenToBlock } from "../support/block-listener.ts";
import { type Call, call, expectOk, openHouse } from "../support/house.ts";
import { Items } from "./block-agent.ts";
import { problemIn } from "./operations.ts";

beforeAll(() => loadLoro(), 60_000);

afterEach(() => {
  vi.useRealTimers();
});

/** An agent that keeps a list and a diary, in a space with Mona and Omar, who share the list's space only. */
const scene = async (shared: object = {}) => {
  const house = await openHouse();
  const [mona, omar, stranger] = await Promise.all(["Mona", "Omar", "Stranger"].map((name) => house.person(name)));
  if (!mona || !omar || !stranger) throw new Error("three people were asked for");
  const agent = await house.agent({ name: "Keeper" });
  const space = await house.space("Kitchen", [mona, omar, agent]);
  const own = `/v1/agents/${agent.id}/blocks`;
  const at = `/v1/spaces/${space.id}/agents/${agent.id}/blocks/shopping`;
  const bearer = house.secretKey;
  const schema = { type: "list" };
  await call(own, { bearer, body: { label: "shopping", type: "working", schema, content: ["bread"] } });
  await call(own, { bearer, body: { label: "diary", type: "core", content: "Omar said he is tired." } });
  const share = (body: object) => call(`${own}/shopping/spaces/${space.id}`, { method: "PUT", bearer, body });
  await expectOk(z.object({ space: BlockSpace }), share(shared));
  const edit = (token: string, operations: object[], more: object = {}) =>
    call(`${at}/operations`, { bearer: token, body: { operations, ...more } });
  return {
    ...{ house, mona, omar, stranger, agent, space, own, at, share, edit },
    asKey: (path: string, options: Call = {}) => call(path, { bearer, ...options }),
    read: (token: string, query = "") => expectOk(BlockDetail, call(`${at}${query}`, { bearer: token })),
    watch: async (token: string) => {
      const answer = await call(`${at}/stream?token=${token}`, { headers: { upgrade: "websocket" } });
      if (!answer.webSocket) throw new Error(`no socket: ${answer.status} ${await answer.text()}`);
      return listenToBlock(answer.webSocket);
    },
  };
};

const push = (item: unknown) => ({ op: "push_item", item });

describe("[S1] a block that is shared with a space", () => {
  it("[D1] the same Idempotency-Key edits it once", async () => {
    const { mona, at, read } = await scene();
    const once = (item: string) =>
      call(`${at}/operations`, {
        bearer: mona.token,
        body: { operations: [push(item)] },
        headers: { "idempotency-key": "once" },
      });
    const done = await expectOk(EditedBlock, once("tea"));
    expect(await expectOk(EditedBlock, once("tea"))).toEqual(done);
    expect((await problemIn(await once("salt"))).code).toBe("idempotency_mismatch");
    expect(await read(mona.token)).toMatchObject({ value: ["bread", "tea"], version: 2 });
  });

  it("is read by its people, and the agent's other blocks are not", async () => {
    const { mona, stranger, space, agent, read } = await scene();
    const list = await expectOk(Items(Block), call(`/v1/spaces/${space.id}/blocks`, { bearer: mona.token }));
    expect(list.items).toMatchObject([
      {
        label: "shopping",
        permission: "ReadWrite",
        rendered: "1. bread",
        sharedFrom: { agentId: agent.id, agentName: "Keeper" },
      },
    ]);
    expect(await read(mona.token)).toMatchObject({ value: ["bread"], version: 1, permission: "ReadWrite" });
    const diary = `/v1/spaces/${space.id}/agents/${agent.id}/blocks/diary`;
    for (const part of ["", "/history"]) {
      expect((await problemIn(await call(`${diary}${part}`, { bearer: mona.token }))).status).toBe(404);
    }
    const body = { operations: [{ op: "append_text", text: "x" }] };
    expect((await problemIn(await call(`${diary}/operations`, { bearer: mona.token, body }))).status).toBe(404);
    expect((await problemIn(await call(`/v1/spaces/${space.id}/blocks`, { bearer: stranger.token }))).status).toBe(404);
  });

  it("is not reached through a space that its agent is not in", async () => {
    const { house, mona, agent } = await scene();
    const elsewhere = await house.space("Hall", [mona]);
    const path = `/v1/spaces/${elsewhere.id}/agents/${agent.id}/blocks/shopping`;
    expect((await problemIn(await call(path, { bearer: mona.token }))).status).toBe(404);
    const shared = `/v1/agents/${agent.id}/blocks/shopping/spaces/${elsewhere.id}`;
    const refused = await call(shared, { method: "PUT", bearer: house.secretKey, body: {} });
    expect((await problemIn(refused)).status).toBe(404);
  });

  it("is edited by its people in their own names, and concurrent edits merge", async () => {
    const { mona, omar, agent, own, at, edit, read, asKey } = await scene();
    await expectOk(EditedBlock, edit(mona.token, [push("milk")], { onVersion: 1 }));
    await asKey(`${own}/shopping/operations`, { body: { operations: [push("tea")], as: "agent", onVersion: 1 } });
    const last = await expectOk(
      EditedBlock,
      edit(omar.token, [{ op: "set_item", index: 0, item: "rye bread" }], { onVersion: 1 }),
    );
    expect(last.value).toEqual(expect.arrayContaining(["rye bread", "milk", "tea"]));
    expect((await read(mona.token)).value).toEqual(last.value);
    const history = await expectOk(Items(BlockChange), call(`${at}/history`, { bearer: omar.token }));
    expect(history.items.map(({ author }) => author)).toEqual([
      `human:${omar.id}:edit`,
      `agent:${agent.id}:append`,
      `human:${mona.id}:append`,
      "system:create",
    ]);
  });

  it("is told from the version that it was shared as: none before is read, edited on or undone", async () => {
    const { mona, omar, space, own, at, share, edit, read, asKey } = await scene();
    await edit(mona.token, [push("a gift for Omar")]);
    await asKey(`${own}/shopping/operations`, { body: { operations: [{ op: "delete_item", index: 1 }] } });
    await asKey(`${own}/shopping/spaces/${space.id}`, { method: "DELETE" });
    await share({ permission: "Admin" });
    for (const version of [1, 2]) {
      expect(await problemIn(await call(`${at}?version=${version}`, { bearer: omar.token }))).toMatchObject({
        code: "not_found",
        detail: `version ${version} is from before it was shared; the first to read is 3`,
      });
    }
    expect(await read(omar.token, "?version=3")).toMatchObject({ value: ["bread"] });
    const history = await expectOk(Items(BlockChange), call(`${at}/history`, { bearer: omar.token }));
    expect(history.items.map(({ version }) => version)).toEqual([3]);
    expect((await problemIn(await edit(omar.token, [push("x")], { onVersion: 2 }))).code).toBe("not_found");
    expect((await problemIn(await edit(mona.token, [{ op: "undo" }]))).code).toBe("edit_refused");
    await share({ permission: "ReadWrite" });
    await edit(omar.token, [push("tea")]);
    expect(await read(mona.token, "?version=3")).toMatchObject({ value: ["bread"] });
  });

  it("is undone by each for what is their own", async () => {
    const { mona, omar, edit } = await scene();
    await edit(mona.token, [push("milk")]);
    await edit(omar.token, [push("tea")]);
    const undone = await expectOk(EditedBlock, edit(mona.token, [{ op: "undo" }]));
    expect(undone.value).toEqual(["bread", "tea"]);
    expect((await problemIn(await edit(mona.token, [{ op: "undo" }]))).code).toBe("edit_refused");
  });

  it.each([
    ["ReadOnly", push("milk"), 403],
    ["Append", push("milk"), 200],
    ["Append", { op: "set_item", index: 0, item: "rye" }, 403],
    ["ReadWrite", { op: "set_item", index: 0, item: "rye" }, 200],
    ["ReadWrite", { op: "delete_item", index: 0 }, 403],
    ["Admin", { op: "delete_item", index: 0 }, 200],
  ])("with %s there, %j answers %i", async (permission, operation, status) => {
    const { mona, edit, read } = await scene({ permission });
    const answer = await edit(mona.token, [operation]);
    expect(answer.status).toBe(status);
    if (status === 200) return;
    expect(await problemIn(answer)).toMatchObject({ detail: expect.stringContaining(`but block has ${permission}`) });
    expect((await read(mona.token)).value).toEqual(["bread"]);
  });

  it("[S4] is not shared with Partner or Human, and not edited in another's name", async () => {
    const { mona, share, edit } = await scene();
    for (const permission of ["Human", "Partner", "Owner", 7]) {
      expect((await problemIn(await share({ permission }))).code).toBe("invalid_request");
    }
    expect((await problemIn(await edit(mona.token, [push("x")], { as: "system" }))).code).toBe("invalid_request");
  });

  it("refuses edits of read-only parts, and writes people's names in a log", async () => {
    const { mona, space, own, agent, asKey } = await scene();
    const fields = [{ name: "owner", readOnly: true }, { name: "place" }];
    const facts = { name: "facts", schema: { type: "map", fields } };
    const rules = { name: "rules", schema: { type: "text" }, readOnly: true };
    const sections = [facts, { name: "log", schema: { type: "log" } }, rules];
    await asKey(own, { body: { label: "team", type: "core", schema: { type: "composite", sections } } });
    await asKey(`${own}/team/spaces/${space.id}`, { method: "PUT", body: {} });
    const edit = (operation: object) =>
      call(`/v1/spaces/${space.id}/agents/${agent.id}/blocks/team/operations`, {
        bearer: mona.token,
        body: { operations: [operation] },
      });
    const refusals = [
      { op: "set_field", section: "facts", field: "owner", value: "Mona" },
      { op: "set_text", section: "rules", text: "none" },
    ];
    for (const operation of refusals) {
      expect(await problemIn(await edit(operation))).toMatchObject({
        code: "forbidden",
        detail: expect.stringContaining("is read-only and cannot be modified by the people of a space"),
      });
    }
    const entry = { message: "moved", agent: "Somebody" };
    const edited = await expectOk(EditedBlock, edit({ op: "append_log_entry", section: "log", entry }));
    expect(edited.value).toMatchObject({ log: [{ message: "moved", agent: "Mona" }] });
    await expectOk(EditedBlock, edit({ op: "set_field", section: "facts", field: "place", value: "Basra" }));
  });
});

describe("[S5] who watches a block from a space", () => {
  it("closes when the space no longer knows the person, even if the agent was not told", async () => {
    const { house, stranger, space, agent } = await scene();
    // As the worker would have sent it, had the stranger been a member then.
    const expiresAt = Date.now() + 3_600_000;
    const { workspaceId } = house;
    const principal = { kind: "entity", workspaceId, entityId: stranger.id, admin: false, expiresAt };
    const headers = { upgrade: "websocket", [principalHeader]: JSON.stringify(principal) };
    const url = `https://agent/stream?label=shopping&space=${space.id}`;
    const stub: unknown = env.AGENT.getByName(agent.id);
    const { webSocket } = await (stub as DurableObjectStub).fetch(url, { headers });
    if (!webSocket) throw new Error("no socket");
    const watcher = listenToBlock(webSocket);
    await watcher.until(1);
    vi.useFakeTimers({ toFake: ["Date"] });
    vi.setSystemTime(Date.now() + 46_000);
    await runDurableObjectAlarm(stub as DurableObjectStub);
    expect(await watcher.untilClosed()).toBe(4401);
  });

  it("sees each change as the block is seen there, whoever made it", async () => {
    const { mona, omar, agent, own, share, edit, watch, asKey } = await scene();
    const [hers, his] = await Promise.all([watch(mona.token), watch(omar.token)]);
    await edit(mona.token, [push("milk")]);
    await asKey(`${own}/shopping/operations`, { body: { operations: [push("tea")], as: "agent" } });
    await share({ permission: "Append" });
    await Promise.all([hers.until(4), his.until(4)]);
    const sharedFrom = { agentId: agent.id, agentName: "Keeper" };
    expect(his.frames).toMatchObject([
      { type: "welcome", cursor: 1, block: { value: ["bread"], permission: "ReadWrite", sharedFrom } },
      { type: "block.changed", cursor: 2, by: `human:${mona.id}`, block: { value: ["bread", "milk"], sharedFrom } },
      { type: "block.changed", cursor: 3, by: `agent:${agent.id}`, block: { value: ["bread", "milk", "tea"] } },
      { type: "block.changed", cursor: 3, block: { permission: "Append" } },
    ]);
    expect(hers.frames).toEqual(his.frames);
  });

  it("is closed at once when it leaves the space, or the block is taken back; the others stay", async () => {
    const { mona, omar, space, own, asKey, watch } = await scene();
    const [hers, his] = await Promise.all([watch(mona.token), watch(omar.token)]);
    await asKey(`/v1/spaces/${space.id}/members/${mona.id}`, { method: "DELETE" });
    expect(await hers.untilClosed()).toBe(4403);
    expect(his.heard.closed).toBeUndefined();
    await asKey(`${own}/shopping/spaces/${space.id}`, { method: "DELETE" });
    expect(await his.untilClosed()).toBe(4403);
  });

  it("is closed when the agent leaves the space, which takes its blocks along", async () => {
    const { mona, space, agent, own, asKey, watch } = await scene();
    const hers = await watch(mona.token);
    await asKey(`/v1/spaces/${space.id}/members/${agent.id}`, { method: "DELETE" });
    expect(await hers.untilClosed()).toBe(4403);
    const spaces = await expectOk(Items(BlockSpace), asKey(`${own}/shopping/spaces`));
    expect(spaces.items).toEqual([]);
  });

  it("is told when the block is deleted, whose label then belongs to nobody there", async () => {
    const { mona, own, at, asKey, watch } = await scene();
    const hers = await watch(mona.token);
    await asKey(`${own}/shopping`, { method: "DELETE" });
    expect(await hers.untilClosed()).toBe(4404);
    await asKey(own, { body: { label: "shopping", type: "core", content: "another" } });
    expect((await problemIn(await call(at, { bearer: mona.token }))).status).toBe(404);
  });

  it("is checked again, and closed when its entity is gone", async () => {
    const { mona, omar, agent, watch, asKey } = await scene();
    const [hers, his] = await Promise.all([watch(mona.token), watch(omar.token)]);
    const stub: unknown = env.AGENT.getByName(agent.id);
    const pass = async (): Promise<void> => {
      vi.setSystemTime(Date.now() + 46_000);
      await runDurableObjectAlarm(stub as DurableObjectStub);
    };
    vi.useFakeTimers({ toFake: ["Date"] });
    await pass();
    expect([hers.heard.closed, his.heard.closed]).toEqual([undefined, undefined]);
    await asKey(`/v1/entities/${omar.id}`, { method: "DELETE" });
    await pass();
    expect([4401, 4403]).toContain(await his.untilClosed());
    expect(hers.heard.closed).toBeUndefined();
  });
});
