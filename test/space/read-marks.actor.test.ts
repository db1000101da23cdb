import { runInDurableObject } from "cloudflare:test";
import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import type { ChannelFrame } from "../../src/protocol/events.ts";
import type { EntityRef } from "../../src/protocol/rpc.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { entity, type House, house, ids, recordReceivers } from "./fixture.ts";
import { listen } from "./listener.ts";

beforeAll(recordReceivers);

const ann = entity("human", "Ann");
const ben = entity("human", "Ben");
const robo = entity("agent", "Robo");

/** A run's whole channel. */
const run = async (home: House, agent: EntityRef, name: string, ...frames: ChannelFrame[]): Promise<string> => {
  const runId = ids.deriveOwned("run", agent.id, name);
  const { readable, writable } = new IdentityTransformStream();
  const open = { workspaceId: home.workspaceId, agentId: agent.id, runId };
  const answer = home.rpc.speak(open, readable);
  const writer = writable.getWriter();
  for (const frame of [...frames, { type: "end" }]) {
    await writer.write(new TextEncoder().encode(`${JSON.stringify(frame)}\n`));
  }
  unwrap(await answer);
  return runId;
};

const say = async (home: House, text: string) => unwrap(await home.rpc.post(home.as(ann), { text })).message;
const readsOf = async (home: House, messageId: string, as: EntityRef = ann) =>
  unwrap(await home.rpc.reads(home.as(as), messageId));

test("[D3] an agent's run leaves a durable read mark that says what came of it", async () => {
  const home = await house([ann, robo]);
  const socket = await listen(home, home.as(ann));
  const { id: messageId, seq } = await say(home, "anyone?");
  const frame = { type: "read", messageId, outcome: "silent", reason: "nothing to add" } as const;
  const runId = await run(home, robo, "one", frame);
  const event = { type: "member.read", cursor: seq + 1, entityId: robo.id, messageId, runId, outcome: "silent" };
  await socket.until("member.read");
  expect(socket.of("member.read")).toEqual([{ ...event, reason: "nothing to add" }]);
  const again = await listen(home, home.as(ann), "?cursor=0");
  await again.until("member.read");
  expect(again.of("member.read")).toEqual(socket.of("member.read"));
  expect(again.of("welcome")[0]?.reads).toEqual([
    { entityId: robo.id, messageId, runId, outcome: "silent", reason: "nothing to add" },
  ]);
});

test("[R2] a mark that is told again, or is older than what is known, changes nothing", async () => {
  const home = await house([ann, robo]);
  const socket = await listen(home, home.as(ann));
  const [first, second] = [await say(home, "one"), await say(home, "two")];
  const newest = { type: "read", messageId: second.id, outcome: "answered" } as const;
  const runId = await run(home, robo, "two", newest);
  await run(home, robo, "two", newest);
  await run(home, robo, "one", { type: "read", messageId: first.id, outcome: "failed" });
  await run(home, robo, "odd", { type: "read", messageId: ids.mintOwned("msg", home.space.id), outcome: "failed" });
  expect(socket.of("member.read")).toHaveLength(1);
  expect(await readsOf(home, second.id)).toMatchObject([{ entityId: robo.id, runId, outcome: "answered" }]);
});

test("a second try's outcome replaces the failure, also where the failure is told again", async () => {
  const home = await house([ann, robo]);
  const { id: messageId } = await say(home, "one");
  await run(home, robo, "first", { type: "read", messageId, outcome: "failed", reason: "no key" });
  const runId = await run(home, robo, "second", { type: "read", messageId, outcome: "answered" });
  await run(home, robo, "first", { type: "read", messageId, outcome: "failed", reason: "no key" });
  const [read] = await readsOf(home, messageId);
  expect(read).toMatchObject({ runId, outcome: "answered" });
  expect(read?.reason).toBeUndefined();
});

test("a read receipt has the run's outcome where the mark's run took that message", async () => {
  const home = await house([ann, ben, robo]);
  const [before, first, second, after] = [
    await say(home, "zero"),
    await say(home, "one"),
    await say(home, "two"),
    await say(home, "three"),
  ];
  unwrap(await home.rpc.markRead(home.as(ben), first.id));
  unwrap(await home.rpc.markRead(home.as(ann), after.id));
  const read = { type: "read", messageId: second.id, firstMessageId: first.id, outcome: "silent" } as const;
  const runId = await run(home, robo, "one", read);
  const at = expect.stringMatching(/^\d{4}-.*Z$/);
  const [byBen, byRobo] = [ben, robo].map(({ id, name, type }) => ({ entityId: id, name, type, at }));
  expect(await readsOf(home, before.id)).toEqual([byBen, byRobo]);
  expect(await readsOf(home, first.id)).toEqual([byBen, { ...byRobo, runId, outcome: "silent" }]);
  expect(await readsOf(home, second.id)).toEqual([{ ...byRobo, runId, outcome: "silent" }]);
  expect(await readsOf(home, after.id)).toEqual([]);
});

