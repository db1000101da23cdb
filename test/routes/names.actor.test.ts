import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { exportMediaType } from "../../src/protocol/exported-agent.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { call, openHouse } from "../support/house.ts";
import { problemIn } from "./operations.ts";

/** Names by which somebody would hide, or pass for somebody else. */
const hidden = ["An\u200bna", "Anna\u{e0041}", "\u00adAnna", "An\u180ena", "Anna\u3164", "Anna\ufe0f", "\u3164"];
const twins = [
  "Anаlyst",
  "ANALYST",
  "Αnalyst",
  "Ａｎａｌｙｓｔ",
  "Ana lyst",
  "AnaIyst",
  "Ana1yst",
  "𝐀nalyst",
  "ꭺnalyst",
  "ⲀⲚⲀlyst",
];

test.each(hidden)(
  "[C6] a name in which something does not show is refused, wherever one is given: %j",
  async (name) => {
    const house = await openHouse();
    const bearer = house.secretKey;
    const [anna, agent] = [await house.person("Anna"), await house.agent({ name: "Analyst" })];
    const space = await house.space("Hall", [anna]);
    const document = await (await call(`/v1/agents/${agent.id}/export`, { bearer })).text();
    const tries: [path: string, method: string, body: unknown][] = [
      ["/v1/entities", "POST", { type: "human", name }],
      [`/v1/entities/${anna.id}`, "PATCH", { name }],
      ["/v1/spaces", "POST", { name, members: [] }],
      [`/v1/spaces/${space.id}`, "PATCH", { name }],
      ["/v1/agents", "POST", { name }],
      [`/v1/agents/${agent.id}`, "PATCH", { name }],
      [`/v1/agents/${agent.id}/trigger`, "POST", { serviceName: name, payload: 1 }],
      [`/v1/imports?name=${encodeURIComponent(name)}`, "POST", document],
    ];
    for (const [path, method, body] of tries) {
      const answer = await call(path, {
        method,
        bearer,
        body,
        headers: { "content-type": body === document ? exportMediaType : "application/json" },
      });
      const problem = await problemIn(answer);
      expect(problem, path).toMatchObject({ status: 400 });
      expect(JSON.stringify(problem)).not.toContain(name);
    }
  },
);

test.each(twins)("[C6] nobody enters a space under a name that looks like a member's: %j", async (name) => {
  const house = await openHouse();
  const bearer = house.secretKey;
  const [mona, agent] = [await house.person("Mona"), await house.agent({ name: "Analyst" })];
  const [space, twin] = [await house.space("Hall", [mona, agent]), await house.person(name)];
  const add = (entityId: string) => call(`/v1/spaces/${space.id}/members`, { bearer, body: { entityId } });
  const refused = await problemIn(await add(twin.id));
  expect(refused).toMatchObject({ status: 409, code: "name_taken", detail: expect.stringContaining("rename") });
  expect(refused.detail).toContain(agent.id);
  const members = [agent, twin].map(({ id }) => ({ entityId: id }));
  expect(await problemIn(await call("/v1/spaces", { bearer, body: { name: "Two", members } }))).toMatchObject({
    code: "name_taken",
  });
  const rename = (id: string, to: string) =>
    call(`/v1/entities/${id}`, { method: "PATCH", bearer, body: { name: to } });
  expect(await problemIn(await rename(mona.id, name))).toMatchObject({ status: 409, code: "name_taken" });
  await expect((await call(`/v1/entities/${mona.id}`, { bearer })).json()).resolves.toMatchObject({
    entity: { name: "Mona" },
  });

  // The remedy of the answer.
  expect((await rename(twin.id, "Anna Lyst the Second")).status).toBe(200);
  expect((await add(twin.id)).status).toBe(201);
  const agentAs = (to: string) => call(`/v1/agents/${agent.id}`, { method: "PATCH", bearer, body: { name: to } });
  expect(await problemIn(await agentAs("Мona"))).toMatchObject({ code: "name_taken" });
});

test("[C6] members who looked alike before stay, and either can be renamed", async () => {
  const house = await openHouse();
  const bearer = house.secretKey;
  const [first, second] = [await house.person("Mona"), await house.person("Monica")];
  const space = await house.space("Hall", [first, second]);
  // As a space has it from before names were compared.
  const stub = env.SPACE.getByName(space.id);
  await runInDurableObject(stub as unknown as DurableObjectStub, async (_, { storage }) => {
    storage.sql.exec("UPDATE members SET name = 'Mona' WHERE entity_id = ?", second.id);
  });
  // A rename that the workspace decided before it had heard of the other: the old name stays.
  expect(await stub.renameMember(house.workspaceId, second.id, "Mоna")).toMatchObject({
    problem: { code: "name_taken" },
  });
  expect(await house.say(space.id, second, "Still here")).toMatchObject({ text: "Still here" });
  const key = { kind: "key", workspaceId: house.workspaceId, keyId: "k" } as const;
  unwrap(await stub.addMember(key, { id: (await house.person("Zed")).id, name: "Zed", type: "human" }));
  expect((await call(`/v1/entities/${second.id}`, { method: "PATCH", bearer, body: { name: "Monique" } })).status).toBe(
    200,
  );
});
