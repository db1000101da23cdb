import { afterEach, expect, test } from "vitest";
import { call, installModel, scriptedModel, step, text } from "../support/scripted-model.ts";
import { ended, inboxOf, openHouse, userTexts } from "./fixture.ts";

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

function named(name: string) {
  return { provider: "rehearsal" as const, name, deltasPerSecond: 0 };
}
