import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, expect, test, vi } from "vitest";
import { Person } from "../../src/person/person.ts";
import { maxSubscriptions } from "../../src/protocol/line.ts";
import { call, ids, openHouse } from "../support/house.ts";
import { openLine } from "../support/line-listener.ts";
import { problemIn } from "./operations.ts";

afterEach(() => void vi.restoreAllMocks());

const personStub = (id: string): DurableObjectStub<Person> => {
  const namespace: unknown = env.PERSON;
  return (namespace as DurableObjectNamespace<Person>).getByName(id);
};

const scene = async () => {
  const house = await openHouse();
  const [ann, ben, cat] = [await house.person("Ann"), await house.person("Ben"), await house.person("Cat")];
  const hall = await house.space("Hall", [ann, ben, cat]);
  const den = await house.space("Den", [ann, ben]);
  return { house, ann, ben, cat, hall, den, line: (query = "") => openLine(ann.token, query) };
};

test("[I1] the welcome shows how each space stands, and what needs the person", async () => {
  const { house, ann, ben, hall, den, line } = await scene();
  await house.say(hall.id, ben, "Nobody in particular");
  const asked = await house.say(hall.id, ben, "@Ann are you there?");
  const { welcome } = await line();
  expect(welcome.you).toEqual({ id: ann.id, type: "human", name: "Ann" });
  const byName = Object.fromEntries(welcome.spaces.map((space) => [space.name, space]));
  const preview = { messageId: asked.id, text: "@Ann are you there?", sender: { id: ben.id } };
  expect(byName.Hall).toMatchObject({ spaceId: hall.id, unread: 2, mentions: 1, needsYou: 1, working: [], preview });
  expect(byName.Den).toMatchObject({ spaceId: den.id, unread: 0, mentions: 0, needsYou: 0 });
  expect(byName.Den).not.toHaveProperty("preview");
  expect(welcome.needsYou).toMatchObject([{ kind: "mention", messageId: asked.id, title: "@Ann are you there?" }]);
});

test("[I1] all lines of a person tell of messages, mentions and reading in all spaces", async () => {
  const { house, ann, ben, hall, den, line } = await scene();
  const [one, other] = [await line(), await line()];
  const { id } = await house.say(hall.id, ben, "@Ann well?");
  await house.say(den.id, ben, "Hello");
  for (const each of [one, other]) {
    const told = await each.until("notification", 2);
    expect(told.map(({ kind, spaceId }) => [kind, spaceId])).toEqual(
      expect.arrayContaining([
        ["mention", hall.id],
        ["direct", den.id],
      ]),
    );
    await vi.waitFor(() => expect(each.summaryOf(hall.id)).toMatchObject({ unread: 1, mentions: 1, needsYou: 1 }));
  }
  await call(`/v1/spaces/${hall.id}/read`, { bearer: ann.token, body: { messageId: id } });
  for (const each of [one, other]) {
    expect(await each.until("notification.cleared")).toMatchObject([{ ids: [`mention ${id}`] }]);
    expect(await each.until("needs_you.done")).toMatchObject([{ id: `mention ${id}` }]);
    await vi.waitFor(() => expect(each.summaryOf(hall.id)).toMatchObject({ unread: 0, mentions: 0, needsYou: 0 }));
  }
});

test("[I2] nobody who does not look is told anything, or keeps anything", async () => {
  const { house, ann, ben, hall, line } = await scene();
  const hear = vi.spyOn(Person.prototype, "hear");
  await house.say(hall.id, ben, "@Ann are you there?");
  const listening = await line();
  await house.say(hall.id, ben, "@Ann now?");
  await listening.until("notification");
  expect(hear).toHaveBeenCalled();
  listening.socket.close(1000);
  await vi.waitFor(() => expect(listening.closed).toBeDefined());
  // The next one finds nobody there, and is the last.
  await house.say(hall.id, ben, "@Ann bye");
  await vi.waitFor(async () => {
    const kept = await runInDurableObject(personStub(ann.id), (_, { storage }) =>
      storage.sql
        .exec(
          "SELECT (SELECT count(*) FROM spaces WHERE id = ?) + (SELECT count(*) FROM notifications) AS kept",
          hall.id,
        )
        .one(),
    );
    expect(kept).toEqual({ kept: 0 });
  });
  hear.mockClear();
  await house.say(hall.id, ben, "@Ann is anybody there?");
  await house.say(hall.id, ben, "@Ann nobody");
  const again = await line();
  expect(again.summaryOf(hall.id)).toMatchObject({ mentions: 5 });
  expect(hear).not.toHaveBeenCalled();
});

