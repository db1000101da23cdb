import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { expect, onTestFinished, test, vi } from "vitest";
import { Agent } from "../../../src/agent/agent.ts";
import { redactionRows } from "../../../src/agent/bounds.ts";
import { places } from "../../../src/agent/redaction/places.ts";
import { AgentConfig } from "../../../src/protocol/agent.ts";
import { erasedMark } from "../../../src/protocol/entity.ts";
import type { Message } from "../../../src/protocol/message.ts";
import type { MessageChange } from "../../../src/protocol/message-change.ts";
import { unwrap } from "../../../src/shared/errors.ts";
import { Space } from "../../../src/space/space.ts";
import { createGate } from "../../support/gate.ts";
import { rowsWith } from "../../support/rows.ts";
import { apiError, call, refusal, step, text, waitAt } from "../../support/scripted-model.ts";
import { agentStub, ended, ids, openScene, passTime, rowsIn, scripted, userTexts } from "../fixture.ts";

/** An erased person's words wait for more of them, while the agent goes on. */
const open = async () => {
  const scene = await openScene();
  const mona = await scene.house.person("Mona");
  const model = scripted();
  const { analyst, agent, house } = scene;
  const spaces = [await house.space("Beta", [mona, analyst]), await house.space("Gamma", [mona, analyst])] as const;
  let runs = 0;
  return {
    ...{ ...scene, model, mona, spaces },
    /** Mona says it, and a run has read it. */
    heard: async (space: (typeof spaces)[number], words: string): Promise<Message> => {
      model.push(step(text("Well.")));
      const message = await space.post(mona, words);
      runs += 1;
      await ended(house.workspaceId, analyst, runs);
      return message;
    },
    forget: async ({ text: words = "", ...message }: Message): Promise<void> => {
      const deleted = { at: message.createdAt };
      const was = [erasedMark, mona.id, mona.name, words];
      const change: MessageChange = { seq: message.seq, kind: "deleted", message: { ...message, deleted }, was };
      unwrap(await agent.forgetMessages(house.workspaceId, [change]));
    },
    redactions: () => rowsIn(analyst, "SELECT id, words, message_ids, place FROM redactions"),
    rowsWith: (words: string): Promise<string[]> => rowsWith(agentStub(analyst), words),
  };
};

test("[L16] what an erased person said waits for more of it, and is looked for together", async () => {
  const { heard, forget, redactions, rowsWith, spaces, mona } = await open();
  const said = [
    await heard(spaces[0], "I like the quinces of the old orchard"),
    await heard(spaces[0], "I like the medlars of the new garden"),
    await heard(spaces[1], "I like the damsons of the northern slope"),
  ];
  for (const message of said) await forget(message);
  expect(new Set((await redactions()).map(({ words, place }) => `${place} ${words}`))).toEqual(
    new Set(said.map((message) => `0 ${JSON.stringify([message.text])}`)),
  );
  for (let more = 0; more < 60; more += 1)
    await forget({ ...said[0], id: ids.mintOwned("msg", spaces[0].id) } as Message);
  await vi.waitFor(async () => expect((await redactions()).map(({ id }) => id)).toEqual([`${mona.id} rows`]));
  for (const word of ["quinces", "medlars", "damsons"]) expect(await rowsWith(word)).toEqual([]);
});

test("[L4] a run that pauses holds up no redaction, and goes on without the words", async () => {
  const { model, space, husam, house, analyst, agent, redactions, rowsWith } = await open();
  model.push(refusal(apiError(429, { responseHeaders: { "retry-after": "7200" } })), step(text("Well.")));
  const message = await space.post(husam, "I like the quinces of the old orchard");
  const stateOf = async () => unwrap(await agent.describe(house.workspaceId)).activity?.state;
  await vi.waitFor(async () => expect(await stateOf()).toBe("backing_off"));
  unwrap(await space.stub().deleteMessage(house.key, message.id));
  await vi.waitFor(async () => expect(await redactions()).toMatchObject([{ words: null }]));
  expect(await rowsWith("quinces")).toEqual([]);
  vi.useFakeTimers({ toFake: ["Date"] });
  await passTime(analyst, 14_400_000);
  await ended(house.workspaceId, analyst, 1);
  expect(JSON.stringify(model.calls.at(-1)?.prompt)).not.toContain("quinces");
});

