import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import type { AgentMessage } from "../../src/protocol/rpc.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { entity, house, ids, recordReceivers, said } from "./fixture.ts";

beforeAll(recordReceivers);

const ann = entity("human", "Ann");
const bob = entity("human", "Bob");
const robo = entity("agent", "Robo");

test("[S6] a space that was never created answers not_found and stores nothing", async () => {
  const workspaceId = ids.mint("wsp");
  const rpc = env.SPACE.getByName(ids.mint("spc"));
  const answered = await rpc.describe({ kind: "key", workspaceId, keyId: ids.mint("key") });
  expect(answered).toMatchObject({ ok: false, problem: { code: "not_found" } });
});

test("[D1] a message has a place in the log, and everyone in the space can read it", async () => {
  const home = await house([ann, bob, robo]);
  const { message, created } = unwrap(await home.rpc.post(home.as(ann), { text: "Dinner at seven?" }));
  expect(created).toBe(true);
  expect(message).toMatchObject({
    seq: 5,
    kind: "text",
    text: "Dinner at seven?",
    sender: { name: "Ann", type: "human" },
  });
  const page = unwrap(await home.rpc.list(home.as(bob), { limit: 50 }));
  expect(page).toEqual({ items: [message], nextCursor: null });
});

test("[D1] the same clientKey stores a message once", async () => {
  const home = await house([ann, bob]);
  const first = unwrap(await home.rpc.post(home.as(ann), { text: "hello", clientKey: "k1" }));
  const again = unwrap(await home.rpc.post(home.as(ann), { text: "hello", clientKey: "k1" }));
  const others = unwrap(await home.rpc.post(home.as(bob), { text: "hello", clientKey: "k1" }));
  expect(again).toEqual({ message: first.message, created: false });
  expect(others.created).toBe(true);
  const mismatch = await home.rpc.post(home.as(ann), { text: "other", clientKey: "k1" });
  expect(mismatch).toMatchObject({ ok: false, problem: { code: "idempotency_mismatch", status: 422 } });
  expect(unwrap(await home.rpc.list(home.key, { limit: 50 })).items).toHaveLength(2);
});

test("[D1] concurrent posts are stored once each, in one order; a refused one undoes none", async () => {
  const home = await house([ann, bob, robo]);
  const { message: first } = unwrap(await home.rpc.post(home.as(bob), { text: "all together now" }));
  const answered = await Promise.all(
    Array.from({ length: 40 }, (_, index) =>
      home.rpc.post(home.as(index % 2 === 0 ? ann : bob), {
        text: `${index % 20}`,
        clientKey: `${index % 20}`,
        // The fifth of each ten replies to a message that does not exist.
        ...(index % 10 === 4 ? { replyTo: ids.mintOwned("msg", home.space.id) } : {}),
      }),
    ),
  );
  const refused = answered.filter(({ ok }) => !ok);
  expect(refused.map((outcome) => (outcome.ok ? "" : outcome.problem.code))).toEqual(
    Array.from({ length: 4 }, () => "unknown_reference"),
  );
  const posted = answered.flatMap((outcome) => (outcome.ok ? [outcome.value] : []));
  const created = posted.filter((each) => each.created).map(({ message }) => message);
  expect(created).toHaveLength(18);
  expect(new Set(posted.map(({ message }) => message.id)).size).toBe(18);
  expect(created.map(({ seq }) => seq)).toEqual(created.map((_, index) => first.seq + 1 + index));
  expect(unwrap(await home.rpc.list(home.as(ann), { limit: 50 })).items).toEqual([first, ...created]);
});

test("[R2] an agent that says something again has said it once", async () => {
  const home = await house([ann, robo]);
  const first = unwrap(await home.rpc.append(said(home, robo, "On it.")));
  const again = unwrap(await home.rpc.append(said(home, robo, "On it.")));
  expect(again).toEqual(first);
  expect(unwrap(await home.rpc.list(home.as(ann), { limit: 50 })).items).toEqual([first]);
});

test("[R5] [R2] an agent's message after its deadline is refused, and stored once if sent again", async () => {
  const home = await house([ann, robo]);
  const message = said(home, robo, "On it.");
  const late = await home.rpc.append({ ...message, until: Date.now() - 1 });
  expect(late).toMatchObject({ ok: false, problem: { code: "unavailable" } });
  expect(unwrap(await home.rpc.list(home.as(ann), { limit: 50 })).items).toEqual([]);
  const first = unwrap(await home.rpc.append({ ...message, until: Date.now() + 60_000 }));
  expect(unwrap(await home.rpc.append({ ...message, until: Date.now() - 1 }))).toEqual(first);
});

