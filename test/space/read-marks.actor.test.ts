import { runInDurableObject } from "cloudflare:test";
import fc from "fast-check";
import { beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { Person } from "../../src/person/person.ts";
import type { ChannelFrame } from "../../src/protocol/events.ts";
import type { Message } from "../../src/protocol/message.ts";
import type { EntityRef } from "../../src/protocol/rpc.ts";
import { ok, unwrap } from "../../src/shared/errors.ts";
import { maxLateReads, maxReceiptScan } from "../../src/space/bounds.ts";
import { counted } from "./counted.ts";
import { entity, grow, type House, house, ids, recordReceivers, settled } from "./fixture.ts";
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
  await writer.close();
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

test("[E1] endpoints hear of a run that a newer one passed, though its agent rests", async () => {
  const home = await house([ann, robo]);
  const endpoint = { id: ids.mint("ep"), types: ["run.completed" as const], isNamed: false };
  unwrap(await home.rpc.setEndpoints(home.workspaceId, { version: 1, endpoints: [endpoint] }));
  const [first, second] = [await say(home, "one"), await say(home, "two")];
  const newer = await run(home, robo, "two", { type: "read", messageId: second.id, outcome: "answered" });
  const older = await run(home, robo, "one", { type: "read", messageId: first.id, outcome: "answered" });
  const asked = { endpointId: endpoint.id, after: 0, types: endpoint.types };
  const { events } = unwrap(await home.rpc.toldTo(home.workspaceId, asked));
  expect(events.map(({ id }) => id)).toEqual([newer, older].map((id) => `${id}_${home.space.id}`));
});

/** Whom a space tells that a run failed at which message of theirs. */
const failuresTold = async (home: House, ...people: EntityRef[]): Promise<[string, string][]> => {
  const told: [string, string][] = [];
  const spied = vi.spyOn(Person.prototype, "hear").mockImplementation(async function (this: Person, { notices = [] }) {
    const { name = "" } = Reflect.get(this, "ctx").id;
    for (const { kind, messageId } of notices) if (kind === "run_failed") told.push([name, messageId]);
    return ok({ follows: "all" });
  });
  onTestFinished(() => spied.mockRestore());
  for (const { id } of people) unwrap(await home.rpc.attend(home.workspaceId, id, "all"));
  return told;
};

test("[I5] each person hears that a run failed at what they said, whoever spoke last", async () => {
  const home = await house([ann, ben, robo]);
  const told = await failuresTold(home, ann, ben);
  const one = await say(home, "one");
  unwrap(await home.rpc.post(home.as(ben), { text: "aside" }));
  const two = await say(home, "two");
  const { message: three } = unwrap(await home.rpc.post(home.as(ben), { text: "three" }));
  const taken = [one, two, three].map(({ seq }): [number, number] => [seq, seq]);
  await run(home, robo, "batch", {
    ...{ type: "read", messageId: three.id, firstMessageId: one.id, taken, outcome: "failed" },
  });
  await vi.waitFor(() =>
    expect(told.toSorted()).toEqual(
      [
        [ann.id, two.id],
        [ben.id, three.id],
      ].toSorted(),
    ),
  );
});

test("[I5] a person hears once of a failed run that a newer one passed, though its agent rests", async () => {
  const home = await house([ann, robo]);
  const told = await failuresTold(home, ann);
  const [zero, one, two] = [await say(home, "zero"), await say(home, "one"), await say(home, "two")];
  await run(home, robo, "two", { type: "read", messageId: two.id, outcome: "failed" });
  await run(home, robo, "one", { type: "read", messageId: one.id, outcome: "failed" });
  await vi.waitFor(() => expect(told).toContainEqual([ann.id, one.id]));
  await run(home, robo, "zero", { type: "read", messageId: zero.id, outcome: "answered" });
  const last = await say(home, "last");
  await run(home, robo, "last", { type: "read", messageId: last.id, outcome: "silent" });
  await settled(home);
  expect(told).toEqual([two, one].map(({ id }) => [ann.id, id]));
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

/** A run takes some of the messages that no other run has, or those of one that failed. A person reads on meanwhile. */
const ending = fc.record({
  said: fc.integer({ min: 0, max: 2 }),
  picks: fc.array(fc.nat(), { minLength: 1, maxLength: 4 }),
  isAnew: fc.boolean(),
  outcome: fc.constantFrom("answered", "silent", "failed"),
  isToldAgain: fc.boolean(),
  readTo: fc.option(fc.nat()),
});

type Ending = typeof ending extends fc.Arbitrary<infer Each> ? Each : never;
const end: Ending = { said: 0, picks: [0], isAnew: false, outcome: "answered", isToldAgain: true, readTo: null };
const failed: Ending = { ...end, outcome: "failed" };
const known: Ending[][] = [
  // A run ends after one beside it, which took a newer message.
  [{ ...end, said: 1, picks: [1] }, { ...end, outcome: "silent" }, end],
  // A second try comes after the agent has read on.
  [failed, end, { ...end, isAnew: true }],
  // The failed run fails again, with an older message.
  [
    { ...failed, said: 1, picks: [1] },
    { ...failed, picks: [0, 1], isAnew: true },
  ],
] as const;

test("[K13] whatever runs take, and however they end, receipts name who took a message", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(ending, { minLength: 3, maxLength: 10 }), async (endings) => {
      const home = await house([ann, ben, robo]);
      const said: Message[] = [];
      /** The model: which run took which message, what came of it, and how far each has read. */
      const takers = new Map<string, { runId: string; outcome: string; reason: string }>();
      const readTo = new Map([ben, robo].map((member) => [member, 0]));
      const kept = new Map<string, unknown>();
      for (const [index, { said: more, picks, isAnew, outcome, isToldAgain, readTo: place }] of endings.entries()) {
        for (let each = 0; each <= more; each += 1) said.push(await say(home, `${index} ${each}`));
        const free = said.filter(({ id }) => !takers.has(id) || (isAnew && takers.get(id)?.outcome === "failed"));
        const mine = free.filter((_, at) => picks.some((pick) => pick % free.length === at));
        const [first, last] = [mine[0], mine.at(-1)];
        if (first && last) {
          const isRange = last.seq - first.seq === mine.length - 1;
          const taken = isRange ? undefined : mine.map(({ seq }): [number, number] => [seq, seq]);
          const reason = `because ${index}`;
          const frame = { messageId: last.id, firstMessageId: first.id, taken, outcome, reason } as const;
          const runId = await run(home, robo, `${index}`, { type: "read", ...frame });
          if (isToldAgain) await run(home, robo, `${index}`, { type: "read", ...frame });
          for (const { id } of mine)
            if (!takers.has(id) || outcome !== "failed") takers.set(id, { runId, outcome, reason });
          readTo.set(robo, Math.max(readTo.get(robo) ?? 0, last.seq));
        }
        const person = place === null ? undefined : said[place % said.length];
        if (person) unwrap(await home.rpc.markRead(home.as(ben), person.id));
        readTo.set(ben, Math.max(readTo.get(ben) ?? 0, person?.seq ?? 0));
        for (const { id, seq } of said) {
          const expected = [...readTo].flatMap(([{ id: entityId, name, type }, upTo]) => {
            const end = (entityId === robo.id && takers.get(id)) || {};
            return upTo < seq ? [] : [{ entityId, name, type, at: expect.stringMatching(/^\d{4}-.*Z$/), ...end }];
          });
          const receipts = await readsOf(home, id);
          expect(receipts).toEqual(expected);
          for (const receipt of receipts) {
            const key = `${id} ${receipt.entityId} ${receipt.runId}`;
            expect(receipt).toEqual(kept.get(key) ?? receipt);
            kept.set(key, receipt);
          }
        }
      }
    }),
    { numRuns: 15, examples: known.map((endings) => [endings]) },
  );
}, 60_000);

