import { abortAllDurableObjects, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, expect, test, vi } from "vitest";
import { histories } from "../../migrations/histories.ts";
import { Agent } from "../../src/agent/agent.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { Space } from "../../src/space/space.ts";
import { agentStub, ended, ids, openScene, scripted, told } from "../agent/fixture.ts";
import { createGate } from "../support/gate.ts";
import { rowsWith } from "../support/rows.ts";
import { answer, call, type ScriptedStep, step, text, waitAt } from "../support/scripted-model.ts";

/** The words of a message that an agent told elsewhere as the origin of its own. */
afterEach(() => void vi.restoreAllMocks());

const stubOf = (spaceId: string): unknown => env.SPACE.getByName(spaceId);

/** Mona says it in Beta, and an agent that hears it says something of it in Alpha, with its words. */
const open = async () => {
  const scene = await openScene({ continuity: "timeline" });
  const { house, analyst, space } = scene;
  const mona = await house.person("Mona");
  const source = await house.space("Beta", [mona, analyst]);
  unwrap(await source.stub().update(house.key, { shareOrigin: "text" }));
  await told(source.id);
  const workspaceNow = () => env.WORKSPACE.getByName(house.workspaceId);
  const workspace = workspaceNow();
  return {
    ...{ ...scene, mona, source, workspace },
    tell: async (...more: ScriptedStep[]) => {
      const model = scripted([...answer(space.id, "There is news."), ...more]);
      const message = await source.post(mona, "Tell them of the quinces");
      await ended(house.workspaceId, analyst, 1);
      expect(await rowsWith(stubOf(space.id), "quinces")).not.toEqual([]);
      return { message, model };
    },
    /** An agent that is in Alpha alone. */
    openOther: async () => {
      const other = await house.agent({ name: "Other", continuity: "timeline" });
      unwrap(await space.stub().addMember(house.key, other));
      await told(space.id);
      return other;
    },
    endAgent: async () => {
      unwrap(await workspace.removeEntity(analyst.id));
      await vi.waitFor(async () =>
        expect((await env.AGENT.getByName(analyst.id).describe(house.workspaceId)).ok).toBe(false),
      );
    },
    goneThere: (...words: string[]) =>
      vi.waitFor(async () => {
        for (const each of words) expect(await rowsWith(stubOf(space.id), each)).toEqual([]);
      }),
    erase: async () => unwrap(await workspaceNow().beginErasure({ kind: "person", id: mona.id }, { id: "key" })),
    isErased: () =>
      vi.waitFor(
        async () => expect(unwrap(await workspaceNow().erasure(mona.id))).toMatchObject({ state: "done" }),
        8000,
      ),
  };
};

test("[L16] what a deleted agent told of an erased person goes from the space that was told", async () => {
  const { tell, endAgent, erase, isErased, space } = await open();
  const { message } = await tell();
  await endAgent();
  await erase();
  await isErased();
  for (const word of ["quinces", "Mona"]) expect(await rowsWith(stubOf(space.id), word)).toEqual([]);
  // The reference stays.
  expect(JSON.stringify(await space.messages())).toContain(message.id);
});

test("[L1] what a deleted agent told of a message goes with that message, or its edit", async () => {
  const { tell, endAgent, source, house, goneThere, space, mona } = await open();
  const { message } = await tell();
  await endAgent();
  unwrap(await source.stub().editMessage(source.as(mona), message.id, "Tell them of the pears"));
  await goneThere("quinces");
  unwrap(await source.stub().deleteMessage(house.key, message.id));
  await told(source.id);
  expect(JSON.stringify(await space.messages())).toContain(message.id);
});

test("[L13] what other spaces were told of a deleted space goes from them, its name too", async () => {
  const { tell, source, house, goneThere } = await open();
  await tell();
  unwrap(await source.stub().remove(house.key));
  await goneThere("quinces", "Mona", "Beta");
});

test.each(["message", "person"] as const)(
  "[L1] [L16] words that were told before their space noted it go with their %s",
  async (what) => {
    const { tell, endAgent, source, house, goneThere, space, erase, isErased } = await open();
    const { message } = await tell();
    await endAgent();
    const inside = (spaceId: string, sql: string) =>
      runInDurableObject(stubOf(spaceId) as DurableObjectStub, (_, { storage }) => void storage.sql.exec(sql));
    await vi.waitFor(async () => expect(await rowsWith(stubOf(source.id), '"told":')).not.toEqual([]));
    await inside(source.id, "update log set routing = json_remove(routing, '$.told') where routing is not null");
    const { when } = histories.space.journal.entries.find(({ tag }) => tag === "0013_told_origins") ?? {};
    await inside(space.id, "alter table members drop column follows");
    await inside(space.id, `delete from __drizzle_migrations where created_at >= ${when}`);
    // What later migrations added.
    await inside(space.id, "alter table subscribers drop column endpoint");
    const before = histories.space.journal.entries.findLast((entry) => entry.when < (when ?? 0))?.when;
    await inside(space.id, `insert into __drizzle_migrations (hash, created_at) values ('', ${before})`);
    await abortAllDurableObjects();
    if (what === "person") await erase();
    if (what === "person") await isErased();
    else {
      await space.messages();
      unwrap(await source.stub().deleteMessage(house.key, message.id));
    }
    await goneThere("quinces");
  },
);

test("[L1] a message that is deleted before its space knows who was told of it goes there too", async () => {
  const { tell, endAgent, source, house, goneThere } = await open();
  const gate = createGate();
  const { noteTold } = Space.prototype;
  vi.spyOn(Space.prototype, "noteTold").mockImplementationOnce(async function (this: Space, ...given) {
    gate.reach();
    await gate.opened;
    return noteTold.apply(this, given);
  });
  const { message } = await tell();
  await gate.reached;
  await endAgent();
  unwrap(await source.stub().deleteMessage(house.key, message.id));
  await told(source.id);
  gate.open();
  await goneThere("quinces");
});

