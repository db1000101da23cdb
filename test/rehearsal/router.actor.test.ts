import { expect, test, vi } from "vitest";
import { z } from "zod";
import { Message } from "../../src/protocol/message.ts";
import { call, expectOk, openHouse } from "../support/house.ts";

const Messages = z.object({ items: z.array(Message) });

test("as a router it wakes the agent whose description fits, and no other", async () => {
  const house = await openHouse();
  const [husam, sara] = [await house.person("Husam"), await house.person("Sara")];
  const analyst = await house.agent({ name: "Analyst", description: "Answers questions about figures" });
  const scout = await house.agent({ name: "Scout", description: "Knows the weather" });
  const router = { model: { provider: "rehearsal", deltasPerSecond: 0 } };
  const space = await house.space("Desk", [husam, sara, analyst, scout], { wakePolicy: "addressed", router });
  await house.say(space.id, husam, "Lunch at noon, Sara?");
  await house.say(space.id, husam, "Could somebody count to 3, to see that figures work?");
  const said = () => expectOk(Messages, call(`/v1/spaces/${space.id}/messages`, { bearer: husam.token }));
  await vi.waitFor(async () => expect((await said()).items).toHaveLength(3), { timeout: 10_000 });
  expect((await said()).items.at(-1)).toMatchObject({ sender: { name: "Analyst" } });
  for (const { id } of [analyst, scout]) {
    const answer = () =>
      expectOk(z.object({ items: z.array(z.unknown()) }), call(`/v1/agents/${id}/runs`, { bearer: house.secretKey }));
    expect((await answer()).items).toHaveLength(id === analyst.id ? 1 : 0);
  }
});
