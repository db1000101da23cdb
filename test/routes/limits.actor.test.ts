import { abortAllDurableObjects, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, onTestFinished, test, vi } from "vitest";
import * as z from "zod";
import { AuditEntry } from "../../src/protocol/audit.ts";
import { LimitsInUse, limitNames, makingSpaceMs } from "../../src/protocol/limits.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { tellTimeoutMs } from "../../src/workspace/bounds.ts";
import { adminKey, call, expectOk, type House, ids, openHouse } from "../support/house.ts";
import { problemIn } from "./operations.ts";

/** What the operator allows a workspace, as the operator, its admins and its clients meet it. */
const limitsOf = ({ workspaceId }: House) => `/v1/operator/workspaces/${workspaceId}/limits`;

const put = (house: House, limits: unknown) => call(limitsOf(house), { method: "PUT", bearer: adminKey, body: limits });

const inUse = (house: House) => expectOk(LimitsInUse, call("/v1/workspace", { bearer: house.secretKey }));

const workspaceAt = ({ workspaceId }: House) => env.WORKSPACE.getByName(workspaceId);

/** The acts of this kind in the audit log, newest first, as an admin reads them. */
const acts = async (house: House, action: string) => {
  const Acts = z.object({ items: z.array(AuditEntry) });
  return (await expectOk(Acts, call(`/v1/workspace/audit?action=${action}`, { bearer: house.secretKey }))).items;
};

/** Makes what the path is for; answers its status, and the refusal's detail. */
const make = async (house: House, path: string, name: string): Promise<[number, string]> => {
  const kind = path === "/v1/entities" ? { type: "human" } : {};
  const answer = await call(path, { bearer: house.secretKey, body: { name, ...kind } });
  if (answer.status < 400) {
    await answer.body?.cancel();
    return [answer.status, ""];
  }
  const { code, detail } = await problemIn(answer);
  return [answer.status, `${code}: ${detail}`];
};

test("[L8] the limits and what is used of them are shown to the operator and to admins", async () => {
  const house = await openHouse();
  const boss = await house.person("Boss", "admin");
  await house.agent({ name: "Robo" });
  await house.space("Lab", [boss]);
  const maxStorageBytes = expect.any(Number);
  const used = { maxAgents: 1, maxEntities: 1, maxSpaces: 1, maxStorageBytes, maxTokensPerDay: 0 };
  expect(await inUse(house)).toEqual({ limits: {}, used });
  const set = await expectOk(LimitsInUse, put(house, { maxAgents: 2, maxSpaces: 1 }));
  expect(set).toEqual({ limits: { maxAgents: 2, maxSpaces: 1 }, used });
  expect(await expectOk(LimitsInUse, call(limitsOf(house), { bearer: adminKey }))).toEqual(set);
  expect(await expectOk(LimitsInUse, call("/v1/workspace", { bearer: boss.token }))).toEqual(set);
  expect((await expectOk(LimitsInUse, put(house, {}))).limits).toEqual({});
});

test("[L8] what would exceed a limit is refused with the limit, what is used and the remedy", async () => {
  const house = await openHouse();
  const mona = await house.person("Mona");
  await expectOk(LimitsInUse, put(house, { maxAgents: 1, maxEntities: 2, maxSpaces: 1 }));
  const made = { "/v1/agents": "Robo", "/v1/entities": "Adam", "/v1/spaces": "Lab" };
  const names = { "/v1/agents": "maxAgents", "/v1/entities": "maxEntities", "/v1/spaces": "maxSpaces" };
  for (const path of Object.keys(made) as (keyof typeof made)[]) {
    expect(await make(house, path, made[path])).toEqual([201, ""]);
    const [status, says] = await make(house, path, "One more");
    expect(status).toBe(409);
    expect(says).toMatch(/^limit_reached: /);
    expect(says).toContain(`(${names[path]}), and ${path === "/v1/entities" ? 2 : 1} are used`);
    expect(says).toContain("ask the operator for more");
  }
  await call(`/v1/entities/${mona.id}`, { method: "DELETE", bearer: house.secretKey });
  expect(await make(house, "/v1/entities", "Eve")).toEqual([201, ""]);
});