test("pages follow the messages in both directions, whatever lies between them in the log", async () => {
  const home = await house([ann, bob]);
  for (let index = 1; index <= 5; index += 1) {
    const { message } = unwrap(await home.rpc.post(home.as(ann), { text: `${index}` }));
    unwrap(await home.rpc.markRead(home.as(bob), message.id));
  }
  const page = async (request: { before?: number; after?: number; limit: number }) => {
    const { items, nextCursor } = unwrap(await home.rpc.list(home.as(bob), request));
    return { texts: items.map(({ text }) => text).join(""), nextCursor };
  };
  const newest = await page({ limit: 2 });
  expect(newest).toEqual({ texts: "45", nextCursor: "10" });
  const older = await page({ limit: 2, before: Number(newest.nextCursor) });
  expect(older).toEqual({ texts: "23", nextCursor: "6" });
  expect(await page({ limit: 2, before: Number(older.nextCursor) })).toEqual({ texts: "1", nextCursor: null });
  expect(await page({ limit: 2, after: 4 })).toEqual({ texts: "23", nextCursor: "8" });
  expect(await page({ limit: 3, after: 8 })).toEqual({ texts: "45", nextCursor: null });
  expect(await page({ limit: 9, after: 4, before: 10 })).toEqual({ texts: "23", nextCursor: null });
  expect(await page({ limit: 2, after: 99 })).toEqual({ texts: "", nextCursor: null });
  expect(await page({ limit: 2, before: 0 })).toEqual({ texts: "", nextCursor: null });
});

test("a reply names a message of this space, and a message whom it mentions", async () => {
  const home = await house([ann, bob, robo]);
  const { message } = unwrap(await home.rpc.post(home.as(ann), { text: "hello @bob and @Robo!", expectsReply: true }));
  expect(message).toMatchObject({ mentions: [bob.id, robo.id], expectsReply: true });
  const reply = unwrap(await home.rpc.post(home.as(bob), { text: "yes?", replyTo: message.id })).message;
  expect(reply.replyTo).toBe(message.id);
  const lost = await home.rpc.post(home.as(bob), { text: "what?", replyTo: ids.mintOwned("msg", home.space.id) });
  expect(lost).toMatchObject({ ok: false, problem: { code: "unknown_reference" } });
});

test("a read mark moves forward only", async () => {
  const home = await house([ann, bob]);
  const first = unwrap(await home.rpc.post(home.as(ann), { text: "one" })).message;
  const second = unwrap(await home.rpc.post(home.as(ann), { text: "two" })).message;
  unwrap(await home.rpc.markRead(home.as(bob), second.id));
  unwrap(await home.rpc.markRead(home.as(bob), first.id));
  unwrap(await home.rpc.markRead(home.as(bob), second.id));
  const third = unwrap(await home.rpc.post(home.as(ann), { text: "three" })).message;
  expect(third.seq).toBe(second.seq + 2);
  const lost = await home.rpc.markRead(home.as(bob), ids.mintOwned("msg", home.space.id));
  expect(lost).toMatchObject({ ok: false, problem: { code: "not_found" } });
});

test("[B4] an agent's window is the newest messages after its offset, and their number", async () => {
  const home = await house([ann, robo]);
  for (const text of ["1", "2", "3", "4", "5"]) unwrap(await home.rpc.post(home.as(ann), { text }));
  const window = async (limit: number, offset: number) => {
    const { messages, total } = unwrap(await home.rpc.window(home.workspaceId, robo.id, { limit, offset }));
    return [messages.map(({ text }) => text).join(""), total];
  };
  expect(await window(2, 0)).toEqual(["45", 5]);
  expect(await window(2, 2)).toEqual(["23", 5]);
  expect(await window(9, 4)).toEqual(["1", 5]);
  expect(await window(9, 5)).toEqual(["", 5]);
});

test("[R2] an agent's message must have an id of this space, be a text, and be its own", async () => {
  const hal = entity("agent", "Hal");
  const [home, other] = [await house([ann, robo, hal]), await house([ann, robo])];
  const code = async (message: AgentMessage) => {
    const answered = await home.rpc.append(message);
    return answered.ok ? "ok" : answered.problem.code;
  };
  expect(await code({ ...said(other, robo, "hi"), workspaceId: home.workspaceId })).toBe("invalid_request");
  expect(await code(said(home, robo, "  "))).toBe("invalid_request");
  expect(await code(said(home, robo, "hi"))).toBe("ok");
  expect(await code({ ...said(home, robo, "hi"), agentId: hal.id })).toBe("conflict");
});

test("creating a space again answers the space that there is", async () => {
  const home = await house([ann]);
  const { id, name, wakePolicy, shareOrigin } = home.space;
  const input = { id, workspaceId: home.workspaceId, settings: { name, wakePolicy, shareOrigin }, members: [bob] };
  expect(unwrap(await home.rpc.create(input))).toEqual(home.space);
  const stolen = await home.rpc.create({ ...input, workspaceId: ids.mint("wsp") });
  expect(stolen).toMatchObject({ ok: false, problem: { code: "conflict" } });
});
