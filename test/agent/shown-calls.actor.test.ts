import { expect, test } from "vitest";
import { question } from "../support/question.ts";
import { call, step, text } from "../support/scripted-model.ts";
import { ended, inboxOf, openHouse, scripted, userTexts } from "./fixture.ts";

/** Tool calls of one agent, as others read them. */
const asked = 'called choose({"of":["red","blue"]}) [requires_action]';

test("[D2] [S2] a consciousness reads another's tool call as a call, with the next message", async () => {
  const house = await openHouse();
  const husam = await house.person("Husam");
  const analyst = await house.agent({ name: "Analyst" });
  const robo = await house.agent({ name: "Robo", continuity: "timeline" });
  const space = await house.space("Alpha", [husam, analyst, robo]);
  const model = scripted(({ prompt }) => {
    const isRead = prompt.some(({ role }) => role === "tool");
    return isRead ? step(text("Read.")) : step(call("enter_space", { spaceId: space.id }));
  });
  await question(house.workspaceId, space.id, robo.id);
  await expect.poll(() => inboxOf(house.workspaceId, analyst)).toMatchObject([{ wakes: false }]);
  expect(model.calls).toEqual([]);
  await space.post(husam, asked);
  await ended(house.workspaceId, analyst, 1);
  const [inbox = ""] = userTexts(model.calls.find(({ prompt }) => JSON.stringify(prompt).includes("INBOX (2")));
  const lines = inbox.split("\n").filter((line) => line.includes("called choose"));
  expect(lines[0]).toContain(`"Robo" (agent, id: ${robo.id}, `);
  expect(lines[0]).toContain(`): ${asked} [triggerSource: none]`);
  expect(lines[1]).toContain(`): ${JSON.stringify(asked)} [triggerSource: every_message]`);
  const results = model.calls.flatMap(({ prompt }) =>
    prompt.flatMap(({ role, content }) => (role === "tool" ? [JSON.stringify(content)] : [])),
  );
  expect(results[0]).toContain(`"kind":"tool_call","content":${JSON.stringify(asked)}`);
  expect(results[0]).toContain(`"senderType":"human","content":${JSON.stringify(asked)}`);
});

test("[D2] [S2] a timeline agent reads another's tool call in the history", async () => {
  const house = await openHouse();
  const husam = await house.person("Husam");
  const analyst = await house.agent({ name: "Analyst", continuity: "timeline" });
  const robo = await house.agent({ name: "Robo", continuity: "timeline" });
  const space = await house.space("Alpha", [husam, analyst, robo]);
  const model = scripted(() => step(text("Read.")));
  await question(house.workspaceId, space.id, robo.id);
  await space.post(husam, asked);
  await ended(house.workspaceId, analyst, 1);
  const inputs = model.calls.map((one) => userTexts(one).join("\n"));
  const own = inputs.find((input) => input.includes(`"Robo" (agent, id: ${robo.id})`)) ?? "";
  const lines = own.split("\n").filter((line) => line.startsWith("  [msg_"));
  expect(lines[0]).toContain(`: ${asked}  [NEW]`);
  expect(lines[1]).toContain(`: ${JSON.stringify(asked)}  [NEW]`);
});
