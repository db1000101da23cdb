import { env } from "cloudflare:workers";
import { afterEach, expect, test, vi } from "vitest";
import { unwrap } from "../../src/shared/errors.ts";
import { ended, openHouse, passTime, runsOf } from "../agent/fixture.ts";

afterEach(() => {
  vi.useRealTimers();
});

const instantly = { provider: "rehearsal", deltasPerSecond: 0 } as const;

test("[R1] it greets, remembers, carries a message and counts votes in a real house", async () => {
  const house = await openHouse();
  const [husam, sara] = [await house.person("Husam"), await house.person("Sara")];
  const echo = await house.agent({ name: "Echo", model: instantly });
  const family = await house.space("Family", [husam, sara, echo]);
  const work = await house.space("Work", [sara, echo]);
  const say = async (text: string, runs: number, who = husam) => {
    await family.post(who, text);
    await ended(house.workspaceId, echo, runs);
  };

  await say("Hi all", 1);
  await say("@Echo remember that the code is 7", 2);
  await say("@Echo what is the code?", 3);
  await say("Echo, tell Work that we ship at 3pm", 4);
  await say("Option A", 5);
  await say("vote B", 6, sara);
  await say("@Echo count the votes", 7);

  expect((await family.texts()).filter((text) => text.startsWith("Echo"))).toEqual([
    "Echo: Hello, Husam!",
    "Echo: Done: I will remember code: 7",
    "Echo: I remember code: 7",
    'Echo: Done: I told "Work".',
    "Echo: Votes: A: 1 (Husam); B: 1 (Sara). It is a tie.",
  ]);
  expect(await work.texts()).toEqual(["Echo: Husam asks me to tell you: we ship at 3pm"]);
  expect(unwrap(await env.AGENT.getByName(echo.id).memories(house.workspaceId))).toMatchObject([
    { key: "code", value: "7" },
  ]);
  const statuses = (await runsOf(house.workspaceId, echo)).map(({ status }) => status).reverse();
  expect(statuses).toEqual(["completed", "completed", "completed", "completed", "skipped", "skipped", "completed"]);
});

test("[B1] two agents that always answer stop at their bound; another never begins", async () => {
  const house = await openHouse();
  const husam = await house.person("Husam");
  const talker = { model: instantly, instructions: "Always answer.", limits: { maxWakesPerRoot: 3 } };
  const [one, two] = [await house.agent({ name: "One", ...talker }), await house.agent({ name: "Two", ...talker })];
  const quiet = await house.agent({ name: "Quiet", model: instantly });
  const space = await house.space("Room", [husam, one, two, quiet]);

  await space.post(husam, "what a day");
  // Each answer wakes the other until one has spent its wakes; how many messages a run takes is left to chance.
  await vi.waitFor(async () => {
    const runs = (await Promise.all([one, two].map((agent) => runsOf(house.workspaceId, agent)))).flat();
    expect(runs.filter(({ status }) => status === "running")).toEqual([]);
    expect(runs.length).toBeGreaterThanOrEqual(4);
  }, 10_000);
  for (const agent of [one, two]) {
    expect((await runsOf(house.workspaceId, agent)).length).toBeLessThanOrEqual(talker.limits.maxWakesPerRoot);
  }
  const runs = await ended(house.workspaceId, quiet, 1);
  expect(runs.every(({ status }) => status === "skipped")).toBe(true);
  expect((await space.texts()).filter((text) => text.startsWith("Quiet"))).toEqual([]);
});

test("[R6] it reminds on time in the space where it was asked to", async () => {
  const house = await openHouse();
  const husam = await house.person("Husam");
  const echo = await house.agent({ name: "Echo", model: instantly });
  const family = await house.space("Family", [husam, echo]);
  await house.space("Work", [echo]);
  await family.post(husam, "@Echo remind me in 2 minutes to check the oven");
  await ended(house.workspaceId, echo, 1);
  await passTime(echo, 120_000);
  await ended(house.workspaceId, echo, 2);
  expect((await family.texts()).slice(1)).toEqual([
    "Echo: Done: I will say so in 2 minutes.",
    "Echo: Husam, a reminder: check the oven",
  ]);
});
