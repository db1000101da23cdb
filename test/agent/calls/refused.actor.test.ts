import { expect, test, vi } from "vitest";
import { maxToolInputBytes } from "../../../src/space/bounds.ts";
import { call, scriptedModel, step, text } from "../../support/scripted-model.ts";
import { inboxOf, runsOf } from "../fixture.ts";
import { ask, eachTest, playWith, scene } from "./scene.ts";

eachTest();

test("[B1] an agent that always makes a call that its space refuses wakes itself no more", async () => {
  const { agent, ann, space, workspaceId } = await scene({
    tools: [{ ...ask, async: true }],
    steps: [],
    limits: { maxWakesPerRoot: 2 },
  });
  const of = "x".repeat(maxToolInputBytes);
  // Its script ends some day: an agent that is woken by each refusal would ask for ever.
  const model = scriptedModel((_, index) =>
    index % 2 === 0 && index < 12 ? step(call("confirm", { of })) : step(text("Refused.")),
  );
  playWith(model);
  await space.post(ann, "Ask");
  await model.called(2);
  expect(JSON.stringify(model.calls[1]?.prompt)).toContain("payload_too_large");
  const { id } = await space.post(ann, "And now?");
  const runs = await vi.waitFor(async () => {
    const all = await runsOf(workspaceId, agent);
    expect(all.flatMap(({ roots }) => roots)).toContain(id);
    expect(all.every(({ status }) => status === "completed")).toBe(true);
    expect(await inboxOf(workspaceId, agent)).toEqual([]);
    return all;
  });
  expect(runs.map(({ trigger }) => trigger.type)).toEqual(["space_message", "space_message"]);
});
