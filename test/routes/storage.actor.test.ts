import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, onTestFinished, test, vi } from "vitest";
import * as z from "zod";
import { maxAgentBytes } from "../../src/agent/bounds.ts";
import { usageReportMs } from "../../src/env/report-usage.ts";
import { LimitsInUse } from "../../src/protocol/limits.ts";
import { Space } from "../../src/protocol/space.ts";
import { refuse, unwrap } from "../../src/shared/errors.ts";
import { maxDatabaseBytes } from "../../src/space/bounds.ts";
import { Workspace } from "../../src/workspace/workspace.ts";
import { adminKey, call, expectOk, type House, openHouse } from "../support/house.ts";
import { problemIn } from "./operations.ts";

/** An agent, a space and a workspace that near the end of their storage, or reach it. */
type Thing = { id: string };

const stubOf = ({ id }: Thing): DurableObjectStub => {
  const stub: unknown = (id.startsWith("spc_") ? env.SPACE : env.AGENT).getByName(id);
  return stub as DurableObjectStub;
};

/** Has each object tell what it stores. */
const told = async (...objects: Thing[]): Promise<void> => {
  vi.setSystemTime(Date.now() + usageReportMs + 1);
  for (const each of objects) {
    await runInDurableObject(stubOf(each), (object) => (object as { alarm(): Promise<void> }).alarm());
  }
};

/** The object says that it stores so many bytes, until the answer is called. */
const storing = async (thing: Thing, bytes: number): Promise<() => void> => {
  let end = (): void => undefined;
  await runInDurableObject(stubOf(thing), (_, { storage: { sql } }) => {
    const size = vi.spyOn(sql, "databaseSize", "get").mockReturnValue(bytes);
    end = () => size.mockRestore();
  });
  onTestFinished(() => end());
  return () => end();
};

const limitsOf = ({ workspaceId }: House) => `/v1/operator/workspaces/${workspaceId}/limits`;
const put = (house: House, limits: object) => call(limitsOf(house), { method: "PUT", bearer: adminKey, body: limits });
const inUse = (house: House) => expectOk(LimitsInUse, call(limitsOf(house), { bearer: adminKey }));

/** The acts of this kind, and what they were done to. */
const noted = async (house: House, action: string): Promise<string[]> => {
  const page = unwrap(await env.WORKSPACE.getByName(house.workspaceId).audit({ limit: 50, action: action as never }));
  return page.items.map(({ target }) => target);
};

const scene = async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  onTestFinished(() => void vi.useRealTimers());
  const house = await openHouse();
  const husam = await house.person("Husam", "admin");
  const agent = await house.agent({ name: "Robo" });
  const space = await house.space("Lab", [husam, agent]);
  const trigger = () =>
    call(`/v1/agents/${agent.id}/trigger`, { bearer: house.secretKey, body: { serviceName: "CI", payload: {} } });
  const post = (text: string) => call(`/v1/spaces/${space.id}/messages`, { bearer: husam.token, body: { text } });
  return { house, husam, agent, space, trigger, post };
};

test("[L17] [S4] a workspace that stores all that it may takes nothing new, and is emptied", async () => {
  const { house, husam, agent, space, trigger, post } = await scene();
  const message = await house.say(space.id, husam, "Robo, hello");
  await told(agent, space);
  await vi.waitFor(async () => expect((await inUse(house)).used.maxStorageBytes).toBeGreaterThan(100_000));
  expect(await problemIn(await put(house, { maxStorageBytes: 1000 }))).toMatchObject({
    code: "conflict",
    issues: [{ path: "maxStorageBytes" }],
  });
  await expectOk(LimitsInUse, put(house, { maxStorageBytes: 1000, force: true }));
  for (const beforeItHears of [post("One more"), trigger()]) await (await beforeItHears).body?.cancel();
  await told(agent, space);
  const refused = { code: "limit_reached", detail: expect.stringContaining("maxStorageBytes") };
  await vi.waitFor(async () => expect(await problemIn(await post("No room"))).toMatchObject(refused));
  await vi.waitFor(async () => expect(await problemIn(await trigger())).toMatchObject(refused));
  const more = (path: string, body: object) => call(path, { bearer: house.secretKey, body });
  expect(await problemIn(await more("/v1/spaces", { name: "Two" }))).toMatchObject(refused);
  expect(await problemIn(await more("/v1/agents", { name: "Two" }))).toMatchObject(refused);
  expect(await noted(house, "storage.near")).toEqual([house.workspaceId]);
  const path = `/v1/spaces/${space.id}/messages/${message.id}`;
  expect((await call(path, { method: "DELETE", bearer: husam.token })).status).toBe(200);
  await expectOk(LimitsInUse, put(house, {}));
  await told(agent, space);
  await vi.waitFor(async () => expect((await post("Room again")).status).toBe(201));
  await vi.waitFor(async () => expect((await trigger()).status).toBe(202));
});