test("[K13] a message's receipts stay as they were when members read on", async () => {
  const home = await house([ann, ben, robo]);
  const [one, two] = [await say(home, "one"), await say(home, "two")];
  unwrap(await home.rpc.markRead(home.as(ben), one.id));
  const silent = { outcome: "silent", reason: "nothing to add" } as const;
  const read = { type: "read", messageId: two.id, firstMessageId: one.id, ...silent } as const;
  const runId = await run(home, robo, "first", read);
  const [ofOne, ofTwo] = [await readsOf(home, one.id), await readsOf(home, two.id)];
  expect(ofTwo).toMatchObject([{ entityId: robo.id, runId, ...silent }]);
  const three = await say(home, "three");
  unwrap(await home.rpc.markRead(home.as(ben), three.id));
  await run(home, robo, "second", { type: "read", messageId: three.id, outcome: "answered" });
  expect(await readsOf(home, one.id)).toEqual(ofOne);
  // Ben has read it since.
  expect((await readsOf(home, two.id)).filter(({ entityId }) => entityId === robo.id)).toEqual(ofTwo);
});

test("[K13] a run that ends after one beside it still says what came of its message", async () => {
  const home = await house([ann, robo]);
  const [one, two, three] = [await say(home, "one"), await say(home, "two"), await say(home, "three")];
  const newer = await run(home, robo, "newer", { type: "read", messageId: two.id, outcome: "answered" });
  const late = { type: "read", messageId: one.id, outcome: "silent" } as const;
  const older = await run(home, robo, "older", late);
  expect(await readsOf(home, one.id)).toMatchObject([{ runId: older, outcome: "silent" }]);
  await run(home, robo, "newest", { type: "read", messageId: three.id, outcome: "answered" });
  // Told again, as after a crash.
  await run(home, robo, "older", { ...late, outcome: "failed" });
  expect(await readsOf(home, one.id)).toMatchObject([{ runId: older, outcome: "silent" }]);
  expect(await readsOf(home, two.id)).toMatchObject([{ runId: newer, outcome: "answered" }]);
});

test("[K13] a second try's outcome replaces the failure also where the agent has read on", async () => {
  const home = await house([ann, robo]);
  const [one, two] = [await say(home, "one"), await say(home, "two")];
  await run(home, robo, "first", { type: "read", messageId: one.id, outcome: "failed", reason: "no key" });
  await run(home, robo, "next", { type: "read", messageId: two.id, outcome: "answered" });
  expect(await readsOf(home, one.id)).toMatchObject([{ outcome: "failed", reason: "no key" }]);
  const runId = await run(home, robo, "again", { type: "read", messageId: one.id, outcome: "answered" });
  expect(await readsOf(home, one.id)).toMatchObject([{ runId, outcome: "answered" }]);
});

test("[K13] [R2] of read marks that an earlier version stored, what they held is read", async () => {
  const home = await house([ann, robo]);
  const [one, two] = [await say(home, "one"), await say(home, "two")];
  const first = await run(home, robo, "first", { type: "read", messageId: one.id, outcome: "answered" });
  const range = { type: "read", messageId: two.id, firstMessageId: one.id, outcome: "silent" } as const;
  const second = await run(home, robo, "second", range);
  await runInDurableObject(home.stub, (_, { storage }) => {
    storage.sql.exec("UPDATE log SET read = NULL");
  });
  expect(await readsOf(home, one.id)).toMatchObject([{ runId: first, outcome: "answered" }]);
  expect(await readsOf(home, two.id)).toMatchObject([{ runId: second, outcome: "silent" }]);
});

/** Each step: the message, counted from the newest, and how many before it a run took; null: a person reads on. */
const reading = fc.record({
  back: fc.integer({ min: 0, max: 4 }),
  more: fc.integer({ min: 0, max: 2 }),
  outcome: fc.constantFrom("answered", "silent", "failed"),
  byPerson: fc.boolean(),
});

test("[K13] whatever members read, and in whatever order runs end, a receipt stays", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(reading, { minLength: 3, maxLength: 10 }), async (steps) => {
      const home = await house([ann, ben, robo]);
      const said: string[] = [];
      const known = new Map<string, unknown>();
      for (const [index, { back, more, outcome, byPerson }] of steps.entries()) {
        said.push((await say(home, `${index}`)).id);
        const place = Math.max(0, said.length - 1 - back);
        const [messageId = "", firstMessageId = ""] = [said[place], said[Math.max(0, place - more)]];
        if (byPerson) unwrap(await home.rpc.markRead(home.as(ben), messageId));
        else await run(home, robo, `${index}`, { type: "read", messageId, firstMessageId, outcome });
        for (const id of said) {
          for (const receipt of await readsOf(home, id)) {
            const key = `${id} ${receipt.entityId}`;
            const isFinal = receipt.entityId === ben.id || (receipt.outcome && receipt.outcome !== "failed");
            if (known.has(key)) expect(receipt).toEqual(known.get(key));
            else if (isFinal) known.set(key, receipt);
          }
        }
      }
    }),
    { numRuns: 10 },
  );
}, 30_000);

test("[S1] a caller outside the space sees no read receipts; an unknown message is not found", async () => {
  const home = await house([ann]);
  const { id } = await say(home, "hello");
  expect(await home.rpc.reads(home.as(ben), id)).toMatchObject({ ok: false, problem: { code: "not_found" } });
  const other = ids.mintOwned("msg", home.space.id);
  expect(await home.rpc.reads(home.as(ann), other)).toMatchObject({ ok: false, problem: { code: "not_found" } });
  expect(unwrap(await home.rpc.reads(home.key, id))).toEqual([]);
});
