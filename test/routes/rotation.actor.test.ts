import { env } from "cloudflare:workers";
import { afterEach, expect, test, vi } from "vitest";
import * as z from "zod";
import { seal, unseal } from "../../src/auth/sealing.ts";
import { Reseal } from "../../src/protocol/workspace.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { armFault, disarmFaults, type FaultPoint } from "../../src/shared/fault.ts";
import { compartmentId } from "../../src/shared/ids.ts";
import { rowsIn } from "../agent/fixture.ts";
import { adminKey, call, expectOk, type House, ids, openHouse } from "../support/house.ts";
import { deliver, signed } from "../support/webhook-sender.ts";
import { inside } from "../workspace/fixture.ts";
import { problemIn } from "./operations.ts";

const set = (ring: string): void => void Reflect.set(env, "SIGNING_SECRETS", ring);
const second = `second:${"n".repeat(32)}`;
/** The deployment's first secret signs and opens nothing any more. */
const withoutFirst = `${second},ids:SIGNING_SECRET`;

afterEach(() => {
  disarmFaults();
  Reflect.deleteProperty(env, "SIGNING_SECRETS");
});

const Made = z.looseObject({ workspace: z.looseObject({ id: z.string() }) });
const Created = z.object({ hookId: z.string(), secret: z.string() });

/** A house with something of each that is sealed or signed. */
const openSealed = async () => {
  const house = await openHouse();
  const { workspaceId, secretKey: bearer } = house;
  await call("/v1/workspace/secrets/KEY", { bearer, method: "PUT", body: { value: "hunter2" } });
  const agent = await house.agent({ name: "Analyst" });
  const ann = await house.person("Ann");
  const space = await house.space("Board", [ann, agent], { confidential: true });
  const hooks = `/v1/agents/${agent.id}/hooks`;
  const headers = { "idempotency-key": "hook" };
  const postHook = () => call(hooks, { bearer, body: { scheme: "github", name: "github" }, headers });
  const hook = await expectOk(Created, postHook());
  const said = await house.say(space.id, ann, "Hello", { clientKey: "one" });
  const mindId = compartmentId(ids, agent.id, space.id);
  return { house, workspaceId, bearer, agent, ann, space, hook, postHook, said, mindId };
};

/** The secret as an object of the agent (its open mind, or its compartment) holds it, opened. */
const keyIn = async (workspaceId: string, id: string): Promise<string> => {
  const [row] = await rowsIn({ id }, "select secrets from agent");
  return unseal(env, workspaceId, "KEY", z.object({ KEY: z.string() }).parse(JSON.parse(String(row?.secrets))).KEY);
};

const send = ({ hookId, secret }: z.infer<typeof Created>) =>
  deliver(hookId, signed.github(secret, crypto.randomUUID(), "{}"));

const reseal = (house: Pick<House, "workspaceId">, method: "GET" | "POST" = "GET") =>
  expectOk(Reseal, call(`/v1/operator/workspaces/${house.workspaceId}/reseal`, { bearer: adminKey, method }));

test("[L5] after a new first secret tokens, ids, keys, hooks and repeated requests go on", async () => {
  const { house, bearer, ann, space, hook, postHook, said, agent } = await openSealed();
  const made = (name: string) =>
    call("/v1/workspaces", { bearer: adminKey, body: { name }, headers: { "idempotency-key": name } });
  const workspace = await expectOk(Made, await made("Twice"));
  const key = () => call("/v1/workspace/keys", { bearer, body: {}, headers: { "idempotency-key": "key" } });
  const firstKey = await (await key()).json();
  set(second);
  expect(await house.say(space.id, ann, "Hello", { clientKey: "one" })).toEqual(said);
  expect((await call("/v1/workspace", { bearer })).status).toBe(200);
  expect(await (await made("Twice")).json()).toEqual(workspace);
  expect(await (await key()).json()).toEqual(firstKey);
  expect(await expectOk(Created, postHook())).toEqual(hook);
  expect((await send(hook)).status).toBe(202);
  // Requests that were cut: what they made is there, and no answer is kept.
  for (const id of [workspace.workspace.id, house.workspaceId]) {
    await inside(env.WORKSPACE.getByName(id), (_, { storage }) => void storage.sql.exec("delete from requests"));
  }
  expect(await (await made("Twice")).json()).toEqual(workspace);
  expect(await expectOk(Created, postHook())).toEqual(hook);
  expect(await problemIn(await key())).toMatchObject({ code: "conflict" });
  const later = await house.person("Bob");
  expect((await call("/v1/entities", { bearer: later.token })).status).toBe(200);
  expect((await call(`/v1/agents/${agent.id}`, { bearer })).status).toBe(200);
});

/** A job that was cut is done again within its lease, of 5 s. */
const isDone = (house: House) =>
  vi.waitFor(async () => expect(await reseal(house)).toMatchObject({ state: "done" }), { timeout: 12_000 });

test.each<FaultPoint | "no crash">(["no crash", "workspace.before-tell", "workspace.after-tell"])(
  "[L5] all that is sealed is sealed anew, and needs no old secret: %s",
  async (point) => {
    const { house, workspaceId, agent, mindId, hook, postHook } = await openSealed();
    await vi.waitFor(async () => expect(await keyIn(workspaceId, mindId)).toBe("hunter2"));
    expect(await reseal(house)).toMatchObject({ state: "needed", signing: { name: "SIGNING_SECRET" } });
    set(second);
    expect(await reseal(house)).toMatchObject({
      ...{ state: "needed", signing: { name: "second" }, ring: [{ name: "second" }, { name: "SIGNING_SECRET" }] },
      ...{ hanging: { secrets: ["KEY"], answers: 1, agents: 0 }, startedAt: null },
    });
    const crashed = point === "no crash" ? undefined : armFault(point);
    expect(await reseal(house, "POST")).toMatchObject({ state: "running", agents: 1 });
    await crashed;
    await isDone(house);
    set(withoutFirst);
    expect(await reseal(house)).toMatchObject({
      ...{ state: "done", ring: [{ name: "second" }], unopened: [] },
      hanging: { secrets: [], answers: 0, agents: 0 },
    });
    for (const id of [agent.id, mindId]) expect(await keyIn(workspaceId, id)).toBe("hunter2");
    expect(await expectOk(Created, postHook())).toEqual(hook);
    expect((await send(hook)).status).toBe(202);
  },
);

test("[L5] what no secret of the ring opens is named, and the old one does not seem to be free", async () => {
  const { house, workspaceId, agent } = await openSealed();
  set(`lost:${"x".repeat(32)}`);
  const lost = await seal(env, workspaceId, "LOST", "gone");
  set(second);
  unwrap(await env.WORKSPACE.getByName(workspaceId).putSecret("LOST", lost));
  await rowsIn(agent, "update hooks set sealed = ?", await seal({ SIGNING_SECRET: "y".repeat(32) }, "w", "n", "z"));
  await reseal(house, "POST");
  await vi.waitFor(async () => expect((await reseal(house)).unopened).toHaveLength(2));
  const shown = await vi.waitFor(async () => {
    const found = await reseal(house);
    expect(found.state).toBe("needed");
    return found;
  });
  expect(shown.hanging.secrets).toEqual(["LOST"]);
  expect(shown.unopened).toEqual(["secret LOST", expect.stringMatching(/^hook hook_/)]);
  await call("/v1/workspace/secrets/LOST", { bearer: house.secretKey, method: "DELETE" });
});
