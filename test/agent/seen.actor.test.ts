import { env } from "cloudflare:workers";
import { expect, test, vi } from "vitest";
import { unwrap } from "../../src/shared/errors.ts";
import { createGate } from "../support/gate.ts";
import { call, type ScriptedModel, step, text, waitAt } from "../support/scripted-model.ts";
import { type AgentSettings, ended, openHouse, runsOf, scripted, userTexts } from "./fixture.ts";

/** Agents are woken by being mentioned only; all else is quiet. */
const stage = async (settings: Partial<AgentSettings> = {}) => {
  const house = await openHouse();
  const [husam, sara] = [await house.person("Husam"), await house.person("Sara")];
  const analyst = await house.agent({ name: "Analyst", continuity: "timeline", ...settings });
  const room = async (name: string) => {
    const space = await house.space(name, [husam, sara, analyst]);
    unwrap(await space.stub().update(house.key, { wakePolicy: "addressed" }));
    return space;
  };
  const space = await room("Alpha");
  const ask = async (words: string, runs = 1): Promise<void> => {
    await space.post(husam, words);
    await ended(house.workspaceId, analyst, runs);
  };
  return { house, husam, sara, analyst, room, space, ask, agent: env.AGENT.getByName(analyst.id) };
};

/** What a model's input says of each message of one space's history, oldest first: `N` new, `S` seen, by its text. */
const marksIn = (model: ScriptedModel, call: number): string[] =>
  [...(userTexts(model.calls[call])[0] ?? "").matchAll(/ {2}\[msg_.*: "(.*?)" {2}\[(SEEN|NEW)\]/g)].map(
    ([, words, mark]) => `${mark === "NEW" ? "N" : "S"} ${words}`,
  );

test("a quiet message that came after a run's input was composed is [NEW] once", async () => {
  const { house, husam, sara, analyst, space, ask } = await stage();
  const gate = createGate();
  const model = scripted([step(waitAt(gate), text("Read.")), step(text("Read.")), step(text("Read."))]);
  await space.post(husam, "@Analyst one");
  await gate.reached;
  await space.post(sara, "aside");
  gate.open();
  await ended(house.workspaceId, analyst, 1);
  await space.post(sara, "later");
  await ask("@Analyst two", 2);
  await ask("@Analyst three", 3);
  expect(marksIn(model, 1)).toEqual(["S @Analyst one", "N aside", "N later", "N @Analyst two"]);
  expect(marksIn(model, 2)).toEqual(["S @Analyst one", "S aside", "S later", "S @Analyst two", "N @Analyst three"]);
});

test("a quiet message that a run was shown after its trigger is [SEEN] in the next run", async () => {
  const { house, husam, sara, analyst, space, ask } = await stage({ limits: { maxConcurrentRuns: 1 } });
  const gate = createGate();
  const model = scripted([step(waitAt(gate), text("Read.")), step(text("Read.")), step(text("Read."))]);
  await space.post(husam, "@Analyst one");
  await gate.reached;
  await space.post(husam, "@Analyst two");
  await space.post(sara, "after two");
  gate.open();
  await ended(house.workspaceId, analyst, 2);
  await ask("@Analyst three", 3);
  expect(marksIn(model, 1)).toEqual(["S @Analyst one", "N @Analyst two", "N after two"]);
  expect(marksIn(model, 2)).toEqual(["S @Analyst one", "S @Analyst two", "S after two", "N @Analyst three"]);
});

test("a message that waits stays [NEW] though a run beside it was shown it and is committed", async () => {
  const { house, husam, analyst, space } = await stage({ limits: { maxConcurrentRuns: 2 } });
  const [one, two] = [createGate(), createGate()];
  const model = scripted((_, index) => {
    const gate = [one, two][index];
    return gate ? step(waitAt(gate), text("Read.")) : step(text("Read."));
  });
  await space.post(husam, "@Analyst one");
  await one.reached;
  await space.post(husam, "@Analyst two");
  await two.reached;
  two.open();
  await vi.waitFor(async () => expect((await runsOf(house.workspaceId, analyst))[0]?.status).toBe("completed"));
  await space.post(husam, "@Analyst three");
  await model.called(3);
  expect(marksIn(model, 2)).toEqual(["N @Analyst one", "S @Analyst two", "N @Analyst three"]);
  one.open();
  await ended(house.workspaceId, analyst, 3);
});

test("[R5] a canceled run's message is done with, and what it only was shown is [NEW] still", async () => {
  const { house, husam, sara, analyst, space, agent, ask } = await stage();
  const gate = createGate();
  const model = scripted([step(waitAt(gate)), step(text("Read.")), step(text("Read."))]);
  await space.post(sara, "aside");
  await space.post(husam, "@Analyst one");
  await gate.reached;
  const [run] = await runsOf(house.workspaceId, analyst);
  unwrap(await agent.cancelRun(house.workspaceId, run?.id ?? ""));
  await ask("@Analyst two", 2);
  expect(marksIn(model, 1)).toEqual(["N aside", "S @Analyst one", "N @Analyst two"]);
  await ask("@Analyst three", 3);
  expect(marksIn(model, 2)).toEqual(["S aside", "S @Analyst one", "S @Analyst two", "N @Analyst three"]);
});

test("what a run read in another space is [SEEN] there, and the tool marks what was seen before", async () => {
  const { house, husam, sara, analyst, room, ask } = await stage();
  const beta = await room("Beta");
  const model = scripted([
    step(call("enter_space", { spaceId: beta.id })),
    step(text("Read.")),
    step(call("read_messages", { spaceId: beta.id })),
    step(text("Read.")),
    step(text("Read.")),
  ]);
  await beta.post(sara, "in Beta");
  await ask("@Analyst look at Beta");
  await beta.post(sara, "more");
  await ask("@Analyst again", 2);
  const seenIn = (call: number) =>
    [...JSON.stringify(model.calls[call]?.prompt).matchAll(/"content":"(in Beta|more)".*?"seen":(true|false)/g)].map(
      ([, words, seen]) => `${words} ${seen}`,
    );
  expect(seenIn(1)).toEqual(["in Beta false"]);
  expect(seenIn(3)).toEqual(["in Beta true", "more false"]);
  await beta.post(husam, "@Analyst here");
  await ended(house.workspaceId, analyst, 3);
  expect(marksIn(model, 4)).toEqual(["S in Beta", "S more", "N @Analyst here"]);
});

test("what a living agent took in is [SEEN] once it is stateless; what still waited is [NEW]", async () => {
  const { house, sara, space, agent, ask } = await stage({ continuity: "consciousness" });
  const model = scripted([step(text("Read.")), step(text("Read."))]);
  await ask("@Analyst one");
  await space.post(sara, "aside");
  await vi.waitUntil(async () => unwrap(await agent.inbox(house.workspaceId, { limit: 5 })).items.length === 1);
  unwrap(await agent.update(house.workspaceId, { continuity: "timeline" }));
  await ask("@Analyst two", 2);
  expect(marksIn(model, 1)).toEqual(["S @Analyst one", "N aside", "N @Analyst two"]);
});
