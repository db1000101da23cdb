import type { Locator } from "playwright-core";
import { expect, test, vi } from "vitest";
import { createApi } from "../../scripts/api.ts";
import type { BlockChange } from "../../src/protocol/block.ts";
import type { Message } from "../../src/protocol/message.ts";
import type { SearchAnswer } from "../../src/protocol/search.ts";
import { browserForFile, houseForFile } from "./support/for-file.ts";
import type { Person } from "./support/house.ts";
import { openPage } from "./support/page.ts";

/**
 * A day of an agent that keeps a list with two people in two spaces. All three change the list, and it survives a server
 * crash at noon. In the evening the agent knows who said what, and where. At night it moves to another workspace.
 */
const patience = { timeout: 30_000, interval: 50 };
const item = (text: string, done = false) => ({ text, done });

const [house, browser] = await Promise.all([houseForFile(), browserForFile()]);
const husam = await house.addPerson("Husam");
const sara = await house.addPerson("Sara");
const model = { provider: "rehearsal", deltasPerSecond: 0 };
const scribe = await house.addAgent({ name: "Scribe", model, messaging: "threaded" });
const kitchen = await house.addSpace("Kitchen", [husam.id, sara.id, scribe]);
const work = await house.addSpace("Work", [husam.id, sara.id, scribe]);
const his = await openPage(browser, await husam.link());
// The page must take the code out of the address before the address changes.
await his.waitForURL(({ hash }) => !hash.startsWith("#sign-in="));
await his.goto(`${house.url}/#${kitchen}`);
await his.getByRole("heading", { level: 1, name: "Kitchen" }).waitFor();
await his.getByRole("button", { name: "Blocks", exact: true }).click();

const say = async (person: Person, spaceId: string, text: string): Promise<void> => {
  await person.api.post(`/v1/spaces/${spaceId}/messages`, { text });
};

const answers = async (spaceId: string): Promise<string[]> => {
  const { items } = await husam.api.get<{ items: Message[] }>(`/v1/spaces/${spaceId}/messages?limit=200`);
  return items.flatMap(({ sender, text }) => (sender.id === scribe && text !== undefined ? [text] : []));
};

/** Posts to the agent, and waits for its next answer in that space. */
const ask = async (person: Person, spaceId: string, text: string): Promise<string> => {
  const before = (await answers(spaceId)).length;
  await say(person, spaceId, `@Scribe ${text}`);
  await vi.waitFor(async () => expect((await answers(spaceId)).length).toBeGreaterThan(before), patience);
  return (await answers(spaceId)).at(-1) ?? "";
};

const blockIn = (spaceId: string): string => `/v1/spaces/${spaceId}/agents/${scribe}/blocks/shopping`;

const edit = (person: Person, spaceId: string, ...operations: object[]): Promise<unknown> =>
  person.api.post(`${blockIn(spaceId)}/operations`, { operations });

const stored = async (person: Person, spaceId: string): Promise<unknown> =>
  (await person.api.get<{ value: unknown }>(blockIn(spaceId))).value;

const shown = (words: string, checked = false): Locator =>
  his.getByRole("complementary", { name: "Blocks" }).getByRole("checkbox", { name: words, exact: true, checked });

const talk = async (spaceId: string, topic: string, messages: number): Promise<void> => {
  for (let index = 1; index <= messages; index += 1) {
    await say(index % 2 === 0 ? husam : sara, spaceId, `About the ${topic}, remark ${index}: nothing to decide yet.`);
  }
};

test("in the morning: a list is begun in one space, and shared with the other", async () => {
  expect(await ask(husam, kitchen, "add milk and bread to the shopping list")).toContain("I began the shopping list");
  await shown("bread").waitFor();
  await expect(stored(sara, work)).rejects.toThrow("404");
  expect(await ask(sara, work, "share the shopping list with us")).toContain("stands under Blocks here");
  expect(await ask(sara, work, "add printer paper to the shopping list")).toBe(
    'Done: "printer paper" is on the shopping list.',
  );
  await shown("printer paper").waitFor();
  await say(sara, work, "The landlord comes on Tuesday at four.");
  await say(husam, kitchen, "Ahmad is allergic to walnuts.");
});

test("[D1] before noon: all three change the list at the same time", async () => {
  await Promise.all([
    talk(kitchen, "dinner", 30),
    talk(work, "budget", 30),
    edit(husam, kitchen, { op: "push_item", item: item("dates") }),
    edit(sara, work, { op: "push_item", item: item("stamps") }),
    ask(sara, kitchen, "add tea to the shopping list"),
  ]);
  await shown("tea").waitFor();
  const words = ["milk", "bread", "printer paper", "dates", "stamps", "tea"].map((text) => item(text));
  expect(await stored(sara, work)).toEqual(expect.arrayContaining(words));
  expect(await stored(husam, kitchen)).toHaveLength(words.length);
});

test("[D3] at noon: after a server crash nothing is lost, and open pages go on", async () => {
  const before = await stored(husam, kitchen);
  await house.crash();
  expect(await stored(sara, work)).toEqual(before);
  expect(await ask(sara, work, "cross off printer paper from the shopping list")).toBe(
    'Done: I crossed off "printer paper".',
  );
  await shown("printer paper", true).waitFor();
  await shown("milk").check();
  await shown("milk", true).waitFor();
  await vi.waitFor(async () => expect(await stored(sara, work)).toContainEqual(item("milk", true)), patience);
});