test("[L4] [L6] a run that a suspension stopped holds up no redaction", async () => {
  const { model, space, husam, house, analyst, agent, redactions, rowsWith } = await open();
  const gate = createGate();
  const noted = call("set_memories", { memories: [{ key: "asked", value: "yes" }] });
  model.push(step(waitAt(gate), noted), step(text("Well.")));
  const message = await space.post(husam, "I like the quinces of the old orchard");
  await gate.reached;
  unwrap(await agent.setSuspended(house.workspaceId, true));
  gate.open();
  const paused = "SELECT count(*) AS runs FROM runs WHERE resume_at > 0";
  await vi.waitFor(async () => expect(await rowsIn(analyst, paused)).toEqual([{ runs: 1 }]));
  unwrap(await space.stub().deleteMessage(house.key, message.id));
  await vi.waitFor(async () => expect(await redactions()).toMatchObject([{ words: null }]));
  expect(await rowsWith("quinces")).toEqual([]);
  unwrap(await agent.setSuspended(house.workspaceId, false));
  await ended(house.workspaceId, analyst, 1);
  expect(JSON.stringify(model.calls.at(-1)?.prompt)).not.toContain("quinces");
});

test("[L16] a run that begins before its redaction is done is waited for", async () => {
  const { heard, forget, redactions, rowsWith, spaces, model, space, husam, house, analyst } = await open();
  const message = await heard(spaces[0], "I like the quinces of the old orchard");
  await forget(message);
  const gate = createGate();
  model.push(step(waitAt(gate), text("I thought of the quinces of the old orchard.")));
  await space.post(husam, "And now?");
  await gate.reached;
  await vi.waitFor(async () => expect((await redactions())[0]?.place).toBe(places.length + 1));
  gate.open();
  await ended(house.workspaceId, analyst, 2);
  await vi.waitFor(async () => expect((await redactions())[0]?.words).toBeNull());
  expect(await rowsWith("quinces")).toEqual([]);
});

/** As many dead events as one go looks at. */
const filler = `INSERT INTO inbox (event_id, type, data, root_id, received_at, wakes, status)
  WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${redactionRows})
  SELECT 'evt ' || i, 'service', '{}', 'root', unixepoch() * 1000, 0, 'dead' FROM n`;

test("[L4] a run that begins between two looks keeps no key of deleted words", async () => {
  const { model, space, house, analyst, agent, ask, redactions, rowsWith } = await open();
  for (let runs = 0; runs < 4; runs += 1) model.push(step(text("Well.")));
  const said = "correct-horse-battery-staple";
  await ask(`The safe opens by ${said}`, 1);
  unwrap(await agent.putMemory(house.workspaceId, said, "the safe"));
  await rowsIn(analyst, filler);
  await evictDurableObject(agentStub(analyst));
  const alarms = vi.spyOn(Agent.prototype, "alarm").mockImplementation(async () => undefined);
  onTestFinished(() => alarms.mockRestore());
  const [message] = await space.messages();
  unwrap(await space.stub().deleteMessage(house.key, message?.id ?? ""));
  const inbox = places.findIndex(({ table }) => table === "inbox");
  await vi.waitFor(async () => expect(await redactions()).toMatchObject([{ place: inbox }]));
  await ask("Hello", 2);
  expect(await redactions()).toMatchObject([{ place: inbox }]);
  alarms.mockRestore();
  await evictDurableObject(agentStub(analyst));
  await ask("And now?", 3);
  await vi.waitFor(async () => expect(await redactions()).toMatchObject([{ words: null }]), 9000);
  expect(await rowsWith(said)).toEqual([]);
  await ask("Well?", 4);
  expect(userTexts(model.calls.at(-1)).join("\n")).not.toContain(said);
});