test.for([0, maxReceiptScan + 10])(
  "[K13] receipts stay when readers leave and come back, %s events later",
  async (later) => {
    const home = await house([ann, ben, robo]);
    const [one, two] = [await say(home, "one"), await say(home, "two")];
    unwrap(await home.rpc.markRead(home.as(ben), one.id));
    const newest = await run(home, robo, "two", { type: "read", messageId: two.id, outcome: "silent" });
    const late = await run(home, robo, "one", { type: "read", messageId: one.id, outcome: "answered" });
    await settled(home);
    await grow(home, later);
    unwrap(await home.rpc.markRead(home.as(ben), two.id));
    const again = () => Promise.all([readsOf(home, one.id), readsOf(home, two.id)]);
    const before = await again();
    expect(before).toMatchObject([
      [{ name: "Ben" }, { runId: late }],
      [{ name: "Ben" }, { runId: newest }],
    ]);
    for (const { id } of [ben, robo]) unwrap(await home.rpc.removeMember(home.key, id));
    expect(await again()).toEqual(before);
    expect((await counted(home, () => readsOf(home, one.id))).rowsRead).toBeLessThan(later + 50);
    for (const member of [ben, robo]) unwrap(await home.rpc.addMember(home.key, member));
    expect(await again()).toEqual(before);
  },
);

test("[K13] however many runs end after a newer mark, receipts tell of each, and the mark stays", async () => {
  const home = await house([ann, robo]);
  const socket = await listen(home, home.as(ann));
  const said: Message[] = [];
  for (let index = 0; index <= maxLateReads; index += 1) said.push(await say(home, `${index}`));
  const last = await say(home, "last");
  await run(home, robo, "last", { type: "read", messageId: last.id, outcome: "silent" });
  const runs: string[] = [];
  for (const { id } of said) runs.push(await run(home, robo, id, { type: "read", messageId: id, outcome: "answered" }));
  const told = await Promise.all(said.map(({ id }) => readsOf(home, id)));
  expect(told.map(([read]) => read?.runId)).toEqual(runs);
  expect(new Set(socket.of("member.read").map(({ messageId }) => messageId))).toEqual(new Set([last.id]));
});

test("[S1] a caller outside the space sees no read receipts; an unknown message is not found", async () => {
  const home = await house([ann]);
  const { id } = await say(home, "hello");
  expect(await home.rpc.reads(home.as(ben), id)).toMatchObject({ ok: false, problem: { code: "not_found" } });
  const other = ids.mintOwned("msg", home.space.id);
  expect(await home.rpc.reads(home.as(ann), other)).toMatchObject({ ok: false, problem: { code: "not_found" } });
  expect(unwrap(await home.rpc.reads(home.key, id))).toEqual([]);
});
