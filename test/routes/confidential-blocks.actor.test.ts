import { runDurableObjectAlarm } from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import * as z from "zod";
import { Agent } from "../../src/agent/agent.ts";
import { loadLoro } from "../../src/agent/memory/documents/document.ts";
import { ArchivalEntry } from "../../src/protocol/archival.ts";
import { Block, BlockChange, BlockDetail, CreateBlock, EditedBlock } from "../../src/protocol/block.ts";
import { SearchAnswer, WorkspaceSearchAnswer } from "../../src/protocol/search.ts";
import { refuse, unwrap } from "../../src/shared/errors.ts";
import { compartmentId } from "../../src/shared/ids.ts";
import { listenToBlock } from "../support/block-listener.ts";
import { call, expectOk, ids, openHouse } from "../support/house.ts";
import { Items } from "./block-agent.ts";
import { problemIn } from "./operations.ts";

beforeAll(() => loadLoro(), 60_000);
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** A confidential space of Mona and an agent, with what each of the agent's minds shares with it. */
const scene = async () => {
  const house = await openHouse();
  const [mona, omar] = [await house.person("Mona"), await house.person("Omar")];
  const agent = await house.agent({ name: "Keeper" });
  const space = await house.space("Board", [mona, agent], { confidential: true });
  const bearer = house.secretKey;
  const own = `/v1/agents/${agent.id}/blocks`;
  const shareOpen = (label: string) =>
    call(`${own}/${label}/spaces/${space.id}`, { method: "PUT", bearer, body: { permission: "ReadWrite" } });
  await house.say(space.id, mona, "Hello");
  const inside = env.AGENT.getByName(compartmentId(ids, agent.id, space.id));
  const shareInside = async (label: string, content: string): Promise<void> => {
    const block = CreateBlock.parse({ label, content });
    await vi.waitFor(async () => unwrap(await inside.createBlock(house.workspaceId, block, "system")));
    unwrap(await inside.shareBlock(house.workspaceId, label, { granteeId: space.id, permission: "ReadWrite" }));
  };
  const at = `/v1/spaces/${space.id}/agents/${agent.id}/blocks`;
  return {
    ...{ house, mona, omar, agent, space, bearer, own, at, shareOpen, shareInside },
    create: (body: object) => call(own, { bearer, body }),
    patch: (label: string, body: object) => call(`${own}/${label}`, { method: "PATCH", bearer, body }),
    edit: (token: string, label: string, text: string) =>
      call(`${at}/${label}/operations`, { bearer: token, body: { operations: [{ op: "append_text", text }] } }),
    watch: async (token: string, label: string) => {
      const answer = await call(`${at}/${label}/stream?token=${token}`, { headers: { upgrade: "websocket" } });
      if (!answer.webSocket) throw new Error(`no socket: ${answer.status}`);
      return listenToBlock(answer.webSocket);
    },
    list: async (token: string) =>
      (await expectOk(Items(Block), call(`/v1/spaces/${space.id}/blocks`, { bearer: token }))).items,
  };
};

test("[C18] a block says whether confidential spaces may write it, also in an export", async () => {
  const { own, bearer, agent, create, patch } = await scene();
  const read = (label: string, from = own) => expectOk(BlockDetail, call(`${from}/${label}`, { bearer }));
  await create({ label: "plain" });
  await create({ label: "vault", confidential: "allowed" });
  expect(await read("plain")).not.toHaveProperty("confidential");
  expect(await read("vault")).toMatchObject({ confidential: "allowed" });
  expect(await problemIn(await create({ label: "odd", confidential: "yes" }))).toMatchObject({
    code: "invalid_request",
    issues: [{ path: "confidential" }],
  });
  expect(await problemIn(await patch("vault", { confidential: false }))).toMatchObject({ code: "invalid_request" });
  expect(await read("vault")).toMatchObject({ confidential: "allowed" });
  await patch("plain", { confidential: "allowed" });
  await patch("vault", { confidential: null });
  expect(await read("plain")).toMatchObject({ confidential: "allowed" });
  expect(await read("vault")).not.toHaveProperty("confidential");

  const exported = await (await call(`/v1/agents/${agent.id}/export`, { bearer })).text();
  const headers = { "content-type": "application/x-ndjson", authorization: `Bearer ${bearer}` };
  const request = new Request("https://colloquy.test/v1/imports?name=Second", {
    method: "POST",
    body: exported,
    headers,
  });
  const imported = z
    .object({ agent: z.object({ id: z.string() }) })
    .parse(await (await exports.default.fetch(request)).json());
  const second = `/v1/agents/${imported.agent.id}/blocks`;
  expect(await read("plain", second)).toMatchObject({ confidential: "allowed" });
  expect(await read("vault", second)).not.toHaveProperty("confidential");
});