test("[I3] a line carries the frames of up to five spaces, with their resume and rules", async () => {
  const { house, ann, ben, hall, line } = await scene();
  const first = await house.say(hall.id, ben, "one");
  await house.say(hall.id, ben, "two");
  const listening = await line();
  listening.send({ type: "subscribe", spaceId: hall.id, cursor: first.seq });
  listening.send({ type: "message.send", spaceId: hall.id, text: "three", clientKey: "three" });
  await vi.waitFor(() => expect(listening.framesOf(hall.id)).toEqual(["welcome", "space.message", "space.message"]));
  const more = await Promise.all(Array.from({ length: maxSubscriptions }, (_, n) => house.space(`${n}`, [ann])));
  for (const { id } of more) listening.send({ type: "subscribe", spaceId: id });
  expect(await listening.until("error")).toMatchObject([{ code: "limit_reached", spaceId: more.at(-1)?.id }]);
  const foreign = (await (await scene()).house.space("Foreign", [])).id;
  for (const { id } of [hall, ...more.slice(0, 3)]) listening.send({ type: "unsubscribe", spaceId: id });
  for (const spaceId of [foreign, ids.mint("spc"), "spc_invented"]) listening.send({ type: "subscribe", spaceId });
  listening.send({ type: "message.send", spaceId: hall.id, text: "four", clientKey: "four" });
  listening.send({ type: "no such thing" });
  const codes = (await listening.until("error", 6)).slice(1).map(({ code }) => code);
  expect(codes.toSorted()).toEqual(["bad_frame", "conflict", "not_found", "not_found", "not_found"]);
  const { items } = (await (await call(`/v1/spaces/${hall.id}/messages`, { bearer: ann.token })).json()) as {
    items: { text: string }[];
  };
  expect(items.map(({ text }) => text)).toEqual(["one", "two", "three"]);
});

test("[I4] who is removed hears nothing more of the space on their line", async () => {
  const { house, ann, ben, hall, line } = await scene();
  const listening = await line();
  listening.send({ type: "subscribe", spaceId: hall.id });
  await vi.waitFor(() => expect(listening.framesOf(hall.id)).toEqual(["welcome"]));
  await call(`/v1/spaces/${hall.id}/members/${ann.id}`, { method: "DELETE", bearer: house.secretKey });
  const removedAt = Date.now();
  expect(await listening.until("unsubscribed")).toMatchObject([{ spaceId: hall.id, code: 4403 }]);
  expect(await listening.until("space.left")).toMatchObject([{ spaceId: hall.id }]);
  expect(Date.now() - removedAt).toBeLessThan(1000);
  const before = listening.frames.length;
  await house.say(hall.id, ben, "@Ann secret");
  const later = await openLine(ben.token);
  await vi.waitFor(() => expect(later.summaryOf(hall.id)?.preview?.text).toBe("@Ann secret"));
  expect(listening.frames.slice(before)).toEqual([]);
  // And somebody who is added hears of the space.
  await call(`/v1/spaces/${hall.id}/members`, { bearer: house.secretKey, body: { entityId: ann.id } });
  await vi.waitFor(() => expect(listening.summaryOf(hall.id)).toMatchObject({ name: "Hall", unread: 0 }));
});

test("[I4] [L7] a line that an admin made closes within a second of their role's end", async () => {
  const { house, ann, hall } = await scene();
  const boss = await house.person("Boss", "admin");
  const made = await call("/v1/tokens", { bearer: boss.token, body: { entityId: ann.id } });
  const listening = await openLine(((await made.json()) as { token: string }).token);
  listening.send({ type: "subscribe", spaceId: hall.id });
  await vi.waitFor(() => expect(listening.framesOf(hall.id)).toEqual(["welcome"]));
  await call(`/v1/entities/${boss.id}`, { method: "PATCH", bearer: house.secretKey, body: { role: "member" } });
  await vi.waitFor(() => expect(listening.closed).toBe(4401), { timeout: 1000 });
});

test("[I5] missed notifications come after the cursor, each once, while they are unread", async () => {
  const { house, ann, ben, hall, line } = await scene();
  const first = await line();
  const read = await house.say(hall.id, ben, "@Ann one");
  const [{ cursor = 0 } = {}] = await first.until("notification");
  const second = await line();
  await house.say(hall.id, ben, "@Ann two");
  await second.until("notification");
  const third = await line(`?cursor=${cursor}`);
  expect((await third.until("notification")).map(({ body }) => body)).toEqual(["@Ann two"]);
  await call(`/v1/spaces/${hall.id}/read`, { bearer: ann.token, body: { messageId: read.id } });
  await third.until("notification.cleared");
  const fourth = await line("?cursor=0");
  expect((await fourth.until("notification")).map(({ body }) => body)).toEqual(["@Ann two"]);
});