test("[L17] what an agent stored is given back with it, though it could not say so", async () => {
  const { house, agent } = await scene();
  const used = async () => (await inUse(house)).used.maxStorageBytes;
  const empty = await used();
  await told(agent);
  expect(await used()).toBeGreaterThan(empty + 200_000);
  const { noteUsage } = Workspace.prototype;
  onTestFinished(() => void Object.assign(Workspace.prototype, { noteUsage }));
  // It is cut off from its workspace as it ends.
  Object.assign(Workspace.prototype, { noteUsage: async () => refuse("unavailable", "Cut off") });
  expect((await call(`/v1/agents/${agent.id}`, { method: "DELETE", bearer: house.secretKey })).status).toBe(204);
  expect(await used()).toBeLessThan(empty + 100_000);
});

test("[L17] a deleted space takes no room of its workspace, however lately somebody spoke there", async () => {
  const { house, husam, space } = await scene();
  await storing(space, 50_000_000);
  await house.say(space.id, husam, "Robo, hello");
  await told(space);
  await vi.waitFor(async () => expect((await inUse(house)).used.maxStorageBytes).toBeGreaterThan(50_000_000));
  const remove = (bearer: string) => call(`/v1/spaces/${space.id}`, { method: "DELETE", bearer });
  expect((await remove((await house.person("Eve")).token)).status).toBe(404);
  await told(space);
  await vi.waitFor(async () => expect((await inUse(house)).used.maxStorageBytes).toBeGreaterThan(50_000_000));
  await house.say(space.id, husam, "Once more");
  expect((await remove(house.secretKey)).status).toBe(204);
  await told(space);
  expect((await inUse(house)).used.maxStorageBytes).toBeLessThan(50_000_000);
});

test("[L17] an agent near its storage's end is noted once, and full it begins no run", async () => {
  const { house, agent, space, trigger, post } = await scene();
  await (await post("Robo, hello")).body?.cancel();
  const activity = async () => unwrap(await env.AGENT.getByName(agent.id).describe(house.workspaceId)).activity;
  await vi.waitFor(async () => expect(await activity()).toMatchObject({ state: "idle", waiting: { events: 0 } }));
  expect((await activity())?.storage).toMatchObject({ maxBytes: maxAgentBytes, state: "ok" });
  const shown = expectOk(z.object({ space: Space }), call(`/v1/spaces/${space.id}`, { bearer: house.secretKey }));
  expect((await shown).space.storage?.state).toBe("ok");
  const near = await storing(agent, maxAgentBytes * 0.85);
  await told(agent);
  await told(agent);
  await vi.waitFor(async () => expect(await noted(house, "storage.near")).toEqual([agent.id]));
  expect((await activity())?.storage?.state).toBe("near");
  near();
  const full = await storing(agent, maxAgentBytes);
  expect(await problemIn(await trigger())).toMatchObject({
    code: "limit_reached",
    detail: expect.stringContaining("maxAgentBytes"),
  });
  await (await post("Robo, and now?")).body?.cancel();
  const notices = () =>
    runInDurableObject(stubOf(space), (_, { storage }) =>
      storage.sql.exec(`SELECT seq FROM log WHERE frame LIKE '%"budget":"storage"%'`).toArray(),
    );
  await vi.waitFor(async () => expect(await notices()).toHaveLength(1));
  await (await post("Robo, still?")).body?.cancel();
  expect(await activity()).toMatchObject({ state: "budget_exhausted", storage: { state: "full" } });
  full();
  await told(agent);
  await vi.waitFor(async () => expect(await activity()).toMatchObject({ state: "idle", waiting: { events: 0 } }));
  expect(await notices()).toHaveLength(1);
});

test("[L17] a space near its storage's end is noted once, and says so", async () => {
  const { house, space, post } = await scene();
  await storing(space, Math.round(maxDatabaseBytes * 0.85));
  for (const words of ["Much", "More"]) {
    expect((await post(words)).status).toBe(201);
    await told(space);
  }
  await vi.waitFor(async () => expect(await noted(house, "storage.near")).toEqual([space.id]));
  const shown = await expectOk(z.object({ space: Space }), call(`/v1/spaces/${space.id}`, { bearer: house.secretKey }));
  expect(shown.space.storage).toMatchObject({ maxBytes: maxDatabaseBytes, state: "near" });
});

test("[L17] [L18] a full space still deletes what is too old, and its people delete", async () => {
  const { house, husam, space, post } = await scene();
  const [old, mine] = [await house.say(space.id, husam, "Old"), await house.say(space.id, husam, "Mine")];
  await storing(space, maxDatabaseBytes);
  expect(await problemIn(await post("No room"))).toMatchObject({ code: "limit_reached" });
  const path = `/v1/spaces/${space.id}`;
  expect((await call(`${path}/messages/${mine.id}`, { method: "DELETE", bearer: husam.token })).status).toBe(200);
  vi.setSystemTime(Date.now() + 2 * 24 * 60 * 60_000);
  const set = await call(path, { method: "PATCH", bearer: house.secretKey, body: { retentionDays: 1 } });
  await set.body?.cancel();
  await vi.waitFor(async () => {
    const told = unwrap(await env.SPACE.getByName(space.id).find(keyOf(house), old.id));
    expect(told.message.deleted?.expired).toBe(true);
  });
});

const keyOf = ({ workspaceId }: House) => ({ kind: "key", workspaceId, keyId: "key" }) as const;
