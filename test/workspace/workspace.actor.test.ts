import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { unwrap } from "../../src/shared/errors.ts";
import { maxAgents, maxKeys, maxSecrets } from "../../src/workspace/bounds.ts";
import { delivery, ids, inside, openWorkspace } from "./fixture.ts";

test("[S6] a workspace that was never created answers not_found and stores no byte", async () => {
  const stub = env.WORKSPACE.getByName(ids.mint("wsp"));
  expect(await stub.describe()).toMatchObject({ ok: false, problem: { code: "not_found" } });
  expect(await stub.verifyKey("x")).toMatchObject({ ok: false, problem: { code: "not_found" } });
  const tables = await inside(stub, (_, state) => state.storage.sql.exec("SELECT name FROM sqlite_master").toArray());
  expect(tables).toEqual([]);
});

test("a workspace is created once", async () => {
  const { id, stub } = await openWorkspace();
  const again = await stub.create({ id, name: "Other", keyId: ids.mint("key"), keyHash: "x" });
  expect(again).toMatchObject({ ok: false, problem: { code: "conflict" } });
  expect(await stub.describe()).toMatchObject({ ok: true, value: { id, name: "House" } });
  expect(await stub.update({ name: "Home" })).toMatchObject({ ok: true, value: { name: "Home" } });
  expect(await stub.describe()).toMatchObject({ ok: true, value: { name: "Home" } });
});

test("[S5] keys are known by their hash until they are revoked, and the last one stays", async () => {
  const { id, stub } = await openWorkspace();
  const keyId = ids.mint("key");
  await stub.addKey({ keyId, keyHash: "second" });
  expect(await stub.verifyKey("second")).toMatchObject({ ok: true, value: { keyId } });
  const first = await stub.verifyKey(`hash of ${id}`);
  expect(first.ok).toBe(true);
  expect(await stub.revokeKey(keyId)).toMatchObject({ ok: true });
  expect(await stub.verifyKey("second")).toMatchObject({ ok: false, problem: { code: "unauthorized" } });
  expect(await stub.revokeKey(keyId)).toMatchObject({ ok: false, problem: { code: "not_found" } });
  if (first.ok) {
    expect(await stub.revokeKey(first.value.keyId)).toMatchObject({ ok: false, problem: { code: "conflict" } });
  }
});

test("[S5] a revoked key never comes back, however often the request that made it is sent again", async () => {
  const { stub } = await openWorkspace();
  const [keyId, keyHash] = [ids.mint("key"), "hash-of-a-revoked-key"];
  expect(await stub.addKey({ keyId, keyHash })).toMatchObject({ ok: true });
  expect(await stub.revokeKey(keyId)).toMatchObject({ ok: true });
  expect(await stub.addKey({ keyId, keyHash })).toMatchObject({ ok: false, problem: { code: "gone" } });
  expect(await stub.verifyKey(keyHash)).toMatchObject({ ok: false, problem: { code: "unauthorized" } });
});

test("[B3] keys, secrets and agents are bounded, and the refusal names the bound", async () => {
  const { stub } = await openWorkspace();
  for (let count = 1; count < maxKeys; count += 1) await stub.addKey({ keyId: ids.mint("key"), keyHash: `k${count}` });
  expect(await stub.addKey({ keyId: ids.mint("key"), keyHash: "one more" })).toMatchObject({
    problem: { code: "limit_reached", detail: expect.stringContaining("maxKeys") },
  });
  for (let count = 0; count < maxSecrets; count += 1) await stub.putSecret(`S${count}`, "sealed");
  expect(await stub.putSecret("ONE_MORE", "sealed")).toMatchObject({
    problem: { code: "limit_reached", detail: expect.stringContaining("maxSecrets") },
  });
  expect(await stub.putSecret("S0", "sealed anew")).toMatchObject({ ok: true });
  const last = await inside(stub, async (workspace) => {
    for (let count = 0; count < maxAgents; count += 1) {
      await workspace.createAgentEntity(ids.mint("ent"), `Agent ${count}`);
    }
    return workspace.createAgentEntity(ids.mint("ent"), "One more");
  });
  expect(last).toMatchObject({ problem: { code: "limit_reached", detail: expect.stringContaining("maxAgents") } });
});