test("[D3] [I5] who is cut off after the welcome of /v1/events misses nothing", async () => {
  const { house, ann, ben, hall, line } = await scene();
  const listening = await line();
  for (const text of ["@Ann one", "@Ann two"]) await house.say(hall.id, ben, text);
  await listening.until("notification", 2);
  const idsAfter = async (query: string, missed: number): Promise<(string | undefined)[]> => {
    const answer = await call(`/v1/events${query}`, { bearer: ann.token });
    let text = "";
    for await (const chunk of answer.body ?? []) {
      text += new TextDecoder().decode(chunk);
      if (text.includes("event: welcome") && text.split("event: notification").length > missed) break;
    }
    return text.split("\n\n").flatMap((event) => (event.includes("data:") ? [/^id: (\d+)$/m.exec(event)?.[1]] : []));
  };
  expect(await idsAfter("?cursor=0", 2)).toEqual([undefined, "1", "2"]);
  expect(await idsAfter("", 0)).toEqual(["2"]);
});

test("[I1] a line goes on after its person's object has slept", async () => {
  const { house, ann, ben, hall, line } = await scene();
  const listening = await line();
  await evictDurableObject(personStub(ann.id));
  await house.say(hall.id, ben, "@Ann still there?");
  expect(await listening.until("notification")).toMatchObject([{ kind: "mention", body: "@Ann still there?" }]);
});

test("[I4] words that are deleted leave previews and notifications", async () => {
  const { house, ann, ben, hall, line } = await scene();
  const listening = await line();
  const { id } = await house.say(hall.id, ben, "@Ann the code is 1234");
  await listening.until("notification");
  await call(`/v1/spaces/${hall.id}/messages/${id}`, { method: "DELETE", bearer: ben.token });
  expect(await listening.until("notification.cleared")).toMatchObject([{ ids: [`mention ${id}`] }]);
  await vi.waitFor(() => expect(listening.summaryOf(hall.id)).not.toHaveProperty("preview"));
  const rows = await runInDurableObject(personStub(ann.id), (_, { storage }) =>
    ["spaces", "notifications"].flatMap((table) => storage.sql.exec(`SELECT * FROM ${table}`).toArray()),
  );
  expect(JSON.stringify(rows)).not.toContain("1234");
});

test("[S1] a line is its person's alone", async () => {
  const { house, ann } = await scene();
  const bot = await house.service("Bot");
  const upgrade = { upgrade: "websocket" };
  expect(await problemIn(await call("/v1/stream", { bearer: bot.token, headers: upgrade }))).toMatchObject({
    code: "forbidden",
  });
  expect(await problemIn(await call("/v1/stream", { headers: upgrade }))).toMatchObject({ code: "unauthorized" });
  expect(await problemIn(await call("/v1/stream", { bearer: house.secretKey, headers: upgrade }))).toMatchObject({
    code: "acting_entity_required",
  });
  expect(await problemIn(await call("/v1/stream", { bearer: ann.token }))).toMatchObject({ code: "upgrade_required" });
  expect(await problemIn(await call("/v1/stream?cursor=x", { bearer: ann.token, headers: upgrade }))).toMatchObject({
    code: "invalid_cursor",
  });
  expect((await openLine(house.secretKey, "", ann.id)).welcome.you.id).toBe(ann.id);
  expect((await openLine(ann.token, "", undefined)).welcome.spaces).toHaveLength(2);
});

test("[S4] a line that is refused, since it is no person's, is known to nobody", async () => {
  const { house } = await scene();
  const robot = await house.agent({ name: "Robo" });
  const headers = { upgrade: "websocket", "x-entity-id": robot.id };
  const refused = await call("/v1/stream", { bearer: house.secretKey, headers });
  expect(await problemIn(refused)).toMatchObject({ code: "forbidden" });
  const namespace: unknown = env.WORKSPACE;
  const workspace = (namespace as DurableObjectNamespace).getByName(house.workspaceId);
  const known = await runInDurableObject(workspace, (_, { storage }) =>
    storage.sql.exec("SELECT id FROM socket_objects WHERE id = ?", robot.id).toArray(),
  );
  expect(known).toEqual([]);
});

test("[S5] a line closes once its person signed out everywhere, or is no more", async () => {
  const { house, ann, line } = await scene();
  const listening = await line();
  await call(`/v1/entities/${ann.id}/sign-out`, { method: "POST", bearer: house.secretKey });
  const next = await house.token(ann.id);
  expect([4401, 4403]).toContain(await listening.untilClosed());
  const again = await openLine(next);
  await call(`/v1/entities/${ann.id}`, { method: "DELETE", bearer: house.secretKey });
  expect([4401, 4403]).toContain(await again.untilClosed());
});
