import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { maxBatchEvents, maxDedupeKeys, maxOverheardBytes, maxOverheardEvents } from "../../src/agent/bounds.ts";
import { createDedupeKeys } from "../../src/agent/inbox/dedupe-keys.ts";
import type { Delivery, DeliveryText, TriggerSource } from "../../src/protocol/rpc.ts";
import { openDatabase } from "../../src/shared/database.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { step, text } from "../support/scripted-model.ts";
import { agentStub, ended, ids, inboxOf, openHouse, rowsIn, scripted, userTexts } from "./fixture.ts";

const spaceId = ids.mint("spc");

const deliveryOf = (
  workspaceId: string,
  from: number,
  said: { text: string; triggerSource: TriggerSource }[],
  { name = "Alpha", version = 1, left = false } = {},
): DeliveryText => {
  const createdAt = "2026-02-18T15:07:00.000Z";
  const messages = said.map(({ text: words, triggerSource }, index) => {
    const seq = from + index + 1;
    const id = ids.deriveOwned("msg", spaceId, workspaceId, seq);
    const sender = { id: ids.derive("ent", "husam"), name: "Husam", type: "human" as const };
    return {
      message: { id, seq, spaceId, kind: "text" as const, sender, text: words, createdAt },
      root: { id, kind: "person" as const },
      triggerSource,
    };
  });
  const delivery: Delivery = {
    space: {
      id: spaceId,
      workspaceId,
      name,
      shareOrigin: "reference",
      wakePolicy: "addressed",
      createdAt,
      version,
      members: [],
    },
    messages,
    after: from,
    cursor: from + said.length,
    left,
  };
  return JSON.stringify(delivery);
};

const quiet = (count: number, from: number) =>
  Array.from({ length: count }, (_, index) => ({ text: `quiet ${from + index}`, triggerSource: "none" as const }));

test("[B3] messages that wake nobody never fill the inbox: the oldest go, with a notice", async () => {
  const house = await openHouse();
  const analyst = await house.agent({ name: "Analyst" });
  const model = scripted(() => step(text("Read.")));
  const agent = env.AGENT.getByName(analyst.id);
  let many = 0;
  const hear = async (count: number): Promise<number> => {
    unwrap(await agent.deliver(deliveryOf(house.workspaceId, many, quiet(count, many))));
    many += count;
    const { items } = unwrap(await agent.inbox(house.workspaceId, { limit: 1000 }));
    expect(items.at(-1)?.data).toMatchObject({ message: { seq: many } });
    return items.length;
  };
  expect(await hear(maxOverheardEvents - 1)).toBe(maxOverheardEvents - 1);
  expect(await hear(40)).toBe(maxOverheardEvents);
  await evictDurableObject(agentStub(analyst));
  expect(await hear(1)).toBe(maxOverheardEvents);
  expect(model.calls).toHaveLength(0);

  unwrap(
    await agent.deliver(deliveryOf(house.workspaceId, many, [{ text: "@Analyst hello", triggerSource: "mention" }])),
  );
  await ended(house.workspaceId, analyst, 1);
  expect(model.calls).toHaveLength(1);
  const read = userTexts(model.calls[0])[0];
  const left = many + 1 - maxBatchEvents;
  expect(read).toContain(`["Alpha", ${spaceId}] (${left} earlier messages: read_messages shows them)`);
  expect(read).toContain(`"quiet ${left}"`);
  expect(read).toContain('"@Analyst hello" [triggerSource: mention]');
  expect(await inboxOf(house.workspaceId, analyst)).toEqual([]);
});

test("[B3] long messages that wake nobody go beyond maxOverheardBytes, the oldest first", async () => {
  const house = await openHouse();
  const analyst = await house.agent({ name: "Analyst" });
  const agent = env.AGENT.getByName(analyst.id);
  const long = Array.from({ length: 40 }, () => ({ text: "ü".repeat(20_000), triggerSource: "none" as const }));
  unwrap(await agent.deliver(deliveryOf(house.workspaceId, 0, long)));
  const { items } = unwrap(await agent.inbox(house.workspaceId, { limit: 100 }));
  expect(items).toHaveLength(Math.floor(maxOverheardBytes / 40_500));
  expect(items.at(-1)).toMatchObject({ data: { message: { seq: long.length } }, wakes: false, status: "pending" });
  const counted = await rowsIn(analyst, "SELECT left_to_history AS messages FROM spaces");
  expect(counted).toEqual([{ messages: long.length - items.length }]);
});

