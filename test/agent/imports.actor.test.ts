import { abortAllDurableObjects, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { Agent } from "../../src/agent/agent.ts";
import { directoryAnswerMs } from "../../src/agent/bounds.ts";
import type { AgentRpc, ImportedRow } from "../../src/protocol/agent-rpc.ts";
import { ExportedHead, type RowOf } from "../../src/protocol/exported-agent.ts";
import { ok, refuse, unwrap } from "../../src/shared/errors.ts";
import { Workspace } from "../../src/workspace/workspace.ts";
import { createGate } from "../support/gate.ts";
import { rowsWith } from "../support/rows.ts";
import { shorten } from "../support/shorten.ts";
import { agentStub, ids, openHouse, rowsIn } from "./fixture.ts";

/** An import that is cut off, wherever that is: the object by itself makes a whole agent of it, or nothing. */
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const updatedAt = "2026-02-18T14:00:00.000Z";
const memory = (key: string): ImportedRow => ({
  at: "line 2",
  kind: "memory",
  row: { key, value: "green", updatedAt },
});
const later: RowOf<"plan"> = {
  id: "later",
  name: "Later",
  instruction: "Look",
  runAfter: "2 hours",
  status: "active",
  setBy: "workspace",
  dueAt: "2026-02-18T16:00:00.000Z",
  updatedAt,
};
const plan: ImportedRow = { at: "line 3", kind: "plan", row: later };

const stage = async (of?: Awaited<ReturnType<typeof openHouse>>) => {
  const house = of ?? (await openHouse());
  const { workspaceId } = house;
  const id = ids.mint("ent");
  const name = { workspaceId, token: ids.mint("key") };
  const agent = (): AgentRpc => env.AGENT.getByName(id);
  const ref = { id, name: "Imported", type: "agent" } as const;
  const head = ExportedHead.parse({
    ...{ kind: "agent", format: "colloquy.agent", version: 2, exportedAt: "2026-02-18T15:00:00.000Z" },
    agent: { id: ids.mint("ent"), config: { name: "Imported" } },
  });
  const begin = async (of = name) => unwrap(await agent().beginImport(id, of));
  const take = async (rows: ImportedRow[], of = name) => unwrap(await agent().importRows(of, rows));
  const prepare = async () => unwrap(await agent().prepareImport(name, head));
  const enter = async () => unwrap(await env.WORKSPACE.getByName(workspaceId).createAgentEntity(id, id, { id: "key" }));
  const pass = async (milliseconds: number) => {
    vi.setSystemTime(Date.now() + milliseconds);
    await runDurableObjectAlarm(agentStub(ref));
  };
  const code = async () => {
    const described = await agent().describe(workspaceId);
    return described.ok ? "there" : described.problem.code;
  };
  const tables = () =>
    runInDurableObject(agentStub(ref), (_, { storage }) =>
      Number(storage.sql.exec("SELECT count(*) AS tables FROM sqlite_master WHERE name NOT LIKE '_cf_%'").one().tables),
    );
  return { house, workspaceId, id, name, agent, begin, take, prepare, enter, pass, code, tables };
};

const minutes = 60_000;

describe("[S4] [R1] an import that nobody goes on with", () => {
  test("is not found by anybody, and is deleted", async () => {
    const { begin, take, pass, code, tables, agent, workspaceId } = await stage();
    expect(await begin()).toBe("begun");
    await take([memory("tea"), plan]);
    expect(await code()).toBe("not_found");
    expect((await agent().memories(workspaceId)).ok).toBe(false);
    expect(await tables()).toBeGreaterThan(0);
    await pass(6 * minutes);
    expect(await tables()).toBe(0);
    expect(await code()).toBe("not_found");
  });

  test("goes on after a crash of its object, if its sender does", async () => {
    const { begin, take, prepare, enter, code, agent, workspaceId } = await stage();
    await begin();
    await take([memory("tea")]);
    await abortAllDurableObjects();
    await take([memory("coffee")]);
    await prepare();
    await enter();
    unwrap(await agent().completeImport(workspaceId));
    expect(await code()).toBe("there");
    expect(unwrap(await agent().memories(workspaceId)).map(({ key }) => key)).toEqual(["coffee", "tea"]);
  });

  test("is deleted where it was prepared and the directory does not know it", async () => {
    const { begin, take, prepare, pass, tables } = await stage();
    await begin();
    await take([memory("tea")]);
    await prepare();
    await pass(6 * minutes);
    expect(await tables()).toBe(0);
  });

  test("is completed by a timer where the directory knows it", async () => {
    const { begin, take, prepare, enter, pass, code, agent, workspaceId } = await stage();
    await begin();
    await take([memory("tea"), plan]);
    await prepare();
    await enter();
    expect(await code()).toBe("not_found");
    await abortAllDurableObjects();
    await pass(6 * minutes);
    expect(await code()).toBe("there");
    expect(unwrap(await agent().memories(workspaceId))).toHaveLength(1);
    const { report } = unwrap(await agent().completeImport(workspaceId));
    expect(report.counts).toMatchObject({ memories: 1, plans: 1 });
    unwrap(await agent().remove(workspaceId));
  });

  test.each([
    ["whether it knows it", () => vi.spyOn(Workspace.prototype, "entity")],
    ["its secrets", () => vi.spyOn(Workspace.prototype, "sealedSecrets")],
  ])("is settled later where the directory does not say %s, and blocks nothing", async (_, spied) => {
    shorten(directoryAnswerMs);
    const { begin, prepare, enter, pass, code, agent } = await stage();
    await begin();
    await prepare();
    await enter();
    const gate = createGate();
    const asked = spied().mockImplementationOnce(async () => {
      await gate.opened;
      return refuse("unavailable", "too late");
    });
    onTestFinished(gate.open);
    await pass(6 * minutes);
    expect(asked).toHaveBeenCalledTimes(1);
    expect(await code()).toBe("not_found");
    const another = { workspaceId: ids.mint("wsp"), token: ids.mint("key") };
    expect(await agent().dropImport(another)).toEqual(ok(null));
    await pass(minutes + 1);
    expect(await code()).toBe("there");
  });

  test("makes way for another try after a minute; the first adds nothing more", async () => {
    const { begin, take, name, agent, workspaceId, prepare } = await stage();
    await begin();
    await take([memory("tea")]);
    const second = { workspaceId, token: ids.mint("key") };
    expect(await agent().beginImport(ids.mint("ent"), second)).toMatchObject({
      ok: false,
      problem: { code: "idempotency_in_progress" },
    });
    vi.setSystemTime(Date.now() + 61_000);
    await begin(second);
    await expect(take([memory("coffee")])).rejects.toMatchObject({ code: "gone" });
    await expect(prepare()).rejects.toMatchObject({ code: "gone" });
    unwrap(await agent().dropImport(name));
    await take([memory("tea")], second);
  });

  test("[R2] is replaced by one of several tries that begin at once", async () => {
    const { agent, id, workspaceId, begin, take, prepare } = await stage();
    await begin();
    await take([memory("tea")]);
    // The directory is asked about it first, which takes a while.
    await prepare();
    vi.setSystemTime(Date.now() + 61_000);
    const tries = [1, 2, 3].map(() => ({ workspaceId, token: ids.mint("key") }));
    const begun = await Promise.all(tries.map((name) => agent().beginImport(id, name)));
    expect(begun.map((one) => (one.ok ? one.value : one.problem.code)).toSorted()).toEqual([
      "begun",
      "idempotency_in_progress",
      "idempotency_in_progress",
    ]);
    const taken = await Promise.all(tries.map((name) => agent().importRows(name, [memory("tea")])));
    expect(taken.map(({ ok }) => ok)).toEqual(begun.map(({ ok }) => ok));
  });

  test("takes a page whole or not at all", async () => {
    const { begin, take, prepare, enter, agent, workspaceId } = await stage();
    await begin();
    await expect(take([memory("one"), memory("two"), memory("one")])).rejects.toMatchObject({
      code: "invalid_request",
    });
    await take([memory("two")]);
    await prepare();
    await enter();
    unwrap(await agent().completeImport(workspaceId));
    expect(unwrap(await agent().memories(workspaceId)).map(({ key }) => key)).toEqual(["two"]);
  });

  test("[S1] is closed to other workspaces; an agent that was not imported is not completed", async () => {
    const { house, begin, prepare, enter, agent, id } = await stage();
    await begin();
    await prepare();
    await enter();
    const other = ids.mint("wsp");
    expect(await agent().completeImport(other)).toMatchObject({ ok: false, problem: { code: "gone" } });
    expect(await agent().importRows({ workspaceId: other, token: "x" }, [])).toMatchObject({ ok: false });
    const analyst = env.AGENT.getByName((await house.agent({ name: "Analyst" })).id);
    expect(await analyst.completeImport(house.workspaceId)).toMatchObject({ ok: false });
    expect(await analyst.beginImport(id, { workspaceId: other, token: "x" })).toMatchObject({ ok: false });
    expect(unwrap(await analyst.beginImport(id, { workspaceId: house.workspaceId, token: "x" }))).toBe("there");
    unwrap(await analyst.dropImport({ workspaceId: house.workspaceId, token: "x" }));
    expect((await analyst.describe(house.workspaceId)).ok).toBe(true);
  });
});

describe("an import whose last turn is under way", () => {
  /** The import has read its secrets, and goes on once the gate opens. */
  const last = async () => {
    const staged = await stage();
    const { begin, take, prepare, enter, agent, workspaceId } = staged;
    await begin();
    await take([memory("quinces")]);
    await prepare();
    await enter();
    const gate = createGate();
    const { sealedSecrets } = Workspace.prototype;
    vi.spyOn(Workspace.prototype, "sealedSecrets").mockImplementationOnce(async function (this: Workspace) {
      const sealed = await sealedSecrets.call(this);
      gate.reach();
      await gate.opened;
      return sealed;
    });
    const completed = agent().completeImport(workspaceId);
    await gate.reached;
    return { ...staged, gate, completed, workspace: env.WORKSPACE.getByName(workspaceId) };
  };

  test("[L5] has the secrets that were written or sealed anew meanwhile", async () => {
    const { workspace, id, gate, completed } = await last();
    const told = vi.spyOn(Agent.prototype, "setSecrets");
    unwrap(await workspace.putSecret("KEY", "v1.sealed"));
    await vi.waitFor(() => expect(told).toHaveBeenCalled());
    gate.open();
    unwrap(await completed);
    const secrets = () => rowsIn({ id }, "select secrets from agent");
    await vi.waitFor(async () => expect(JSON.stringify(await secrets())).toContain("v1.sealed"));
  });

  test("[R5] ends where its agent was deleted meanwhile", async () => {
    const { workspace, id, gate, completed, code } = await last();
    const ends = vi.spyOn(Agent.prototype, "remove");
    unwrap(await workspace.removeEntity(id));
    await vi.waitFor(() => expect(ends).toHaveBeenCalled());
    gate.open();
    await completed;
    await vi.waitFor(async () => expect(await code()).toBe("not_found"));
  });

  test("[L16] is waited for by an erasure, which then visits it", async () => {
    const { workspace, house, gate, completed } = await last();
    const { forgetSpace } = Agent.prototype;
    const told: boolean[] = [];
    vi.spyOn(Agent.prototype, "forgetSpace").mockImplementation(async function (this: Agent, ...given) {
      const answered = await forgetSpace.apply(this, given);
      told.push(answered.ok);
      return answered;
    });
    const { id } = await house.person("Mona");
    unwrap(await workspace.beginErasure({ kind: "person", id }, { id: "key" }));
    await vi.waitFor(() => expect(told).toEqual([false]));
    gate.open();
    unwrap(await completed);
    await vi.waitFor(async () => expect(unwrap(await workspace.erasure(id)).state).toBe("done"), 8000);
    expect(told).toContain(true);
  });

  test("[L16] names nobody any more who is erased, though its document named them", async () => {
    const { house, workspaceId, begin, take, prepare, enter, agent } = await stage();
    const [mona, husam] = [await house.person("Mona"), await house.person("Husam")];
    const named = ({ id, name }: typeof mona): ImportedRow => ({ at: "line 2", kind: "name", row: { id, name } });
    await begin();
    await take([named(mona), named(husam)]);
    await prepare();
    await enter();
    unwrap(await agent().completeImport(workspaceId));
    const workspace = env.WORKSPACE.getByName(workspaceId);
    unwrap(await workspace.beginErasure({ kind: "person", id: mona.id }, { id: "key" }));
    await vi.waitFor(async () => expect(unwrap(await workspace.erasure(mona.id)).state).toBe("done"), 8000);
    expect(await rowsWith(agent(), "Mona")).toEqual([]);
    expect(await rowsWith(agent(), "Husam")).toHaveLength(1);
  });

  test("[L4] keeps the names of its document, though a deleted message says them", async () => {
    const { workspaceId, begin, take, prepare, enter, agent } = await stage();
    const names = ["Mona of the quince orchards", "Husam of the quince orchards"];
    const rows = names.map((name) => ({ id: ids.mint("ent"), name }));
    await begin();
    await take(rows.map((row): ImportedRow => ({ at: "line 2", kind: "name", row })));
    await prepare();
    await enter();
    unwrap(await agent().completeImport(workspaceId));
    const said = rows.map(({ id, name }) => `${name} (${id})`).join(", ");
    unwrap(await agent().redact(workspaceId, [{ id: "erasure:1", words: [said], since: 0 }]));
    for (const { id, name } of rows) expect(await rowsWith(agent(), `${name}`), id).toHaveLength(1);
  });

  test("[L16] is visited by an erasure that asked the agents before it was known", async () => {
    const { workspace, house, gate, completed } = await last();
    const name = "Mona of the quince orchards by the sea";
    const { id } = await house.person(name);
    const second = await stage(house);
    await second.begin();
    await second.take([{ at: "line 2", kind: "memory", row: { key: "friend", value: name, updatedAt } }]);
    await second.prepare();
    unwrap(await workspace.beginErasure({ kind: "person", id }, { id: "key" }));
    // The agents are asked now: the first import is waited for.
    await vi.waitFor(async () => expect(unwrap(await workspace.erasure(id)).waiting).toHaveLength(1));
    await second.enter();
    unwrap(await second.agent().completeImport(second.workspaceId));
    gate.open();
    unwrap(await completed);
    await vi.waitFor(async () => expect(unwrap(await workspace.erasure(id)).state).toBe("done"), 8000);
    expect(await rowsWith(second.agent(), name)).toEqual([]);
  });
});