test("[L4] a run that begins between two looks keeps no deleted words as what woke it", async () => {
  const { model, space, husam, house, analyst, agent, ask, redactions, rowsWith } = await open();
  await rowsIn(analyst, filler);
  await evictDurableObject(agentStub(analyst));
  const gate = createGate();
  model.push(step(waitAt(gate), text("Well.")), step(text("Well.")), step(text("Well.")));
  const message = await space.post(husam, "I like the quinces of the old orchard");
  await gate.reached;
  const event = { serviceName: "jira", payload: { title: "the quinces of the old orchard" } };
  unwrap(await agent.trigger(house.workspaceId, event));
  const alarms = vi.spyOn(Agent.prototype, "alarm").mockImplementation(async () => undefined);
  onTestFinished(() => alarms.mockRestore());
  unwrap(await space.stub().deleteMessage(house.key, message.id));
  const inbox = places.findIndex(({ table }) => table === "inbox");
  await vi.waitFor(async () => expect(await redactions()).toMatchObject([{ place: inbox }]));
  gate.open();
  await ended(house.workspaceId, analyst, 2);
  expect(await redactions()).toMatchObject([{ place: inbox }]);
  alarms.mockRestore();
  await evictDurableObject(agentStub(analyst));
  await ask("And now?", 3);
  await vi.waitFor(async () => expect(await redactions()).toMatchObject([{ words: null }]), 9000);
  expect(await rowsWith("quinces")).toEqual([]);
});

test("[L4] what a provider quotes of deleted words as it refuses a run is in no row", async () => {
  const { space, husam, house, agent, redactions, rowsWith } = await open();
  const gate = createGate();
  onTestFinished(gate.open);
  const said = "I like the quinces of the old orchard";
  scripted(async (_, index) => {
    if (index > 0) return step(text("Well."));
    gate.reach();
    await gate.opened;
    return refusal(apiError(400, { message: `This is not allowed: "${said}"` }));
  });
  const message = await space.post(husam, said);
  await gate.reached;
  unwrap(await space.stub().deleteMessage(house.key, message.id));
  await vi.waitFor(async () => expect(await redactions()).toMatchObject([{ place: places.length + 1 }]));
  gate.open();
  await vi.waitFor(async () => expect(await redactions()).toMatchObject([{ words: null }]));
  const { items } = unwrap(await agent.runs(house.workspaceId, { limit: 9 }));
  expect(items.at(-1)?.error?.message).toContain('not allowed: \\"[deleted]\\"');
  expect(await rowsWith("quinces")).toEqual([]);
});

