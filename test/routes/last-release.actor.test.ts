import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, expect, test, vi } from "vitest";
import * as z from "zod";
import { Agent } from "../../src/agent/agent.ts";
import { hashSecretKey } from "../../src/auth/credentials.ts";
import { Message } from "../../src/protocol/message.ts";
import type { Delivery } from "../../src/protocol/rpc.ts";
import { Key, Token } from "../../src/protocol/workspace.ts";
import { ok, unwrap } from "../../src/shared/errors.ts";
import { Space } from "../../src/space/space.ts";
import { Workspace } from "../../src/workspace/workspace.ts";
import { ofAgent, ofSpace, ofWorkspace } from "../protocol/contracts.ts";
import { type Call, call, expectOk, type House, ids, openHouse } from "../support/house.ts";
import { allRows } from "../support/rows.ts";
import { answer, installModel, scriptedModel } from "../support/scripted-model.ts";
import { problemIn } from "./operations.ts";

/** Today's worker and objects beside those of the last release: `test/protocol/contracts.ts` has the types. */

const back: (() => void)[] = [];
const newRelease = (): void => {
  for (const putBack of back.splice(0)) putBack();
};
afterEach(() => {
  newRelease();
  vi.restoreAllMocks();
});

/** From now on objects of this kind have no method that the last release lacks. */
const ofLastRelease = ({ prototype }: { prototype: object }, lacked: Record<string, unknown>): void => {
  for (const name of Object.keys(lacked)) {
    const method = Object.getOwnPropertyDescriptor(prototype, name);
    if (!method) throw new Error(`there is no method ${name}`);
    back.push(() => Object.defineProperty(prototype, name, method));
    Reflect.deleteProperty(prototype, name);
  }
};
const allOfLastRelease = (): void => {
  ofLastRelease(Workspace, ofWorkspace);
  ofLastRelease(Space, ofSpace);
  ofLastRelease(Agent, ofAgent);
};

const codeOf = async (path: string, asked: Call) => (await problemIn(await call(path, asked))).code;
const tokenFor = (house: House, entityId: string) =>
  call("/v1/tokens", { bearer: house.secretKey, body: { entityId, expiresInSeconds: 60 } });

test("[L14] tokens are made and hold where their workspace is of the last release", async () => {
  const house = await openHouse();
  const [ann, bob] = [await house.person("Ann"), await house.person("Bob")];
  const boss = await house.person("Boss", "admin");
  const robo = await house.agent({ name: "Robo" });
  ofLastRelease(Workspace, ofWorkspace);
  const { token } = await expectOk(Token, tokenFor(house, ann.id));
  const lent = await expectOk(Token, call("/v1/tokens", { bearer: boss.token, body: { entityId: bob.id } }));
  for (const bearer of [ann.token, token, lent.token]) expect((await call("/v1/spaces", { bearer })).status).toBe(200);
  expect((await tokenFor(house, robo.id)).status).toBe(422);
  expect((await call(`/v1/entities/${bob.id}`, { method: "DELETE", bearer: house.secretKey })).status).toBe(204);
  expect(await codeOf("/v1/spaces", { bearer: lent.token })).toBe("unauthorized");
});

test("[L14] people and agents talk where every object is of the last release", async () => {
  const house = await openHouse();
  const ann = await house.person("Ann");
  const robo = await house.agent({ name: "Robo" });
  const space = await house.space("Kitchen", [ann, robo], { wakePolicy: "every_message" });
  back.push(installModel(scriptedModel(answer(space.id, "Quinces."))));
  allOfLastRelease();
  const path = `/v1/spaces/${space.id}/stream`;
  const { webSocket } = await call(path, { bearer: ann.token, headers: { upgrade: "websocket" } });
  const frames: string[] = [];
  webSocket?.addEventListener("message", ({ data }) => frames.push(String(data)));
  webSocket?.accept();
  await house.say(space.id, ann, "what is left?");
  await vi.waitFor(() => expect(frames.join()).toContain("Quinces."));
});

test("[L14] agents are made and read where the workspace is of the last release", async () => {
  const house = await openHouse();
  ofLastRelease(Workspace, ofWorkspace);
  const robo = await house.agent({ name: "Robo" });
  const told = await call("/v1/workspace", { bearer: house.secretKey });
  expect([told.status, Object.keys((await told.json()) as object)]).toEqual([200, ["workspace"]]);
  const bearer = (await house.person("Boss", "admin")).token;
  for (const path of ["export", "memories"]) {
    expect((await call(`/v1/agents/${robo.id}/${path}`, { bearer })).status).toBe(200);
  }
});