test("no two agents have the same name, whatever its case; people may", async () => {
  const { stub } = await openWorkspace();
  const id = ids.mint("ent");
  expect(await stub.createAgentEntity(id, "Ada")).toMatchObject({ ok: true, value: { type: "agent", name: "Ada" } });
  expect(await stub.createAgentEntity(ids.mint("ent"), "ADA")).toMatchObject({ problem: { code: "name_taken" } });
  expect(await stub.createAgentEntity(ids.mint("ent"), "Ａda")).toMatchObject({ problem: { code: "name_taken" } });
  const other = ids.mint("ent");
  await stub.createAgentEntity(other, "Grace");
  expect(await stub.updateEntity(other, { name: "ada" })).toMatchObject({ problem: { code: "name_taken" } });
  expect(await stub.updateEntity(id, { name: "ADA" })).toMatchObject({ ok: true });
  for (const name of ["Ada", "Ada"]) {
    const person = await stub.createEntity(ids.mint("ent"), { type: "human", name, role: "member" });
    expect(person.ok).toBe(true);
  }
  await stub.removeEntity(id);
  expect(await stub.createAgentEntity(ids.mint("ent"), "Ada")).toMatchObject({ ok: true });
});

test("a call that an agent has listed after it was deleted does not show", async () => {
  const { stub } = await openWorkspace();
  const agentId = ids.mint("ent");
  await stub.createAgentEntity(agentId, "Ada");
  const at = "2026-02-18T15:06:55.000Z";
  const note = (toolCallId: string) =>
    stub.noteToolCall({ toolCallId, agentId, name: "pay", input: {}, createdAt: at, dueAt: at }, true);
  const listed = async () => unwrap(await stub.toolCalls({ limit: 10 })).items.map(({ toolCallId }) => toolCallId);
  unwrap(await note("tc_1"));
  expect(await listed()).toEqual(["tc_1"]);
  await stub.removeEntity(agentId);
  unwrap(await note("tc_2"));
  expect(await listed()).toEqual([]);
});

test("what is created under the same id again is what is there", async () => {
  const { stub } = await openWorkspace();
  const id = ids.mint("ent");
  const first = await stub.createEntity(id, { type: "human", name: "Mona", role: "admin", externalId: "u1" });
  expect(await stub.createEntity(id, { type: "human", name: "Other", role: "member" })).toEqual(first);
  expect(await stub.standing(id)).toMatchObject({ ok: true, value: { role: "admin", type: "human" } });
});

test("a list goes on where the page before ended, and a malformed cursor is refused", async () => {
  const { stub } = await openWorkspace();
  for (const name of ["a", "b", "c"]) await stub.createEntity(ids.mint("ent"), { type: "human", name, role: "member" });
  await stub.createAgentEntity(ids.mint("ent"), "agent");
  const names: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await stub.entities({ limit: 2, cursor, type: "human" });
    if (!page.ok) throw new Error(page.problem.detail);
    names.push(...page.value.items.map((entity) => entity.name));
    cursor = page.value.nextCursor ?? undefined;
  } while (cursor !== undefined);
  expect(names).toEqual(["a", "b", "c"]);
  expect(await stub.entities({ limit: 2, cursor: "x" })).toMatchObject({ problem: { code: "invalid_cursor" } });
});

test("those of another workspace do not resolve, and the refusal names them", async () => {
  const [{ stub }, elsewhere] = await Promise.all([openWorkspace(), openWorkspace()]);
  const [here, there] = [ids.mint("ent"), ids.mint("ent")];
  await stub.createEntity(here, { type: "human", name: "Here", role: "member" });
  await elsewhere.stub.createEntity(there, { type: "human", name: "There", role: "member" });
  expect(await stub.resolve([here])).toMatchObject({ ok: true, value: [{ id: here }] });
  expect(await stub.resolve([here, there])).toMatchObject({
    problem: { code: "unknown_reference", detail: expect.stringContaining(there) },
  });
});

test("no two agents have names that look the same, whatever in them does not show", async () => {
  const { stub } = await openWorkspace();
  await stub.createAgentEntity(ids.mint("ent"), "Data Analyst");
  for (const name of ["Data\u200bAnalyst", "Data\u2060 Analyst", "DATA\u00a0ANALYST\u{e0041}", "Data \u3164Analyst"]) {
    const taken = await stub.createAgentEntity(ids.mint("ent"), name);
    expect(taken, JSON.stringify(name)).toMatchObject({ ok: false, problem: { code: "name_taken" } });
  }
});

test("[S1] who may know of some resolves only those", async () => {
  const { id, stub } = await openWorkspace();
  const [mona, omar, stranger] = [ids.mint("ent"), ids.mint("ent"), ids.mint("ent")];
  for (const one of [mona, omar, stranger]) await stub.createEntity(one, { type: "human", name: "N", role: "member" });
  await stub.follow(delivery(id, ids.mint("spc"), 1, { [mona]: "Mona", [omar]: "Omar" }));
  expect(await stub.resolve([omar, mona], mona)).toMatchObject({ ok: true, value: [{ id: omar }, { id: mona }] });
  expect(await stub.resolve([stranger])).toMatchObject({ ok: true });
  expect(await stub.resolve([omar, stranger], mona)).toMatchObject({
    ok: false,
    problem: { code: "unknown_reference", detail: expect.not.stringContaining(omar) },
  });
});