test("[L4] a plan that comes due between two looks brings no deleted words", async () => {
  const { ask, space, house, analyst, agent } = await openScene({ limits: { maxRunsPerHour: 1 } });
  const model = scripted(() => step(text("Well.")));
  const redactions = () => rowsIn(analyst, "SELECT words, place FROM redactions");
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
  onTestFinished(() => void vi.useRealTimers());
  await ask("I like the quinces of the old orchard", 1);
  const plan = { name: "Pick", instruction: "Pick the quinces of the old orchard", runAfter: "1 minutes" };
  unwrap(await agent.putPlan(house.workspaceId, "pick", plan));
  // As many windows as one go looks at: they stand between what waits and the plans.
  const columns = (await rowsIn(analyst, "SELECT name FROM pragma_table_info('windows') WHERE name <> 'id'"))
    .map(({ name }) => name)
    .join();
  await rowsIn(
    analyst,
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${redactionRows})
     INSERT INTO windows (${columns}) SELECT ${columns} FROM windows, n`,
  );
  await evictDurableObject(agentStub(analyst));
  const alarms = vi.spyOn(Agent.prototype, "alarm").mockImplementation(async () => undefined);
  onTestFinished(() => alarms.mockRestore());
  vi.setSystemTime(Date.now() + 120_000);
  const [message] = await space.messages();
  unwrap(await space.stub().deleteMessage(house.key, message?.id ?? ""));
  const windows = places.findIndex(({ table }) => table === "windows");
  await vi.waitFor(async () => expect(await redactions()).toMatchObject([{ place: windows }]));
  alarms.mockRestore();
  await vi.waitFor(async () => {
    await passTime(analyst, 1000);
    expect(await redactions()).toMatchObject([{ words: null }]);
  });
  expect(await rowsIn(analyst, "SELECT type FROM inbox")).toEqual([{ type: "plan" }]);
  await passTime(analyst, 3_600_000);
  await ended(house.workspaceId, analyst, 2);
  expect(userTexts(model.calls.at(-1)).join("\n")).toContain("Pick");
  expect(await rowsWith(agentStub(analyst), "quinces")).toEqual([]);
});

/** Begins a redaction that stops at the events that were overheard: there are more than one go looks at. No alarm goes off. */
const stopAtOverheard = async (scene: Awaited<ReturnType<typeof openScene>>, messageId: string) => {
  const { analyst, space, house } = scene;
  const redactions = () => rowsIn(analyst, "SELECT words, place FROM redactions");
  const event = '{"type":"service","serviceName":"s","payload":1,"root":{"id":"r","kind":"service"}}';
  await rowsIn(
    analyst,
    `INSERT INTO overheard (seq, event_id, type, data, root_id, received_at)
     WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${redactionRows})
     SELECT 1000 + i, 'evt ' || i, 'service', '${event}', 'r', unixepoch() * 1000 FROM n`,
  );
  const alarms = vi.spyOn(Agent.prototype, "alarm").mockImplementation(async () => undefined);
  onTestFinished(() => alarms.mockRestore());
  unwrap(await space.stub().deleteMessage(house.key, messageId));
  const overheard = places.findIndex(({ table }) => table === "overheard");
  await vi.waitFor(async () => expect(await redactions()).toMatchObject([{ place: overheard }]));
  return async (): Promise<void> => {
    expect(await redactions()).toMatchObject([{ place: overheard }]);
    alarms.mockRestore();
    await vi.waitFor(async () => {
      await runInDurableObject(agentStub(analyst), (object) => object.alarm());
      expect(await redactions()).toMatchObject([{ words: null }]);
    });
  };
};

test.each(["an answer", "nobody's answer"])(
  "[L4] a question whose wait brings %s between two looks is told without deleted words",
  async (what) => {
    const scene = await openScene({ messaging: "threaded", limits: { maxRunsPerHour: 1 } });
    const { house, space, analyst } = scene;
    const mona = await house.person("Mona");
    unwrap(await space.stub().addMember(house.key, mona));
    const words = "the quinces of the old orchard";
    const asked = call("send_message", { text: `@Mona Do you like ${words}?`, wait: true });
    scripted([step(call("enter_space", { spaceId: space.id }), asked), step(text("Well."))]);
    await scene.ask(`I like ${words}`, 1);
    const [message] = await space.messages();
    const goOn = await stopAtOverheard(scene, message?.id ?? "");
    if (what === "an answer") await space.post(mona, "I do");
    else unwrap(await space.stub().removeMember(house.key, mona.id));
    const events = () => rowsIn(analyst, "SELECT type FROM inbox WHERE seq > 1000");
    await vi.waitFor(async () => expect(await events()).toHaveLength(1));
    await goOn();
    expect(await events()).toHaveLength(1);
    expect(await rowsWith(agentStub(analyst), "quinces")).toEqual([]);
  },
);

test("[L4] a call's result that comes to the inbox between two looks has no deleted words", async () => {
  const tool = { name: "lookUp", description: "Looks it up", executionType: "external", async: true } as const;
  const { tools } = AgentConfig.parse({ name: "Any", tools: [tool] });
  const scene = await openScene({ tools, continuity: "timeline", limits: { maxRunsPerHour: 1 } });
  const { house, analyst, agent } = scene;
  const words = "the quinces of the old orchard";
  scripted([step(call("lookUp", { like: words })), step(text("Well."))]);
  await scene.ask(`I like ${words}`, 1);
  const [message] = await scene.space.messages();
  // Its space hears of the answer late, and the inbox after that.
  const gate = createGate();
  const { recordToolCall } = Space.prototype;
  const telling = vi.spyOn(Space.prototype, "recordToolCall").mockImplementation(async function (this: Space, shown) {
    gate.reach();
    await gate.opened;
    return recordToolCall.call(this, shown);
  });
  onTestFinished(() => telling.mockRestore());
  const [row] = await rowsIn(analyst, "SELECT call_id FROM calls");
  unwrap(await agent.answerToolCall(house.workspaceId, String(row?.call_id), { result: `Found: ${words}` }));
  await gate.reached;
  const goOn = await stopAtOverheard(scene, message?.id ?? "");
  gate.open();
  const events = () => rowsIn(analyst, "SELECT type FROM inbox WHERE seq > 1000");
  await vi.waitFor(async () => expect(await events()).toEqual([{ type: "tool_result" }]));
  await goOn();
  expect(await events()).toHaveLength(1);
  expect(await rowsWith(agentStub(analyst), "quinces")).toEqual([]);
});

test("[L4] what a server answers of a call while its words are taken out has none of them", async () => {
  const tool = { name: "lookUp", description: "Looks it up", executionType: "external", async: true } as const;
  const { tools } = AgentConfig.parse({ name: "Any", tools: [tool] });
  const { house, space, husam, analyst, agent } = await openScene({ tools, continuity: "timeline" });
  const words = "the quinces of the old orchard";
  const gate = createGate();
  onTestFinished(gate.open);
  const model = scripted([step(call("lookUp", { like: words })), step(waitAt(gate), text("Well."))]);
  const { id } = await space.post(husam, `I like ${words}`);
  await gate.reached;
  model.push(step(text("Found.")));
  unwrap(await space.stub().deleteMessage(house.key, id));
  const redactions = () => rowsIn(analyst, "SELECT words, place FROM redactions");
  await vi.waitFor(async () => expect(await redactions()).toMatchObject([{ place: places.length + 1 }]));
  const [row] = await rowsIn(analyst, "SELECT call_id FROM calls");
  const answer = () =>
    agent.answerToolCall(house.workspaceId, String(row?.call_id), { result: `Found: ${words}` }).then(unwrap);
  // A server that missed ours answers again.
  expect([await answer(), await answer()]).toMatchObject([{ created: true }, { created: false }]);
  gate.open();
  await vi.waitFor(async () => expect(await redactions()).toMatchObject([{ words: null }]));
  expect(await rowsIn(analyst, "SELECT call_id FROM calls")).toHaveLength(1);
  expect(await rowsWith(agentStub(analyst), "quinces")).toEqual([]);
});

test("[L4] an overheard event that a failed run gives back between two looks has no old words", async () => {
  const scene = await openScene();
  const { house, analyst, space, husam } = scene;
  const words = "the quinces of the old orchard";
  const model = scripted((_, index) => (index === 1 ? refusal(apiError(400)) : step(text("Well."))));
  await scene.ask(`I like ${words}`, 1);
  const [message] = await space.messages();
  const event = { type: "service", serviceName: "s", payload: words, root: { id: "r", kind: "service" } };
  const query = "INSERT INTO overheard VALUES (2000, 'last', 'service', ?, 'r', unixepoch() * 1000)";
  await rowsIn(analyst, query, JSON.stringify(event));
  const goOn = await stopAtOverheard(scene, message?.id ?? "");
  await space.post(husam, "And now?");
  await vi.waitFor(async () =>
    expect(await rowsIn(analyst, "SELECT status FROM inbox WHERE seq = 2000 AND attempts = 1")).toHaveLength(1),
  );
  await goOn();
  expect(await rowsWith(agentStub(analyst), "quinces")).toEqual([]);
  await ended(house.workspaceId, analyst, 3);
  expect(JSON.stringify(model.calls.at(-1)?.prompt)).not.toContain("quinces");
});
