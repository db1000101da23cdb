import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, expect, test } from "vitest";
import { unwrap } from "../../src/shared/errors.ts";
import { call, installModel, scriptedModel, step, text } from "../support/scripted-model.ts";
import { agentStub, ended, inboxOf, openHouse, userTexts } from "./fixture.ts";

/** What a root's bound has muted wakes nobody, and holds nothing up either. */
const restore: (() => void)[] = [];
afterEach(() => {
  for (const undo of restore.splice(0)) undo();
});

test("[B1] however much of a root that woke it often enough waits, a stateless agent hears what comes next", async () => {
  const house = await openHouse();
  const husam = await house.person("Husam");
  const limits = { maxConcurrentRuns: 1, maxWakesPerRoot: 1 };
  const listener = await house.agent({ name: "Listener", continuity: "timeline", model: named("listener"), limits });
  const chatter = await house.agent({ name: "Chatter", continuity: "timeline", model: named("chatter"), limits });
  const space = await house.space("Alpha", [husam, listener, chatter]);
  const words = (step_: number) => Array.from({ length: 30 }, (_, index) => `word ${step_}-${index}`);
  const listening = scriptedModel(() => step(text("Read.")));
  const chatting = scriptedModel((_, index) =>
    index < 4 ? step(...words(index).map((word) => call("send_message", { text: word }))) : step(text("Said enough.")),
  );
  restore.push(installModel(({ name }) => (name === "chatter" ? chatting : listening)));

  await space.post(husam, "Talk");
  await ended(house.workspaceId, chatter, 1);
  await ended(house.workspaceId, listener, 1);
  await space.post(husam, "Are you there?");
  const [, second] = await ended(house.workspaceId, listener, 2);
  expect(second?.trigger.text).toBe("Are you there?");
  expect(userTexts(listening.calls[1])[0]).toMatch(/"Are you there\?" {2}\[NEW\] ← TRIGGER/);
  expect(await inboxOf(house.workspaceId, listener)).toEqual([]);
  await space.post(husam, "And now?");
  await ended(house.workspaceId, listener, 3);
  expect(userTexts(listening.calls[2])[0]?.match(/\[NEW\]/g)).toHaveLength(1);
});

test("what nobody was woken by, and no stateless run was shown, is told of to the living agent that it becomes", async () => {
  const house = await openHouse();
  const [husam, sara] = [await house.person("Husam"), await house.person("Sara")];
  const analyst = await house.agent({ name: "Analyst", continuity: "timeline" });
  const spaces = [
    await house.space("Alpha", [husam, sara, analyst]),
    await house.space("Beta", [husam, sara, analyst]),
  ] as const;
  const [alpha, beta] = spaces;
  const key = { kind: "key", workspaceId: house.workspaceId, keyId: "key" } as const;
  for (const space of spaces) unwrap(await space.stub().update(key, { wakePolicy: "addressed" }));
  const model = scriptedModel(() => step(text("Read.")));
  restore.push(installModel(model));
  for (const aside of ["one", "two"]) await alpha.post(sara, aside);
  for (const aside of ["one", "two", "three"]) await beta.post(sara, aside);
  await beta.post(husam, "@Analyst look here");
  await ended(house.workspaceId, analyst, 1);
  await beta.post(sara, "four");
  const { seq } = await beta.post(sara, "five");
  const cursorIn = (spaceId: string) =>
    runInDurableObject(
      agentStub(analyst),
      (_, { storage }) => storage.sql.exec("select cursor from spaces where id = ?", spaceId).one().cursor,
    );
  await expect.poll(() => cursorIn(beta.id)).toBeGreaterThanOrEqual(seq);
  const agent = env.AGENT.getByName(analyst.id);
  const told = async () =>
    JSON.stringify(unwrap(await agent.context(house.workspaceId)).messages.at(-1)).match(/\d+ earlier messages/g);
  unwrap(await agent.update(house.workspaceId, { continuity: "consciousness" }));
  await expect.poll(told).toEqual(["2 earlier messages", "2 earlier messages"]);
  await alpha.post(husam, "@Analyst and here");
  await ended(house.workspaceId, analyst, 2);
  expect(await told()).toBeNull();
});

function named(name: string) {
  return { provider: "rehearsal" as const, name, deltasPerSecond: 0 };
}
