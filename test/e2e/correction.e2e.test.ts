import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import * as z from "zod";
import type { FakeRequest, FakeStep } from "../support/fake-openai.ts";
import { browserForFile, houseForFile, modelForFile } from "./support/for-file.ts";
import type { Person } from "./support/house.ts";
import { openPage, write } from "./support/page.ts";

/** A person corrects an agent while it speaks. The model's words are held, so that the correction comes in the middle. */
const wrong = ["The rent ", "is due ", "on Friday", ", as always."];
const right = "Corrected: the rent is due on Thursday.";
const correction = "no, it is due on Thursday";

const speech = (text: string[], more: Partial<FakeStep> = {}): FakeStep => ({
  toolCalls: [{ name: "send_message", arguments: ['{"text":"', ...text, '"}'] }],
  ...more,
});
const call = (name: string, input: Record<string, string>): FakeStep => ({ toolCalls: [{ name, arguments: input }] });

const Turns = z.array(z.looseObject({ role: z.string() }));

/** What the model is given, the standing instructions aside. */
const told = ({ body }: FakeRequest): string =>
  JSON.stringify(Turns.parse(body.messages).filter(({ role }) => role !== "system"));

/** A mind is one run: the correction shows in it between two steps. */
const mind = (request: FakeRequest): FakeStep => {
  const given = told(request);
  if (given.includes(right)) return { text: "That was all." };
  if (given.includes("INBOX PREVIEW") && given.includes(correction)) return speech([right]);
  const spaceId = /spc_[0-9A-Z]{34}/.exec(given)?.[0] ?? "";
  return given.includes(`"name":"enter_space"`) ? speech(wrong, { holdAfter: 4 }) : call("enter_space", { spaceId });
};

/** In a timeline the correction begins a run of its own, which takes over the one that speaks. */
const scribe = (request: FakeRequest): FakeStep => {
  const given = told(request);
  if (given.includes(right)) return { text: "That was all." };
  if (!given.includes(correction)) return speech(wrong, { stallAfter: 4 });
  const other = /(run_[0-9A-Z]+) \(running\)/.exec(given)?.[1] ?? "";
  return given.includes(`"name":"absorb_run"`) ? speech([right]) : call("absorb_run", { runId: other });
};

const fake = await modelForFile((request) => (request.model === "mind" ? mind(request) : scribe(request)));
const [house, browser] = await Promise.all([houseForFile(), browserForFile()]);
const husam = await house.addPerson("Husam");
const sara = await house.addPerson("Sara");

const open = async (person: Person, name: string): Promise<Page> => {
  const page = await openPage(browser, await person.link());
  await page.getByRole("navigation", { name: "Spaces" }).getByRole("link", { name }).click();
  await page.getByRole("combobox", { name: `Message to ${name}` }).waitFor();
  return page;
};

const meet = async (name: string, continuity: string): Promise<[Page, Page]> => {
  const model = { provider: "openai-compatible", name, baseUrl: fake.baseUrl };
  const agent = await house.addAgent({ name: `Clerk ${name}`, model, continuity });
  const room = `Room of ${name}`;
  await house.addSpace(room, [husam.id, sara.id, agent]);
  const pages = await Promise.all([open(husam, room), open(sara, room)]);
  await write(pages[0], "when is the rent due?");
  await Promise.all(pages.map((page) => page.locator(".markdown[data-growing=true]", { hasText: "on Fri" }).waitFor()));
  await write(pages[1], correction);
  await Promise.all(pages.map((page) => page.getByRole("article").getByText(correction).waitFor()));
  return pages;
};

const words = (page: Page): Promise<string[]> =>
  page.getByRole("article", { name: "Clerk" }).locator(".markdown").allTextContents();

test("[D4] a consciousness corrected while it speaks corrects itself in the same run", async () => {
  const pages = await meet("mind", "consciousness");
  fake.release();
  await Promise.all(pages.map((page) => page.getByRole("article").getByText(right).waitFor()));
  for (const page of pages) expect(await words(page)).toEqual([wrong.join(""), right]);
});

test("[D4] a timeline agent corrected while it speaks withdraws its message and says it right", async () => {
  const pages = await meet("scribe", "timeline");
  await Promise.all(pages.map((page) => page.getByRole("article").getByText(right).waitFor()));
  for (const page of pages) {
    expect(await words(page)).toEqual([right]);
    expect(await page.locator(".markdown[data-growing=true]").count()).toBe(0);
  }
  expect(fake.requests.find(({ model }) => model === "scribe")?.aborted).toBe(true);
});
