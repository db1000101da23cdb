import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test, vi } from "vitest";
import { createApi } from "../../scripts/api.ts";
import { startCourier } from "../../scripts/courier.ts";
import { seedDemo } from "../../scripts/demo.ts";
import type { Message } from "../../src/protocol/message.ts";
import type { Run } from "../../src/protocol/run.ts";
import { browserForFile, houseForFile } from "./support/for-file.ts";
import { openPage } from "./support/page.ts";

/** The real demo: one agent answers whatever a visitor types, and all that the README suggests. */
const folder = mkdtempSync(join(tmpdir(), "demo-"));
afterAll(() => rmSync(folder, { recursive: true }));
const [house, browser] = await Promise.all([houseForFile(), browserForFile()]);
const demo = await seedDemo(house.url, house.adminKey, join(folder, "demo.json"));
const courier = startCourier(house.url, demo.courier);
afterAll(() => courier.stop());
const workspace = createApi(house.url, demo.secretKey);
const his = await openPage(browser, demo.people[0]?.link ?? "");
his.setDefaultTimeout(10_000);

/** The README's suggestions: items of a list that begin with "in <space>", each with its sentences in backticks. */
const readme = readFileSync(join(import.meta.dirname, "../../README.md"), "utf8");
const suggested = [...readme.matchAll(/^- in ((?:[A-Z]\w*)(?: [A-Z]\w*)*)\b([\s\S]*?)(?=\n- |\n\n)/gm)].flatMap(
  ([, space = "", words = ""]) => [...words.matchAll(/`([^`]+)`/g)].map(([, sentence = ""]) => ({ space, sentence })),
);

const spaceId = (name: string): string => demo.spaces.find((space) => space.name === name)?.id ?? "";
const messagesOf = async (space: string): Promise<Message[]> =>
  (await workspace.as(demo.people[0]?.id ?? "").get<{ items: Message[] }>(`/v1/spaces/${spaceId(space)}/messages`))
    .items;

const allRuns = async (): Promise<Run[]> => {
  const { items } = await workspace.get<{ items: { id: string }[] }>("/v1/agents");
  const pages = items.map(({ id }) => workspace.get<{ items: Run[] }>(`/v1/agents/${id}/runs`));
  return (await Promise.all(pages)).flatMap((page) => page.items);
};

/** Resolves once an agent answered the newest message in a space, and no run goes on; answers who did, by name. */
const answerers = (space: string, text: string): Promise<string[]> =>
  vi.waitFor(
    async () => {
      const messages = await messagesOf(space);
      const asked = messages.findIndex((message) => message.text === text);
      const answers = messages.slice(asked + 1).filter(({ sender }) => sender.type === "agent");
      expect(asked).toBeGreaterThan(-1);
      expect(answers).not.toEqual([]);
      expect((await allRuns()).filter(({ status }) => status === "running")).toEqual([]);
      return [...new Set(answers.map(({ sender }) => sender.name))];
    },
    { timeout: 20_000, interval: 200 },
  );

const open = async (space: string) => {
  const links = his.getByRole("navigation", { name: "Spaces" }).getByRole("link");
  // The list is sorted anew as agents answer: a click at a place could meet another space.
  await links.filter({ has: his.getByText(space, { exact: true }) }).evaluate((link: HTMLElement) => link.click());
  return his.getByRole("combobox", { name: `Message to ${space}` });
};

const ask = async (space: string, text: string): Promise<void> => {
  await (await open(space)).fill(text);
  await his.getByRole("button", { name: "Send" }).click();
  await his
    .getByRole("article", { name: /^(?:You|Husam), / })
    .filter({ hasText: text })
    .last()
    .waitFor();
};

/** The agents that spoke after each message of a person in a space, by name. */
const answersIn = async (space: string): Promise<string[][]> => {
  const answers: Set<string>[] = [];
  for (const { sender } of await messagesOf(space)) {
    if (sender.type === "human") answers.push(new Set());
    else answers.at(-1)?.add(sender.name);
  }
  return answers.map((names) => [...names]);
};

const spaces = demo.spaces.map(({ name }) => name);

test("in each space the first sentence is answered by one agent, and then the page's suggestion", async () => {
  const suggestions: { space: string; text: string; name: string }[] = [];
  for (const space of spaces) {
    await open(space);
    const hint = await his.getByText(/Ask @?\w+ something/).textContent();
    const [, whom = "", name = ""] = /Ask (@?(\w+)) something/.exec(hint ?? "") ?? [];
    suggestions.push({ space, text: `${whom}, good morning`, name });
    await ask(space, "What a fine place this is");
  }
  for (const space of spaces) expect(await answerers(space, "What a fine place this is"), space).toHaveLength(1);
  for (const { space, text } of suggestions) await ask(space, text);
  for (const { space, text, name } of suggestions) expect(await answerers(space, text), space).toEqual([name]);
});

test("the README suggests sentences for the demo's spaces", () => {
  expect(suggested.map(({ space }) => space)).toEqual(
    expect.arrayContaining(["Town Square", "Errands", "Workshop", "Deliveries"]),
  );
  for (const { space } of suggested) expect(spaces).toContain(space);
});

test.each(suggested)("in $space one agent answers and understands `$sentence`", async ({ space, sentence }) => {
  await ask(space, sentence);
  const [agent, ...others] = await answerers(space, sentence);
  expect(others).toEqual([]);
  const named = /^@(\w+)/.exec(sentence)?.[1];
  if (named) expect(agent).toBe(named);
  const answer = (await messagesOf(space)).at(-1);
  expect(answer?.text ?? "").not.toMatch(
    /no rule for that|I know no|could not|cannot|I find nobody|I have no|I need|Say what/,
  );
  await his
    .getByRole("article", { name: new RegExp(`^${agent}, `) })
    .last()
    .waitFor();
});

test("Sara's plain answer goes to the agent that asked her, and nobody else speaks", async () => {
  const sara = demo.people.find(({ name }) => name === "Sara")?.id ?? "";
  await workspace.as(sara).post(`/v1/spaces/${spaceId("Errands")}/messages`, { text: "Yes, until noon" });
  expect(await answerers("Errands", "Yes, until noon")).toEqual(["Envoy"]);
  expect((await messagesOf("Errands")).at(-1)).toMatchObject({ text: "Sara said: Yes, until noon" });
});

test.each(spaces)("in %s each message of a person was answered by exactly one agent", async (space) => {
  for (const names of await answersIn(space)) expect(names).toHaveLength(1);
});