test("[L14] what an object of the last release cannot do is unavailable for now", async () => {
  const house = await openHouse();
  const ann = await house.person("Ann");
  const space = await house.space("Kitchen", [ann]);
  const { id } = await house.say(space.id, ann, "quinces");
  allOfLastRelease();
  const message = `/v1/spaces/${space.id}/messages/${id}`;
  const asked: [string, Call][] = [
    ["/v1/workspace/keys", { bearer: house.secretKey }],
    [`/v1/entities/${ann.id}/sign-out`, { method: "POST", bearer: house.secretKey }],
    [message, { method: "PATCH", bearer: ann.token, body: { text: "pears" } }],
    [message, { method: "DELETE", bearer: ann.token }],
  ];
  for (const [path, options] of asked) expect(await codeOf(path, options)).toBe("unavailable");
  newRelease();
  expect((await call(message, { method: "DELETE", bearer: ann.token })).status).toBe(200);
});

test("[L14] no key of all rights is left where one of few was asked of the last release", async () => {
  const house = await openHouse();
  const add = Workspace.prototype.addKey;
  const asBefore = vi.spyOn(Workspace.prototype, "addKey").mockImplementation(async function (
    this: Workspace,
    { keyId, keyHash },
  ) {
    const { id, createdAt } = unwrap(await add.call(this, { keyId, keyHash }));
    return ok({ id, createdAt } as Key);
  });
  const body = { name: "Reports", scopes: ["read"] };
  expect(await codeOf("/v1/workspace/keys", { bearer: house.secretKey, body })).toBe("unavailable");
  asBefore.mockRestore();
  const list = await expectOk(
    z.object({ items: z.array(Key) }),
    call("/v1/workspace/keys", { bearer: house.secretKey }),
  );
  expect(list.items.map(({ id }) => id)).toEqual([house.keyId]);
});

test("[L14] a worker of the last release, which knows no scopes, takes no key that has few", async () => {
  const house = await openHouse();
  const made = await expectOk(
    z.object({ secretKey: z.string() }),
    call("/v1/workspace/keys", { bearer: house.secretKey, body: { scopes: ["read"] } }),
  );
  const workspace = env.WORKSPACE.getByName(house.workspaceId);
  const asked = (key: string) => workspace.verifyKey(hashSecretKey(key));
  expect(await asked(made.secretKey)).toMatchObject({ ok: false, problem: { code: "unauthorized" } });
  expect(await asked(house.secretKey)).toMatchObject({ ok: true, value: { keyId: house.keyId } });
});

test("[L14] a worker of the last release makes keys and spaces in today's workspace", async () => {
  const house = await openHouse();
  const workspace = env.WORKSPACE.getByName(house.workspaceId);
  unwrap(await workspace.addKey({ keyId: ids.mint("key"), keyHash: "of before" }));
  expect(await workspace.verifyKey("of before")).toMatchObject({ ok: true });
  unwrap(await workspace.admitSpace(ids.mint("spc")));
  unwrap(await workspace.updateEntity((await house.person("Ann")).id, { name: "Anna" }));
});

test("[L14] [L4] an agent that took a change as the last release does forgets later", async () => {
  const house = await openHouse();
  const ann = await house.person("Ann");
  const robo = await house.agent({ name: "Robo" });
  const space = await house.space("Kitchen", [ann, robo], { wakePolicy: "addressed" });
  const { id } = await house.say(space.id, ann, "the quinces are late");
  const stub = env.AGENT.getByName(robo.id) as unknown as DurableObjectStub;
  const kept = () => runInDurableObject(stub, (_, { storage }) => allRows(storage).join());
  await vi.waitFor(async () => expect(await kept()).toContain("quinces"));
  ofLastRelease(Agent, ofAgent);
  const deliver = Agent.prototype.deliver;
  const told: number[] = [];
  vi.spyOn(Agent.prototype, "deliver").mockImplementation(async function (this: Agent, text) {
    const { changes = [], ...rest }: Delivery = JSON.parse(text);
    told.push(changes.length);
    const delivered = await deliver.call(this, JSON.stringify(rest));
    return delivered.ok ? ok({ cursor: delivered.value.cursor }) : delivered;
  });
  const path = `/v1/spaces/${space.id}/messages/${id}`;
  await expectOk(z.object({ message: Message }), call(path, { method: "DELETE", bearer: ann.token }));
  await vi.waitFor(() => expect(told).toContain(1));
  expect(await kept()).toContain("quinces");
  newRelease();
  await vi.waitFor(async () => expect(await kept()).not.toContain("quinces"));
});