test("in the afternoon: each undoes their own change, and the history names everybody", async () => {
  await talk(work, "holidays", 20);
  await edit(sara, work, { op: "undo" });
  expect(await stored(husam, kitchen)).not.toContainEqual(item("stamps"));
  expect(await ask(husam, kitchen, "what is on the shopping list?")).toMatch(
    /^On the shopping list: .*tea.*\. Crossed off: .*printer paper.*\.$/,
  );
  const { items } = await sara.api.get<{ items: BlockChange[] }>(`${blockIn(work)}/history`);
  const authors = new Set(items.map(({ author }) => author.split(":").slice(0, 2).join(":")));
  expect(authors).toEqual(new Set([`agent:${scribe}`, `human:${husam.id}`, `human:${sara.id}`]));
});

/** The agent's search results, by the workspace's API. */
const find = async (agentId: string, query: string) => {
  const search = `/v1/agents/${agentId}/search?types=message&q=${encodeURIComponent(query)}`;
  const { items } = await house.api.get<SearchAnswer>(search);
  return items;
};

const landlord = { authorName: "Sara", spaceName: "Work" };
const walnuts = { authorName: "Husam", spaceName: "Kitchen" };

test("in the evening: a search from either space finds who said what, and where", async () => {
  const [first] = await find(scribe, "when does the landlord come");
  expect(first).toMatchObject({ type: "message", source: { ...landlord, authorId: sara.id, spaceId: work } });
  expect(first?.excerpt).toContain("Tuesday at four");
  const { items } = await sara.api.get<{ items: Message[] }>(`/v1/spaces/${work}/messages?limit=200`);
  expect(items.find(({ text }) => text?.includes("landlord"))?.id).toBe(first?.source.messageId);
  expect((await find(scribe, "walnuts"))[0]).toMatchObject({ source: { ...walnuts, authorId: husam.id } });
  const told = await ask(husam, kitchen, "who said something about the landlord?");
  expect(told).toMatch(/^Sara in "Work" \(\d{4}-\d{2}-\d{2}\): .*landlord/);
});

test("at night: the agent is exported and imported elsewhere with its list and memory", async () => {
  const kept = `/v1/agents/${scribe}/blocks/shopping`;
  const before = await house.api.get<{ value: unknown; rendered: string; version: number }>(kept);
  const past = await house.api.get<{ items: BlockChange[] }>(`${kept}/history?limit=100`);
  const document = await (
    await fetch(`${house.url}/v1/agents/${scribe}/export`, { headers: { authorization: `Bearer ${house.secretKey}` } })
  ).text();

  const operator = createApi(house.url, house.adminKey);
  const { secretKey } = await operator.post<{ secretKey: string }>("/v1/workspaces", { name: "Elsewhere" });
  const api = createApi(house.url, secretKey);
  const imported = await fetch(`${house.url}/v1/imports`, {
    method: "POST",
    headers: { authorization: `Bearer ${secretKey}`, "content-type": "application/x-ndjson" },
    body: document,
  });
  expect(imported.status).toBe(201);
  const { agent } = (await imported.json()) as { agent: { id: string } };
  const at = `/v1/agents/${agent.id}/blocks/shopping`;
  expect(await api.get(at)).toMatchObject({
    value: before.value,
    rendered: before.rendered,
    version: before.version,
  });
  const again = await api.get<{ items: BlockChange[] }>(`${at}/history?limit=100`);
  expect(again.items.map(({ version, author, createdAt }) => ({ version, author, createdAt }))).toEqual(
    past.items.map(({ version, author, createdAt }) => ({
      version,
      author: author.replace(scribe, agent.id),
      createdAt,
    })),
  );
  const search = `/v1/agents/${agent.id}/search?q=${encodeURIComponent("landlord Tuesday")}`;
  const { items } = await api.get<SearchAnswer>(search);
  const found = items.map(({ excerpt }) => excerpt).join("\n");
  expect(found).toMatch(/"Sara" \(human[^\n]*The landlord comes on Tuesday at four/);
  expect(found).toMatch(/Sara in \W*Work/);

  const { entity: mona } = await api.post<{ entity: { id: string } }>("/v1/entities", { type: "human", name: "Mona" });
  const members = [{ entityId: mona.id }, { entityId: agent.id }];
  const { space } = await api.post<{ space: { id: string } }>("/v1/spaces", { name: "New kitchen", members });
  const asMona = api.as(mona.id);
  const monaAsks = async (text: string): Promise<string> => {
    const all = async (): Promise<string[]> => {
      const said = await asMona.get<{ items: Message[] }>(`/v1/spaces/${space.id}/messages`);
      return said.items.flatMap((one) => (one.sender.id === agent.id && one.text !== undefined ? [one.text] : []));
    };
    const count = (await all()).length;
    await asMona.post(`/v1/spaces/${space.id}/messages`, { text });
    await vi.waitFor(async () => expect((await all()).length).toBeGreaterThan(count), patience);
    return (await all()).at(-1) ?? "";
  };
  expect(await monaAsks("what is on the shopping list?")).toMatch(/^On the shopping list: .*tea.*Crossed off: .*milk/);
  expect(await monaAsks("share the shopping list with us")).toContain("stands under Blocks here");
  const hers = `/v1/spaces/${space.id}/agents/${agent.id}/blocks/shopping`;
  await asMona.post(`${hers}/operations`, { operations: [{ op: "push_item", item: item("coffee") }] });
  expect((await api.get<{ value: unknown[] }>(at)).value).toEqual([...(before.value as unknown[]), item("coffee")]);
  // The original agent is unchanged.
  expect(await house.api.get(kept)).toMatchObject({ value: before.value, version: before.version });
});
