import { env } from "cloudflare:workers";
import { expect, onTestFinished, test, vi } from "vitest";
import { Agent } from "../../src/agent/agent.ts";
import type { Delivery } from "../../src/protocol/rpc.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { step, text } from "../support/scripted-model.ts";
import { ended, ids, inboxOf, openHouse, openScene, rowsIn, runsOf, scripted, userTexts } from "./fixture.ts";

test("[D2] [R7] a delivery that repeats handled messages and adds others brings only new ones", async () => {
  const taken: Delivery[] = [];
  const deliver = Agent.prototype.deliver;
  const spy = vi.spyOn(Agent.prototype, "deliver").mockImplementation(function (this: Agent, delivery) {
    taken.push(JSON.parse(delivery));
    return deliver.call(this, delivery);
  });
  onTestFinished(() => spy.mockRestore());
  const { house, analyst, space, ask } = await openScene();
  const model = scripted(() => step(text("Read.")));
  await ask("one");
  await ask("two", 2);
  // As of a space that crashed before it had noted how far the agent had come, and has heard more since.
  const messages = taken.flatMap((delivery) => delivery.messages);
  const newest = taken.at(-1);
  const last = messages.at(-1);
  if (!newest || !last) throw new Error("nothing was delivered");
  const { message } = last;
  const seq = newest.cursor + 1;
  const again: Delivery = {
    ...newest,
    after: 0,
    cursor: seq,
    messages: [
      ...messages,
      { ...last, message: { ...message, id: ids.mintOwned("msg", space.id), seq, text: "three" } },
    ],
  };
  expect(unwrap(await env.AGENT.getByName(analyst.id).deliver(JSON.stringify(again)))).toMatchObject({ cursor: seq });
  const runs = await ended(house.workspaceId, analyst, 3);
  expect(runs.map((run) => run.trigger.text)).toEqual(["one", "two", "three"]);
  expect(userTexts(model.calls.at(-1)).at(-1)).not.toContain("two");
});

test("[C17] an open mind's rows of a confidential space do not tell how much is said there", async () => {
  const house = await openHouse();
  const id = ids.mint("spc");
  const told = async (agent: { id: string }, name: string, version: number) => {
    const { workspaceId } = house;
    const settings = { shareOrigin: "reference", wakePolicy: "addressed", confidential: true } as const;
    const space = { id, workspaceId, name, ...settings, createdAt: "2026-01-01T00:00:00.000Z", version, members: [] };
    const delivery: Delivery = { space, messages: [], after: 0, cursor: version, left: false, openUpTo: 7 };
    const { cursor } = unwrap(await env.AGENT.getByName(agent.id).deliver(JSON.stringify(delivery)));
    expect(cursor).toBeGreaterThanOrEqual(version);
  };
  for (const quiet of [true, false]) {
    const agent = await house.agent({ name: quiet ? "Quiet" : "Busy" });
    await told(agent, "Vault", 8);
    await told(agent, "Board", quiet ? 9 : 900);
    // One that comes late undoes nothing.
    await told(agent, "Vault", 8);
    const [row] = await rowsIn(agent, "SELECT cursor, snapshot ->> 'name' AS name FROM spaces");
    expect(row).toEqual({ cursor: 7, name: "Board" });
  }
});

test("[D5] a webhook delivery repeated after its event was handled is the same event", async () => {
  const house = await openHouse();
  const analyst = await house.agent({ name: "Analyst" });
  scripted(() => step(text("Read.")));
  const stub = env.AGENT.getByName(analyst.id);
  const version = ids.mint("key");
  const hookId = ids.deriveOwned("hook", analyst.id, version);
  const hook = { id: hookId, scheme: "github", name: "github", sealed: "sealed", version } as const;
  unwrap(await stub.createHook(house.workspaceId, hook));
  const deliver = async (name: { id: string } | { bodyHash: string }) =>
    unwrap(await stub.receive(house.workspaceId, hookId, { name, payload: { action: "opened" } })).eventId;
  for (const [runs, name] of [[1, { id: "d-1" }] as const, [2, { bodyHash: "b-1" }] as const]) {
    const eventId = await deliver(name);
    expect((await ended(house.workspaceId, analyst, runs)).at(-1)?.trigger.eventId).toBe(eventId);
    expect(await deliver(name)).toBe(eventId);
    expect(await inboxOf(house.workspaceId, analyst)).toEqual([]);
    expect((await runsOf(house.workspaceId, analyst)).length).toBe(runs);
  }
});
