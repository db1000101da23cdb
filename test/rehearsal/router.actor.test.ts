import { expect, test, vi } from "vitest";
import * as z from "zod";
import { openHouse } from "../support/house.ts";
import { listed, messagesIn } from "./listed.ts";

test("as a router it wakes the agent whose description fits, and no other", async () => {
  const house = await openHouse();
  const [husam, sara] = [await house.person("Husam"), await house.person("Sara")];
  const analyst = await house.agent({ name: "Analyst", description: "Answers questions about figures" });
  const scout = await house.agent({ name: "Scout", description: "Knows the weather" });
  const router = { model: { provider: "rehearsal", deltasPerSecond: 0 } };
  const space = await house.space("Desk", [husam, sara, analyst, scout], { wakePolicy: "addressed", router });
  await house.say(space.id, husam, "Lunch at noon, Sara?");
  await house.say(space.id, husam, "Could somebody count to 3, to see that figures work?");
  const said = () => messagesIn(space.id, husam.token);
  await vi.waitFor(async () => expect(await said()).toHaveLength(3), { timeout: 10_000 });
  expect((await said()).at(-1)).toMatchObject({ sender: { name: "Analyst" } });
  for (const { id } of [analyst, scout]) {
    const runs = await listed(z.unknown(), `/v1/agents/${id}/runs`, house.secretKey);
    expect(runs).toHaveLength(id === analyst.id ? 1 : 0);
  }
});