test("[K3] a delivery that comes after it has left brings no newer name of the space", async () => {
  const house = await openHouse();
  const analyst = await house.agent({ name: "Analyst" });
  const agent = env.AGENT.getByName(analyst.id);
  scripted(() => step(text("Read.")));
  unwrap(await agent.deliver(deliveryOf(house.workspaceId, 0, quiet(1, 0))));
  const late = { name: "Secret merger", version: 2, left: true };
  unwrap(await agent.deliver(deliveryOf(house.workspaceId, 1, [{ text: "bye", triggerSource: "mention" }], late)));
  await ended(house.workspaceId, analyst, 1);
  expect(JSON.stringify(await rowsIn(analyst, "select * from spaces, journal"))).not.toContain("Secret merger");
});

test("messages that wake nobody come in the order of the log, before and after one that wakes", async () => {
  const house = await openHouse();
  const analyst = await house.agent({ name: "Analyst" });
  const agent = env.AGENT.getByName(analyst.id);
  const model = scripted(() => step(text("Read.")));
  const mention = { text: "@Analyst hello", triggerSource: "mention" as const };
  unwrap(await agent.deliver(deliveryOf(house.workspaceId, 0, quiet(2, 0))));
  unwrap(await agent.deliver(deliveryOf(house.workspaceId, 2, [...quiet(1, 2), mention, ...quiet(2, 4)])));
  const [run] = await ended(house.workspaceId, analyst, 1);
  expect(run?.trigger).toMatchObject({ text: "@Analyst hello", eventCount: 6 });
  const said = userTexts(model.calls[0])[0]?.match(/quiet \d|@Analyst hello/g);
  expect(said).toEqual(["quiet 0", "quiet 1", "quiet 2", "@Analyst hello", "quiet 4", "quiet 5"]);
  expect(await inboxOf(house.workspaceId, analyst)).toEqual([]);
});

test("[B3] a batch holds no more than a row can: what does not fit is taken by the next run", async () => {
  const house = await openHouse();
  const analyst = await house.agent({ name: "Analyst" });
  scripted(() => step(text("Read.")));
  const long = Array.from({ length: 12 }, () => ({ text: "x".repeat(30_000), triggerSource: "mention" as const }));
  unwrap(await env.AGENT.getByName(analyst.id).deliver(deliveryOf(house.workspaceId, 0, long)));
  const runs = await ended(house.workspaceId, analyst, 2);
  expect(runs.map((run) => run.trigger.eventCount)).toEqual([8, 4]);
});

test("[B3] a service's payload that is too large is refused by an error that names the bound", async () => {
  const house = await openHouse();
  const analyst = await house.agent({ name: "Analyst" });
  const event = { serviceName: "jira", payload: { text: "x".repeat(70_000) } };
  const refused = await env.AGENT.getByName(analyst.id).trigger(house.workspaceId, event);
  expect(refused).toMatchObject({ ok: false, problem: { code: "payload_too_large" } });
  expect(await inboxOf(house.workspaceId, analyst)).toEqual([]);
});

test("[B3] ids of service events are kept for their time, the newest maxDedupeKeys of them", async () => {
  const house = await openHouse();
  const analyst = await house.agent({ name: "Analyst" });
  await runInDurableObject(agentStub(analyst), (_agent, { storage }) => {
    const fill = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${maxDedupeKeys + 10})`;
    storage.sql.exec(`${fill} INSERT INTO seen_events SELECT 'evt_' || i, i FROM n`);
    const seen = createDedupeKeys(openDatabase(storage), { now: () => 0 });
    seen.forgetBefore(0);
    expect([seen.seenAt("evt_10"), seen.seenAt("evt_11")]).toEqual([undefined, 11]);
    seen.forgetBefore(100);
    expect([seen.seenAt("evt_99"), seen.seenAt("evt_100")]).toEqual([undefined, 100]);
  });
});