test("[L8] [S4] what is no limit sets nothing", async () => {
  const house = await openHouse();
  for (const bad of [{ maxAgents: -1 }, { maxAgents: 1.5 }, { maxAgents: "2" }, { maxAnything: 1 }]) {
    expect(await problemIn(await put(house, bad))).toMatchObject({ code: "invalid_request" });
  }
  expect((await inUse(house)).limits).toEqual({});
});

/** Uses two of what each limit is of; of tokens and of bytes more. */
const useSome = async (house: House): Promise<void> => {
  const agent = await house.agent({ name: "One" });
  await house.agent({ name: "Two" });
  for (const name of ["One", "Two"]) await house.person(`Person ${name}`);
  for (const name of ["One", "Two"]) await make(house, "/v1/spaces", name);
  await expectOk(LimitsInUse, put(house, { maxTokensPerDay: 10_000 }));
  const day = new Date().toISOString().slice(0, 10);
  const asked = { agentId: agent.id, day, seq: 1, held: 0, booked: 0, need: 500 };
  expect(await workspaceAt(house).leaseOfDay(asked)).toMatchObject({ ok: true, value: { is: "leased" } });
  await vi.waitFor(async () => expect((await inUse(house)).used.maxSpaces).toBe(2));
};

test.each(limitNames)("[L8] [S4] %s below its use changes nothing, and by force takes nothing away", async (name) => {
  const house = await openHouse();
  await useSome(house);
  const before = await inUse(house);
  const used = before.used[name];
  expect(used).toBeGreaterThan(1);
  const other = name === "maxAgents" ? "maxSpaces" : "maxAgents";
  const refused = await problemIn(await put(house, { [name]: 1, [other]: 50 }));
  const issues = [{ path: name, message: expect.stringMatching(/^1 is below the \d+ in use$/) }];
  expect(refused).toMatchObject({ status: 409, code: "conflict", detail: expect.stringContaining("force"), issues });
  expect((await inUse(house)).limits).toEqual(before.limits);
  expect(await acts(house, "workspace.limited")).toHaveLength(1);
  const forced = await expectOk(LimitsInUse, put(house, { [name]: 1, force: true }));
  expect(forced.limits).toEqual({ [name]: 1 });
  expect(forced.used[name]).toBeGreaterThanOrEqual(used);
  expect(await acts(house, "workspace.limited")).toHaveLength(2);
  if (name === "maxAgents") expect((await make(house, "/v1/agents", "Three"))[0]).toBe(409);
  // A limit that is not below the current use needs no force.
  const roomy = await expectOk(LimitsInUse, put(house, { [name]: forced.used[name] + 1_000_000 }));
  expect(roomy.limits[name]).toBeGreaterThan(1_000_000);
});

test("[L8] [L3] admins are told what a limit refused, once for a day and limit", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  onTestFinished(() => void vi.useRealTimers());
  const house = await openHouse();
  await expectOk(LimitsInUse, put(house, { maxAgents: 1, maxEntities: 1, maxSpaces: 1 }));
  const paths = ["/v1/agents", "/v1/entities", "/v1/spaces"];
  for (const path of paths) expect((await make(house, path, "First"))[0]).toBe(201);
  expect(await acts(house, "limit.reached")).toEqual([]);
  for (const path of [...paths, ...paths]) expect((await make(house, path, "One more"))[0]).toBe(409);
  const told = ["maxSpaces", "maxEntities", "maxAgents"].map((name) => ({
    actor: { id: "workspace" },
    target: house.workspaceId,
    detail: { [name]: 1, used: 1, day: new Date().toISOString().slice(0, 10) },
  }));
  expect(await acts(house, "limit.reached")).toMatchObject(told);
  vi.setSystemTime(Date.now() + 24 * 3_600_000);
  expect((await make(house, "/v1/agents", "One more"))[0]).toBe(409);
  expect(await acts(house, "limit.reached")).toHaveLength(4);
});

