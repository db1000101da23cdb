import { afterEach, expect, test, vi } from "vitest";
import { z } from "zod";
import { armFault, disarmFaults } from "../../src/shared/fault.ts";
import { ended, inboxOf, passTime, userTexts } from "../agent/fixture.ts";
import { problemIn } from "../routes/operations.ts";
import { call, expectOk, openHouse } from "../support/house.ts";
import { installModel, scriptedModel, step, text } from "../support/scripted-model.ts";
import { deliver, signed } from "../support/webhook-sender.ts";

const restore: (() => void)[] = [];
afterEach(() => {
  for (const undo of restore.splice(0)) undo();
  disarmFaults();
  vi.useRealTimers();
});

const openHook = async () => {
  const model = scriptedModel(() => step(text("Read.")));
  restore.push(installModel(model));
  const house = await openHouse();
  const agent = { ...(await house.agent({ name: "Analyst" })), name: "Analyst", type: "agent" as const };
  const { hookId, secret } = await expectOk(
    z.object({ hookId: z.string(), secret: z.string() }),
    call(`/v1/agents/${agent.id}/hooks`, { bearer: house.secretKey, body: { scheme: "github", name: "github" } }),
  );
  const send = (id: string) => deliver(hookId, signed.github(secret, id, '{"action":"opened"}'));
  /** How often the model read of an event, in all its runs. */
  const told = () => userTexts(model.calls.at(-1)).join("\n").split("[Service").length - 1;
  return { house, agent, send, told };
};

test("[D5] [R1] a crash after the event is stored: no answer, but it is handled; sent again it is the same event", async () => {
  const { house, agent, send, told } = await openHook();
  const crashed = armFault("hook.after-receive");
  const first = send("d-1");
  await crashed;
  const refused = await first;
  expect(refused.headers.get("retry-after")).toBe("30");
  expect(await problemIn(refused)).toMatchObject({ status: 503, code: "unavailable" });
  // Nobody sends it again: the deadman that was stored with it brings the agent back.
  await passTime(agent, 26_000);
  const [run] = await ended(house.workspaceId, agent, 1);
  expect(run?.trigger).toMatchObject({ type: "service" });
  const again = await send("d-1");
  expect(again.status).toBe(202);
  await expectOk(z.object({ eventId: z.string() }), send("d-2"));
  await ended(house.workspaceId, agent, 2);
  expect(told()).toBe(2);
  expect(await inboxOf(house.workspaceId, agent)).toEqual([]);
});

test("[D5] a crash before the event is stored: no answer and nothing kept; sent again it comes in", async () => {
  const { house, agent, send, told } = await openHook();
  const crashed = armFault("hook.before-receive");
  const first = send("d-1");
  await crashed;
  expect(await problemIn(await first)).toMatchObject({ status: 503, code: "unavailable" });
  expect(await inboxOf(house.workspaceId, agent)).toEqual([]);
  const [one, two] = [await send("d-1"), await send("d-1")];
  expect(await one.json()).toEqual(await two.json());
  await ended(house.workspaceId, agent, 1);
  expect(told()).toBe(1);
});

test("[D5] deliveries of one id that come at once make one event", async () => {
  const { house, agent, send } = await openHook();
  const answers = await Promise.all(Array.from({ length: 8 }, () => send("d-1")));
  expect(new Set(await Promise.all(answers.map((answer) => answer.text()))).size).toBe(1);
  const runs = await ended(house.workspaceId, agent, 1);
  expect(runs.reduce((events, run) => events + run.trigger.eventCount, 0)).toBe(1);
});