test.each(["message", "space"] as const)(
  "[L4] [L13] what an origin told goes with the agent's own %s",
  async (what) => {
    const { tell, openOther, space, house, analyst } = await open();
    const other = await openOther();
    await tell(step(text("Well.")));
    await ended(house.workspaceId, other, 1);
    expect(await rowsWith(agentStub(other), "quinces")).not.toEqual([]);
    const { id = "" } = (await space.messages()).at(-1) ?? {};
    unwrap(await (what === "space" ? space.stub().remove(house.key) : space.stub().deleteMessage(house.key, id)));
    await vi.waitFor(async () => expect(await rowsWith(agentStub(other), "quinces")).toEqual([]));
    // Mona's own message stays where she said it.
    expect(await rowsWith(agentStub(analyst), "quinces")).not.toEqual([]);
  },
);

test("[L16] an erasure is over once agents that only read of it as an origin have forgotten", async () => {
  const { tell, openOther, erase, isErased, workspace, mona, house, space } = await open();
  const other = await openOther();
  await tell(step(text("Well.")));
  await ended(house.workspaceId, other, 1);
  expect(await rowsWith(agentStub(other), "quinces")).not.toEqual([]);
  const gate = createGate();
  const { deliver } = Agent.prototype;
  vi.spyOn(Agent.prototype, "deliver").mockImplementation(async function (this: Agent, delivery) {
    const isTold = delivery.includes(space.id) && delivery.includes("quinces");
    if (isTold) gate.reach();
    if (isTold) await gate.opened;
    return deliver.call(this, delivery);
  });
  const asked = vi.spyOn(Space.prototype, "erase");
  await erase();
  await gate.reached;
  asked.mockClear();
  const state = async () => unwrap(await workspace.erasure(mona.id)).state;
  await vi.waitUntil(async () => (await state()) === "done" || asked.mock.calls.length > 3, 8000);
  expect(await state()).toBe("running");
  gate.open();
  await isErased();
  expect(await rowsWith(agentStub(other), "quinces")).toEqual([]);
});

test("[L4] what an origin told goes from agents too that have left the space since", async () => {
  const { tell, openOther, house, space, source } = await open();
  const other = await openOther();
  const { message } = await tell(step(text("Well.")));
  await ended(house.workspaceId, other, 1);
  unwrap(await space.stub().removeMember(house.key, other.id));
  await told(space.id);
  expect(await rowsWith(agentStub(other), "quinces")).not.toEqual([]);
  unwrap(await source.stub().deleteMessage(house.key, message.id));
  await vi.waitFor(async () => expect(await rowsWith(agentStub(other), "quinces")).toEqual([]));
});

test("[L1] a call's origin goes also from how the call stood before its space was confidential", async () => {
  const { house, space, source, mona, analyst, goneThere } = await open();
  scripted([step(text("Well."))]);
  const message = await source.post(mona, "Tell them of the quinces");
  await ended(house.workspaceId, analyst, 1);
  const toolCallId = ids.deriveOwned("tc", analyst.id, "look");
  const call = {
    ...{ workspaceId: house.workspaceId, agentId: analyst.id, runId: ids.deriveOwned("run", analyst.id, "look") },
    ...{ toolCallId, messageId: ids.deriveOwned("msg", space.id, toolCallId), name: "look", input: {} },
    root: { id: message.id, kind: "person", by: mona.id },
    origin: {
      ...{ spaceId: source.id, messageId: message.id, sourceSpaceName: "Beta" },
      ...{ sourceSenderName: mona.name, sourceEvent: message.text },
    },
  } as const;
  unwrap(await space.stub().recordToolCall({ ...call, status: "running" }));
  unwrap(await space.stub().update(house.key, { confidential: true }));
  unwrap(await space.stub().recordToolCall({ ...call, status: "complete", output: "done" }));
  unwrap(await source.stub().deleteMessage(house.key, message.id));
  await goneThere("quinces", mona.name);
});

test.each(["edited", "deleted"] as const)(
  "[L13] a deleted space's name goes from where its message, %s before, was told",
  async (how) => {
    const { tell, source, house, mona, goneThere } = await open();
    const { message } = await tell();
    const stub = source.stub();
    if (how === "edited") unwrap(await stub.editMessage(source.as(mona), message.id, "Tell them of the pears"));
    else unwrap(await stub.deleteMessage(house.key, message.id));
    await goneThere("quinces", "Mona");
    unwrap(await stub.remove(house.key));
    await goneThere("Beta");
  },
);

test("[C17] an origin tells nothing of a space that became confidential once its agent had left", async () => {
  const { source, house, space, mona, analyst } = await open();
  const gate = createGate();
  const [, ...rest] = answer(space.id, "There is news.");
  scripted([step(waitAt(gate), call("enter_space", { spaceId: space.id })), ...rest]);
  await source.post(mona, "Tell them of the quinces");
  await gate.reached;
  unwrap(await source.stub().removeMember(house.key, analyst.id));
  await told(source.id);
  unwrap(await source.stub().update(house.key, { confidential: true }));
  gate.open();
  await ended(house.workspaceId, analyst, 1);
  expect(await space.messages()).toMatchObject([{ text: "There is news." }]);
  for (const word of ["quinces", "Beta", source.id]) expect(await rowsWith(stubOf(space.id), word)).toEqual([]);
});