test("[L8] as many as the limit says are made of twenty that are asked for at once", async () => {
  const house = await openHouse();
  await expectOk(LimitsInUse, put(house, { maxAgents: 3, maxEntities: 3, maxSpaces: 3 }));
  for (const path of ["/v1/agents", "/v1/entities", "/v1/spaces"]) {
    const asked = Array.from({ length: 20 }, (_, index) => make(house, path, `Number ${index}`));
    const statuses = (await Promise.all(asked)).map(([status]) => status);
    expect(statuses.filter((status) => status === 201)).toHaveLength(3);
    expect(statuses.filter((status) => status === 409)).toHaveLength(17);
  }
  expect((await inUse(house)).used).toMatchObject({ maxAgents: 3, maxEntities: 3, maxSpaces: 3 });
});

test("[L8] a space that is being made counts through a crash of its workspace", async () => {
  const house = await openHouse();
  await expectOk(LimitsInUse, put(house, { maxSpaces: 1 }));
  expect(await workspaceAt(house).admitSpace(ids.mint("spc"))).toMatchObject({ ok: true });
  const stub: unknown = workspaceAt(house);
  await runInDurableObject(stub as DurableObjectStub, (_, { storage }) => storage.sync());
  await abortAllDurableObjects();
  expect((await make(house, "/v1/spaces", "One more"))[0]).toBe(409);
});

test("[L8] only a space that was never made gives its place to another", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  onTestFinished(() => void vi.useRealTimers());
  const house = await openHouse();
  const [made, unmade] = [ids.mint("spc"), ids.mint("spc")];
  const { workspaceId } = house;
  await expectOk(LimitsInUse, put(house, { maxSpaces: 2 }));
  const until = Date.now() + makingSpaceMs;
  for (const id of [made, unmade])
    expect(await workspaceAt(house).admitSpace(id, undefined, until)).toMatchObject({ ok: true });
  const settings = { name: "Lab", wakePolicy: "every_message", shareOrigin: "reference" } as const;
  const create = (id: string) => env.SPACE.getByName(id).create({ id, workspaceId, settings, members: [], until });
  expect(await create(made)).toMatchObject({ ok: true });
  expect((await make(house, "/v1/spaces", "One more"))[0]).toBe(409);
  vi.setSystemTime(until + tellTimeoutMs + 1);
  expect(await create(unmade)).toMatchObject({ ok: false, problem: { code: "unavailable" } });
  await vi.waitFor(async () => {
    const stub: unknown = workspaceAt(house);
    await runInDurableObject(stub as DurableObjectStub, (object) => (object as { alarm(): Promise<void> }).alarm());
    expect((await inUse(house)).used.maxSpaces).toBe(1);
  });
  expect((await make(house, "/v1/spaces", "Another"))[0]).toBe(201);
  expect((await make(house, "/v1/spaces", "One more"))[0]).toBe(409);
});

test("[L8] a space that refuses to be made gives its place back at once", async () => {
  const house = await openHouse();
  const [one, two] = [await house.person("Mona"), await house.person("M0na")];
  await expectOk(LimitsInUse, put(house, { maxSpaces: 1 }));
  const members = [{ entityId: one.id }, { entityId: two.id }];
  const answer = await call("/v1/spaces", { bearer: house.secretKey, body: { name: "Lab", members } });
  expect(await problemIn(answer)).toMatchObject({ code: "name_taken" });
  expect(await make(house, "/v1/spaces", "Lab")).toEqual([201, ""]);
});

test("[L10] what a deleted agent had leased stays leased, though another is made under its id", async () => {
  const house = await openHouse();
  await put(house, { maxTokensPerDay: 10_000 });
  const [workspace, agentId] = [workspaceAt(house), ids.mint("ent")];
  const asked = {
    agentId,
    day: new Date().toISOString().slice(0, 10),
    held: 0,
    booked: 0,
    need: 8000,
    exact: true as const,
  };
  // A repeated request whose answer was not kept makes it anew.
  const make = async () => unwrap(await workspace.createAgentEntity(agentId, "Again"));
  await make();
  expect(unwrap(await workspace.leaseOfDay({ ...asked, seq: 1 }))).toMatchObject({ leased: 8000, is: "leased" });
  unwrap(await workspace.removeEntity(agentId));
  await make();
  expect(unwrap(await workspace.leaseOfDay({ ...asked, seq: 2 }))).toMatchObject({ leased: 0 });
  expect((await inUse(house)).used.maxTokensPerDay).toBe(8000);
});
