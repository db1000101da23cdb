import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, test, vi } from "vitest";
import { Agent } from "../../src/agent/agent.ts";
import { AgentConfig } from "../../src/protocol/agent.ts";
import type { Delivery, EntityRef, SpaceSnapshot } from "../../src/protocol/rpc.ts";
import { refuse, unwrap } from "../../src/shared/errors.ts";
import { armFault } from "../../src/shared/fault.ts";
import { compartmentId } from "../../src/shared/ids.ts";
import { createGate } from "../support/gate.ts";
import { step, text, waitAt } from "../support/scripted-model.ts";
import {
  type AgentSettings,
  agentStub,
  ended,
  ids,
  inboxOf,
  openHouse,
  openScene,
  passTime,
  rowsIn,
  runsOf,
  scripted,
  told,
  undoLater,
} from "./fixture.ts";

const undo = undoLater();
const continuities = [["consciousness"], ["timeline"]] as const;

const mindIn = (agent: EntityRef, spaceId: string): EntityRef => ({
  ...agent,
  id: compartmentId(ids, agent.id, spaceId),
});

/** The tables of an object: none where it was never created, or was removed. */
const tablesOf = (object: { id: string }) =>
  rowsIn(object, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf%' ESCAPE '\\'");
const compartmentsOf = (agent: { id: string }) => rowsIn(agent, "SELECT space_id, mind_id FROM compartments");
const heardBy = async ({ id }: { id: string }) => (await rowsIn({ id }, "SELECT event_id FROM events")).length;

/** Has a method of every agent's object do this instead, until the test ends. */
type Method = "openCompartment" | "remove" | "feed";
const instead = (name: Method, make: (whole: () => Promise<unknown>) => Promise<unknown>): void => {
  const whole: unknown = Agent.prototype[name];
  const spy = vi.spyOn(Agent.prototype, name).mockImplementation(function (this: Agent, ...args: unknown[]) {
    return make(() => Reflect.apply(whole as () => Promise<unknown>, this, args)) as never;
  });
  undo.push(() => spy.mockRestore());
};

/** An agent and deliveries of a space that is made up: their messages wake nobody. */
const openApart = async (continuity: (typeof continuities)[number][0] = "consciousness") => {
  const house = await openHouse();
  const { workspaceId } = house;
  const husam = await house.person("Husam");
  const polaris = await house.agent({ name: "Polaris", continuity });
  const spaceId = ids.mint("spc");
  const at = "2031-03-03T12:00:00.000Z";
  const space: SpaceSnapshot = {
    ...{ id: spaceId, workspaceId, name: "Board", wakePolicy: "every_message", shareOrigin: "reference" },
    ...{ confidential: true, createdAt: at, version: 1 },
    members: [husam, polaris].map((member) => ({ ...member, joinedAt: at })),
  };
  const mind = mindIn(polaris, spaceId);
  let seq = 1;
  const delivery = (words: string, changes: Partial<Delivery> = {}): Delivery => {
    seq += 1;
    const id = ids.deriveOwned("msg", spaceId, seq);
    const message = { id, spaceId, seq, kind: "text", sender: husam, text: words, createdAt: at } as const;
    const root = { id, kind: "person", by: husam.id } as const;
    const compartment = { mindId: mind.id, agentId: polaris.id };
    const messages = [{ message, root, triggerSource: "none" as const }];
    return { space, messages, after: seq - 1, cursor: seq, left: false, compartment, ...changes };
  };
  const give = (told: Delivery, to = mind.id) => env.AGENT.getByName(to).deliver(JSON.stringify(told));
  return { ...{ workspaceId, polaris, mind, space, delivery, give }, agent: env.AGENT.getByName(polaris.id) };
};

/** An agent in a confidential space. */
const openBoard = async (settings: Partial<AgentSettings> = {}) => {
  const house = await openHouse();
  const { workspaceId, key } = house;
  const husam = await house.person("Husam");
  const polaris = await house.agent({ name: "Polaris", ...settings });
  const space = await house.space("Board", [husam, polaris], true);
  const mind = mindIn(polaris, space.id);
  return {
    ...{ house, workspaceId, husam, polaris, space, mind, key },
    agent: env.AGENT.getByName(polaris.id),
    compartment: env.AGENT.getByName(mind.id),
    ask: async (words: string, runs = 1) => {
      await space.post(husam, words);
      return ended(workspaceId, mind, runs);
    },
  };
};

const gone = { ok: false, problem: { code: "not_found" } };

describe("a compartment begins by itself", () => {
  test.each(continuities)(
    "[C17] words of a confidential space come to an object of their own (%s)",
    async (continuity) => {
      scripted(() => step(text("Noted.")));
      const { workspaceId, polaris, space, mind, ask } = await openBoard({ continuity });
      const [run] = await ask("The merger is on");
      expect(run?.status).toBe("completed");
      expect(await compartmentsOf(polaris)).toEqual([{ space_id: space.id, mind_id: mind.id }]);
      expect(await rowsIn(mind, "SELECT id, compartment_id, compartment_space_id FROM agent")).toEqual([
        { id: polaris.id, compartment_id: mind.id, compartment_space_id: space.id },
      ]);
      expect(await runsOf(workspaceId, polaris)).toEqual([]);
      expect(await inboxOf(workspaceId, polaris)).toEqual([]);
    },
  );

  test("[C17] the same delivery again, and side by side, is taken in once by one compartment", async () => {
    const { polaris, mind, delivery, give } = await openApart();
    const told = delivery("The merger is on");
    const answers = await Promise.all([give(told), give(told), give(told)]);
    expect(answers.map((answer) => unwrap(answer).cursor)).toEqual([2, 2, 2]);
    unwrap(await give(told));
    expect(await heardBy(mind)).toBe(1);
    expect(await compartmentsOf(polaris)).toHaveLength(1);
  });

  test("[C17] [C19] an erasure does not tell whether anything was said since the switch", async () => {
    const objectsWhere = async (...said: string[]): Promise<number> => {
      const { house, analyst, husam, space } = await openScene();
      const { workspaceId } = house;
      const mona = await house.person("Mona");
      unwrap(await space.stub().update({ kind: "key", workspaceId, keyId: "key" }, { confidential: true }));
      scripted(() => step(text("Noted.")));
      for (const words of said) await space.post(husam, words);
      if (said.length > 0) await ended(workspaceId, mindIn(analyst, space.id), said.length);
      await told(space.id);
      const workspace = env.WORKSPACE.getByName(workspaceId);
      unwrap(await workspace.beginErasure({ kind: "person", id: mona.id }, { id: "key" }));
      const isDone = async (): Promise<number> => {
        const { state, objects } = unwrap(await workspace.erasure(mona.id));
        expect(state).toBe("done");
        return objects;
      };
      return await vi.waitFor(isDone, 8000);
    };
    expect(await objectsWhere()).toBe(await objectsWhere("The merger is on"));
  });

  test("[C17] after a crash before its first delivery is stored the next one begins it", async () => {
    scripted(() => step(text("Noted.")));
    const house = await openHouse();
    const husam = await house.person("Husam");
    const polaris = await house.agent({ name: "Polaris" });
    const crashed = armFault("agent.after-deliver", 1);
    const space = await house.space("Board", [husam, polaris], true);
    await crashed;
    await space.post(husam, "The merger is on");
    await ended(house.workspaceId, mindIn(polaris, space.id), 1);
    expect(await compartmentsOf(polaris)).toHaveLength(1);
  });

  test("[C17] an open mind that crashed as it answered knows the compartment that begins later", async () => {
    const { polaris, mind, delivery, give } = await openApart();
    let isCut = true;
    instead("openCompartment", async (whole) => {
      const answer = await whole();
      return isCut ? refuse("unavailable", "it crashed as it answered") : answer;
    });
    const told = delivery("The merger is on");
    expect(await give(told)).toMatchObject({ ok: false, problem: { code: "unavailable" } });
    expect(await tablesOf(mind)).toEqual([]);
    expect(await compartmentsOf(polaris)).toHaveLength(1);
    isCut = false;
    unwrap(await give(told));
    expect(await heardBy(mind)).toBe(1);
    expect(await compartmentsOf(polaris)).toHaveLength(1);
  });

  test("[C17] an open mind that cannot be reached has the space try again", async () => {
    const { mind, delivery, give } = await openApart();
    instead("openCompartment", () => Promise.reject(new Error("overloaded")));
    expect(await give(delivery("Hello"))).toMatchObject({ ok: false, problem: { code: "unavailable" } });
    expect(await tablesOf(mind)).toEqual([]);
  });

  test("[C17] a delivery for another mind, of another space or of no agent stores nothing", async () => {
    const { workspaceId, polaris, mind, space, delivery, give } = await openApart();
    const nobody = ids.mint("ent");
    const compartment = (mindId: string, agentId: string) => ({ compartment: { mindId, agentId } });
    const elsewhere = { ...space, id: ids.mint("spc") };
    const unknown = mindIn({ ...polaris, id: nobody }, space.id).id;
    const foreign = { ...space, workspaceId: ids.mint("wsp") };
    for (const [told, to] of [
      [delivery("Hello", compartment(nobody, polaris.id)), nobody],
      [delivery("Hello", { space: elsewhere }), mind.id],
      [delivery("Hello", { space: foreign }), mind.id],
      [delivery("Hello", compartment(unknown, nobody)), unknown],
      [delivery("", { messages: [], left: true }), mind.id],
    ] as const) {
      expect(await give(told, to)).toMatchObject(gone);
      expect(await tablesOf({ id: to })).toEqual([]);
    }
    expect(await give(delivery("Hello"), polaris.id)).toMatchObject(gone);
    expect(await inboxOf(workspaceId, polaris)).toEqual([]);
    expect(await compartmentsOf(polaris)).toEqual([]);
  });

  test("[C17] a compartment takes no delivery of another space, nor one of its open mind", async () => {
    const { mind, space, delivery, give } = await openApart();
    unwrap(await give(delivery("Hello")));
    const elsewhere = { ...space, id: ids.mint("spc") };
    for (const changes of [{ space: elsewhere }, { compartment: undefined }]) {
      expect(await give(delivery("Hello", changes))).toMatchObject(gone);
    }
    expect(await heardBy(mind)).toBe(1);
  });

  test("[C18] a compartment takes no trigger, webhook or config of its own", async () => {
    const { workspaceId, mind, delivery, give } = await openApart();
    unwrap(await give(delivery("Hello")));
    const compartment = env.AGENT.getByName(mind.id);
    const refused = { ok: false, problem: { code: "forbidden", detail: expect.stringMatching(/open mind/) } };
    expect(await compartment.trigger(workspaceId, { serviceName: "s", payload: 1 })).toMatchObject(refused);
    expect(await compartment.update(workspaceId, { name: "Other" })).toMatchObject(refused);
    expect(await compartment.setSecrets(workspaceId, {})).toMatchObject(refused);
    expect(await compartment.openCompartment(workspaceId, ids.mint("spc"))).toMatchObject(refused);
    expect(await compartment.deleteHook(workspaceId, "hook")).toMatchObject(refused);
  });
});

describe("what ends a compartment", () => {
  test("[C18] removing the agent removes its compartments, and none begins again", async () => {
    const { workspaceId, polaris, mind, agent, delivery, give } = await openApart();
    unwrap(await give(delivery("Hello")));
    unwrap(await agent.remove(workspaceId));
    expect(await tablesOf(mind)).toEqual([]);
    expect(await tablesOf(polaris)).toEqual([]);
    expect(await give(delivery("Hello again"))).toMatchObject(gone);
    expect(await tablesOf(mind)).toEqual([]);
  });

  test("[C18] a compartment that cannot be reached keeps its agent until that is tried again", async () => {
    const { workspaceId, polaris, mind, agent, delivery, give } = await openApart();
    unwrap(await give(delivery("Hello")));
    let removals = 0;
    instead("remove", (whole) => {
      removals += 1;
      return removals === 2 ? Promise.reject(new Error("overloaded")) : whole();
    });
    expect(await agent.remove(workspaceId)).toMatchObject({ ok: false, problem: { code: "unavailable" } });
    expect(await compartmentsOf(polaris)).toHaveLength(1);
    expect(await agent.openCompartment(workspaceId, ids.mint("spc"))).toMatchObject(gone);
    unwrap(await agent.remove(workspaceId));
    expect(await tablesOf(mind)).toEqual([]);
    expect(await tablesOf(polaris)).toEqual([]);
  });

  test("[B2] [C18] a removal that a restart cut leases nothing more, and is finished by itself", async () => {
    const { workspaceId, polaris, mind, agent, delivery, give } = await openApart();
    unwrap(await give(delivery("Hello")));
    let removals = 0;
    instead("remove", (whole) => {
      removals += 1;
      return removals === 2 ? Promise.reject(new Error("overloaded")) : whole();
    });
    expect(await agent.remove(workspaceId)).toMatchObject({ ok: false, problem: { code: "unavailable" } });
    await runInDurableObject(agentStub(polaris), (_, state) => state.abort()).catch(() => undefined);
    const lease = { lease: `${mind.id} 1:0 1 a`, tokens: 1, person: null };
    const again = env.AGENT.getByName(polaris.id);
    expect(await again.leaseTokens(workspaceId, lease)).toMatchObject(gone);
    const anew = { id: polaris.id, workspaceId, config: AgentConfig.parse({ name: "Polaris" }) };
    expect(await again.create(anew)).toMatchObject({ ok: false, problem: { code: "unavailable" } });
    await passTime(polaris, 60_000);
    await expect.poll(() => tablesOf(polaris)).toEqual([]);
    expect(await tablesOf(mind)).toEqual([]);
    expect(await again.create(anew)).toMatchObject({ ok: true });
  });

  test("[R5] an open mind whose removal was cut takes nothing in and works no more", async () => {
    const gate = createGate();
    let calls = 0;
    scripted(() => {
      calls += 1;
      return calls === 1 ? step(text("Noted.")) : step(waitAt(gate), text("Late."));
    });
    const { workspaceId, polaris, agent, ask } = await openBoard();
    await ask("Hello");
    const event = { serviceName: "s", payload: 1 };
    unwrap(await agent.trigger(workspaceId, event));
    await gate.reached;
    let removals = 0;
    instead("remove", (whole) => {
      removals += 1;
      return removals === 2 ? Promise.reject(new Error("overloaded")) : whole();
    });
    expect(await agent.remove(workspaceId)).toMatchObject({ ok: false, problem: { code: "unavailable" } });
    await runInDurableObject(agentStub(polaris), (_, state) => state.abort()).catch(() => undefined);
    const again = env.AGENT.getByName(polaris.id);
    expect(await again.trigger(workspaceId, event)).toMatchObject(gone);
    await passTime(polaris, 6000);
    expect(await rowsIn(polaris, "SELECT status FROM runs")).toMatchObject([{ status: "running" }]);
    expect(calls).toBe(2);
    await passTime(polaris, 60_000);
    await expect.poll(() => tablesOf(polaris)).toEqual([]);
    expect(calls).toBe(2);
  });

  test.each(["feed", "lease"])(
    "[B2] a compartment that its agent's removal did not reach ends at its next %s",
    async (what) => {
      const model = scripted(() => step(text("Noted.")));
      const { workspaceId, husam, space, mind, agent, ask } = await openBoard();
      await ask("Hello");
      let removals = 0;
      instead("remove", (whole) => {
        removals += 1;
        return removals === 2 ? Promise.reject(new Error("overloaded")) : whole();
      });
      const gate = createGate();
      instead("feed", async (whole) => {
        const fed = what === "lease" && (await whole());
        gate.reach();
        await gate.opened;
        return fed || whole();
      });
      await space.post(husam, "Go on");
      await gate.reached;
      expect(await agent.remove(workspaceId)).toMatchObject({ ok: false, problem: { code: "unavailable" } });
      gate.open();
      await expect.poll(() => tablesOf(mind)).toEqual([]);
      expect(model.calls).toHaveLength(1);
      unwrap(await agent.remove(workspaceId));
    },
  );

  test("[C19] a compartment ends with its space, and its open mind forgets that there was one", async () => {
    const { polaris, mind, space, delivery, give } = await openApart();
    unwrap(await give(delivery("Falcon is on.")));
    expect(await compartmentsOf(polaris)).toHaveLength(1);
    const end = {
      ...delivery("", { left: true, messages: [] }),
      space: { ...space, version: 2, deleted: true as const },
    };
    expect(unwrap(await give(end))).toMatchObject({ cursor: end.cursor });
    expect(await tablesOf(mind)).toEqual([]);
    const again = await give({ ...end, messages: delivery("Falcon is off.").messages });
    expect(again).toMatchObject({ ok: false, problem: { code: "not_found" } });
    expect(await tablesOf(mind)).toEqual([]);
    unwrap(await give({ ...end, compartment: undefined, openUpTo: 0 }, polaris.id));
    expect(await compartmentsOf(polaris)).toEqual([]);
  });

  test("[C18] a compartment that begins while its agent is removed is removed too", async () => {
    const { workspaceId, polaris, mind, agent, delivery, give } = await openApart();
    const gate = createGate();
    instead("openCompartment", async (whole) => {
      const answer = await whole();
      gate.reach();
      await gate.opened;
      return answer;
    });
    const given = give(delivery("Hello"));
    await gate.reached;
    const removed = agent.remove(workspaceId);
    gate.open();
    await given;
    expect(await removed).toMatchObject({ ok: true });
    expect(await tablesOf(mind)).toEqual([]);
    expect(await tablesOf(polaris)).toEqual([]);
  });

  test.each(continuities)(
    "[C18] nothing wakes a compartment after its agent left, until it is back (%s)",
    async (continuity) => {
      vi.useFakeTimers({ toFake: ["Date"], now: new Date("2031-03-03T12:00:00Z") });
      const model = scripted(() => step(text("Noted.")));
      const { workspaceId, polaris, space, mind, key, compartment, ask } = await openBoard({ continuity });
      await ask("Hello");
      const plan = { name: "Daily", instruction: "Look", runAfter: "1 hour" };
      unwrap(await compartment.putPlan(workspaceId, "daily", plan));
      unwrap(await space.stub().removeMember(key, polaris.id));
      await vi.waitFor(async () => expect(await rowsIn(mind, 'SELECT "left" FROM spaces')).toEqual([{ left: 1 }]));
      await passTime(mind, 2 * 60 * 60_000);
      await passTime(mind, 60_000);
      expect(model.calls).toHaveLength(1);
      expect(await inboxOf(workspaceId, mind)).toEqual([]);
      unwrap(await space.stub().addMember(key, polaris));
      await vi.waitFor(async () => expect(await rowsIn(mind, 'SELECT "left" FROM spaces')).toEqual([{ left: 0 }]));
      await passTime(mind, 1000);
      await ended(workspaceId, mind, 2);
      expect(model.calls).toHaveLength(2);
    },
  );
});