test("[C18] a confidential space's people use its own blocks and read open ones", async () => {
  const { mona, omar, agent, at, bearer, create, patch, list, edit, watch, shareOpen, shareInside } = await scene();
  await create({ label: "plan", content: "Open plan." });
  await create({ label: "rules", content: "Open rules." });
  for (const label of ["plan", "rules"]) await shareOpen(label);
  await shareInside("plan", "Board plan.");
  expect((await list(mona.token)).map(({ label, rendered, permission }) => [label, rendered, permission])).toEqual([
    ["plan", "Board plan.", "ReadWrite"],
    ["rules", "Open rules.", "ReadOnly"],
  ]);
  const listener = await watch(mona.token, "plan");
  expect((await expectOk(EditedBlock, edit(mona.token, "plan", " Falcon."))).rendered).toBe("Board plan. Falcon.");
  await vi.waitFor(() => expect(JSON.stringify(listener.frames)).toContain("Board plan. Falcon."));
  const { items } = await expectOk(Items(BlockChange), call(`${at}/plan/history`, { bearer: mona.token }));
  expect(items[0]?.author).toBe(`human:${mona.id}:append`);
  expect(await problemIn(await edit(mona.token, "rules", " Falcon."))).toMatchObject({
    code: "forbidden",
    detail: expect.stringContaining('"rules" is an open block, which a confidential space only reads'),
  });
  expect((await edit(omar.token, "plan", "x")).status).toBe(404);
  const open = await expectOk(BlockDetail, call(`/v1/agents/${agent.id}/blocks/plan`, { bearer }));
  expect(open.rendered).toBe("Open plan.");
  await patch("rules", { confidential: "allowed" });
  expect((await expectOk(EditedBlock, edit(mona.token, "rules", " Agreed."))).rendered).toBe("Open rules. Agreed.");
  expect((await list(mona.token))[1]).toMatchObject({ permission: "ReadWrite", confidential: "allowed" });
});

test("[C17] [C18] with ?space= lists and search are of both minds, and without it of one", async () => {
  const { mona, agent, space, bearer } = await scene();
  const at = `/v1/agents/${agent.id}`;
  const inside = `space=${space.id}`;
  const Entries = z.object({ items: z.array(ArchivalEntry), nextCursor: z.string().nullable() });
  const list = (query: string) => expectOk(Entries, call(`${at}/archival?${query}`, { bearer }));
  await call(`${at}/archival`, { bearer, body: { content: "Tea is green" } });
  await vi.waitFor(async () => {
    const kept = await call(`${at}/archival?${inside}`, { bearer, body: { content: "Tea with Falcon" } });
    expect(kept.status).toBeLessThan(300);
  });
  const first = await list(`${inside}&limit=1`);
  expect(first.items).toMatchObject([{ content: "Tea with Falcon" }]);
  const second = await list(`${inside}&limit=1&cursor=${encodeURIComponent(first.nextCursor ?? "")}`);
  expect(second).toMatchObject({ items: [{ content: "Tea is green", open: true }], nextCursor: null });
  expect((await list("limit=10")).items).toHaveLength(1);
  const find = (query: string) => expectOk(SearchAnswer, call(`${at}/search?q=Falcon&${query}`, { bearer }));
  expect(JSON.stringify((await find(inside)).items)).toContain("Tea with Falcon");
  expect((await find("limit=10")).items).toEqual([]);
  const everywhere = expectOk(WorkspaceSearchAnswer, call("/v1/search?q=Falcon", { bearer }));
  expect((await everywhere).items).toEqual([]);
  expect((await call(`${at}/archival?${inside}`, { bearer: mona.token })).status).toBe(403);
});

