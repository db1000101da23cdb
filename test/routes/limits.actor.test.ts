import { abortAllDurableObjects, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, onTestFinished, test, vi } from "vitest";
import { LimitsInUse, makingSpaceMs } from "../../src/protocol/limits.ts";
import { tellTimeoutMs } from "../../src/workspace/bounds.ts";
import { adminKey, call, expectOk, type House, ids, openHouse } from "../support/house.ts";
import { problemIn } from "./operations.ts";

/** What the operator allows a workspace, as the operator, its admins and its clients meet it. */
const limitsOf = ({ workspaceId }: House) => `/v1/operator/workspaces/${workspaceId}/limits`;

const put = (house: House, limits: unknown) => call(limitsOf(house), { method: "PUT", bearer: adminKey, body: limits });

const inUse = (house: House) => expectOk(LimitsInUse, call("/v1/workspace", { bearer: house.secretKey }));

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

test("[L8] [S4] a limit below what is used sets nothing, and by force it takes nothing away", async () => {
  const house = await openHouse();
  await Promise.all([house.agent({ name: "One" }), house.agent({ name: "Two" })]);
  await expectOk(LimitsInUse, put(house, { maxAgents: 5 }));
  expect(await problemIn(await put(house, { maxAgents: 1, maxSpaces: 7 }))).toMatchObject({
    code: "conflict",
    detail: expect.stringContaining("force"),
    issues: [{ path: "maxAgents", message: "1 is below the 2 in use" }],
  });
  expect((await inUse(house)).limits).toEqual({ maxAgents: 5 });
  expect(await expectOk(LimitsInUse, put(house, { maxAgents: 1, force: true }))).toMatchObject({
    limits: { maxAgents: 1 },
    used: { maxAgents: 2 },
  });
  expect((await make(house, "/v1/agents", "Three"))[0]).toBe(409);
  for (const bad of [{ maxAgents: -1 }, { maxAgents: 1.5 }, { maxAgents: "2" }, { maxAnything: 1 }]) {
    expect(await problemIn(await put(house, bad))).toMatchObject({ code: "invalid_request" });
  }
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

const workspaceAt = ({ workspaceId }: House) => env.WORKSPACE.getByName(workspaceId);

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