test("[C17] an edit of a compartment's block never lands in the open block of that label", async () => {
  const { mona, agent, at, bearer, create, patch, edit, shareOpen, shareInside } = await scene();
  await create({ label: "plan", content: "Open plan." });
  await shareOpen("plan");
  await patch("plan", { confidential: "allowed" });
  await shareInside("plan", "Board plan.");
  vi.spyOn(Agent.prototype, "block").mockImplementationOnce(async () => refuse("unavailable", "later"));
  expect(await problemIn(await edit(mona.token, "plan", " Falcon."))).toMatchObject({ code: "unavailable" });
  const open = await expectOk(BlockDetail, call(`/v1/agents/${agent.id}/blocks/plan`, { bearer }));
  expect(open.rendered).toBe("Open plan.");
  const inside = await expectOk(BlockDetail, call(`${at}/plan`, { bearer: mona.token }));
  expect(inside.rendered).toBe("Board plan.");
});

/** Boss, an admin, is in the space and made a session for Mona. Both sessions follow one open block and one inside. */
const watched = async () => {
  const set = await scene();
  const { house, mona, space, bearer, create, shareOpen, shareInside, watch } = set;
  const boss = await house.person("Boss", "admin");
  await call(`/v1/spaces/${space.id}/members`, { bearer, body: { entityId: boss.id } });
  await create({ label: "rules", content: "Open rules." });
  await shareOpen("rules");
  await shareInside("plan", "Board plan.");
  const made = call("/v1/tokens", { bearer: boss.token, body: { entityId: mona.id } });
  const { token } = await expectOk(z.object({ token: z.string() }), made);
  const both = (bearerOf: string) => Promise.all(["plan", "rules"].map((label) => watch(bearerOf, label)));
  const sockets = { own: await both(mona.token), made: await both(token), ofBoss: await both(boss.token) };
  const bossLeaves = () => call(`/v1/spaces/${space.id}/members/${boss.id}`, { method: "DELETE", bearer });
  return { ...set, sockets, bossLeaves };
};

test("[C19] an impersonated session follows a block no longer than its maker is a member", async () => {
  const { sockets, bossLeaves } = await watched();
  await bossLeaves();
  for (const gone of [...sockets.made, ...sockets.ofBoss]) expect(await gone.untilClosed()).toBe(4403);
  expect(sockets.own.map(({ heard }) => heard.closed)).toEqual([undefined, undefined]);
});

test("[C18] a block's sockets open anew as their space becomes confidential, with less rights", async () => {
  const { house, mona, agent, bearer, own, create } = await scene();
  const lobby = await house.space("Lobby", [mona, agent]);
  await create({ label: "rules", content: "Open rules." });
  await call(`${own}/rules/spaces/${lobby.id}`, { method: "PUT", bearer, body: { permission: "ReadWrite" } });
  const watch = async () => {
    const path = `/v1/spaces/${lobby.id}/agents/${agent.id}/blocks/rules/stream?token=${mona.token}`;
    const { webSocket } = await call(path, { headers: { upgrade: "websocket" } });
    const listener = listenToBlock(webSocket as WebSocket);
    await listener.until(1);
    return listener;
  };
  const before = await watch();
  expect(before.frames[0]).toMatchObject({ type: "welcome", block: { permission: "ReadWrite" } });
  const change = (body: object) => call(`/v1/spaces/${lobby.id}`, { method: "PATCH", bearer, body });
  await change({ confidential: true });
  expect(await before.untilClosed()).toBe(4409);
  const after = await watch();
  expect(after.frames[0]).toMatchObject({ type: "welcome", block: { permission: "ReadOnly" } });
  // No other change of a space ends them.
  await change({ name: "Vault" });
  const heard = () => call(`/v1/agents/${agent.id}/compartments`, { bearer }).then((answer) => answer.text());
  await expect.poll(heard).toContain("Vault");
  expect(after.heard.closed).toBeUndefined();
});

test("[C19] a block's sockets end with the next proof where the agent was not told", async () => {
  const { agent, space, sockets, bossLeaves } = await watched();
  const kept = vi.spyOn(Agent.prototype, "deliver").mockImplementation(async () => refuse("unavailable", "later"));
  await bossLeaves();
  await vi.waitFor(() => expect(kept).toHaveBeenCalled());
  vi.useFakeTimers({ toFake: ["Date"] });
  vi.setSystemTime(Date.now() + 46_000);
  for (const id of [agent.id, compartmentId(ids, agent.id, space.id)]) {
    const stub: unknown = env.AGENT.getByName(id);
    await runDurableObjectAlarm(stub as DurableObjectStub);
  }
  for (const gone of [...sockets.made, ...sockets.ofBoss]) expect(await gone.untilClosed()).toBe(4401);
  expect(sockets.own.map(({ heard }) => heard.closed)).toEqual([undefined, undefined]);
});
