import type { Locator, Page } from "playwright-core";
import { beforeEach, expect, test } from "vitest";
import { browserForFile, houseForFile, onEach } from "./support/for-file.ts";
import type { Person } from "./support/house.ts";
import { openPage, phone, shoot, write } from "./support/page.ts";

/** A list that an agent keeps with two people, seen and edited by all three at once. */
const [house, browser] = await Promise.all([houseForFile(), browserForFile()]);
const husam = await house.addPerson("Husam");
const sara = await house.addPerson("Sara");
let keeper: string;
let spaceId: string;

const signIn = async (person: Person, options = {}): Promise<Page> => {
  const page = await openPage(browser, await person.link(), options);
  // The page must take the code out of the address before the address changes.
  await page.waitForURL(({ hash }) => !hash.startsWith("#sign-in="));
  return page;
};

const [his, hers] = await Promise.all([signIn(husam), signIn(sara, { viewport: phone })]);
const both = onEach(his, hers);

const openSpace = async (page: Page, name: string): Promise<void> => {
  await page.goto(`${house.url}/#${spaceId}`);
  await page.getByRole("heading", { level: 1, name }).waitFor();
  await page.getByRole("button", { name: "Blocks", exact: true }).click();
  await panelOf(page).waitFor();
};

const panelOf = (page: Page): Locator => page.getByRole("complementary", { name: "Blocks" });
const item = (page: Page, words: string): Locator => panelOf(page).getByRole("checkbox", { name: words, exact: true });

const add = async (page: Page, words: string): Promise<void> => {
  await panelOf(page).getByRole("textbox", { name: "Add to list" }).fill(words);
  await panelOf(page).getByRole("button", { name: "Add to list" }).click();
};

/** The list's value at the server. */
const stored = async (): Promise<unknown> =>
  (await house.api.get<{ value: unknown }>(`/v1/agents/${keeper}/blocks/list`)).value;

let count = 0;

beforeEach(async () => {
  count += 1;
  const model = { provider: "rehearsal", deltasPerSecond: 30 };
  keeper = await house.addAgent({ name: `Keeper ${count}`, model });
  const name = `Kitchen ${count}`;
  spaceId = await house.addSpace(name, [husam.id, sara.id, keeper]);
  await both((page) => openSpace(page, name));
});

const say = (page: Page, text: string): Promise<void> => write(page, `@Keeper ${count} ${text}`);

test("a list that an agent begins appears in the panel, and all three change it live", async () => {
  await both((page) => panelOf(page).getByText("Nothing is kept together here yet").waitFor());
  await panelOf(hers).getByRole("button", { name: "Close blocks" }).click();
  await say(hers, "add milk and dates to the list");
  await hers.getByRole("button", { name: "Blocks", exact: true }).click();
  await both((page) => item(page, "dates").waitFor());
  await add(his, "tea");
  await item(hers, "tea").waitFor();
  await item(hers, "milk").check();
  await panelOf(his).getByRole("checkbox", { name: "milk", exact: true, checked: true }).waitFor();
  await say(his, "cross off dates");
  await both((page) => panelOf(page).getByRole("checkbox", { name: "dates", exact: true, checked: true }).waitFor());
  await shoot("list", his, hers);
  await say(his, "what is on the list?");
  await his.getByText("On the list: tea. Crossed off: milk, dates.").first().waitFor();
  expect(await hers.evaluate(() => document.documentElement.scrollWidth)).toBe(phone.width);
});

test("[D1] simultaneous changes of a person and an agent are merged, and none is lost", async () => {
  await say(his, "add milk, bread and rice to the list");
  await both((page) => item(page, "rice").waitFor());
  // Her edit is held back until the agent has added an item.
  let letGo: () => void = () => undefined;
  const agentIsDone = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  await hers.route("**/operations", async (route) => {
    await agentIsDone;
    await route.continue();
  });
  await panelOf(hers)
    .getByRole("button", { name: /^Item 2: bread/ })
    .click();
  await hers.keyboard.type("dark bread");
  await hers.keyboard.press("Enter");
  await item(hers, "dark bread").waitFor();
  await say(his, "add tea to the list");
  await item(his, "tea").waitFor();
  // An item before hers moves hers to another index.
  const eggs = { op: "insert_item", index: 0, item: { text: "eggs", done: false } };
  await house.api.post(`/v1/agents/${keeper}/blocks/list/operations`, { operations: [eggs] });
  await item(his, "eggs").waitFor();
  letGo();
  const merged = ["eggs", "milk", "dark bread", "rice", "tea"];
  for (const words of merged) await both((page) => item(page, words).waitFor());
  await both(async (page) => expect(await panelOf(page).getByRole("checkbox").count()).toBe(merged.length));
  expect(await stored()).toEqual(merged.map((text) => ({ text, done: false })));
  await panelOf(his).getByRole("button", { name: "History" }).click();
  const history = panelOf(his).getByRole("region", { name: "History" });
  await history.getByText("Sara changed an item").waitFor();
  await history.getByText(`Keeper ${count} added an item`).waitFor();
  await shoot("merged", his, hers);
  await hers.unroute("**/operations");
});

test("a refused edit shows its reason and text, and survives another person's undo", async () => {
  await say(his, "add milk to the list");
  await both((page) => item(page, "milk").waitFor());
  await add(hers, "x".repeat(6000));
  const refused = panelOf(hers).getByRole("alert");
  await refused.getByText("was not stored").waitFor();
  expect(await refused.textContent()).toContain("x".repeat(6000));
  await shoot("refused", his, hers);
  await add(hers, "tea");
  await item(his, "tea").waitFor();
  await add(his, "rice");
  await item(hers, "rice").waitFor();
  await panelOf(hers).getByRole("button", { name: "Undo your last change" }).click();
  await both((page) => item(page, "tea").waitFor({ state: "detached" }));
  await both((page) => item(page, "rice").waitFor());
  await refused.getByRole("button", { name: "Discard" }).click();
  await refused.getByText("was not stored").waitFor({ state: "detached" });
});

test("a list is edited by keyboard alone", async () => {
  await say(his, "add milk and bread to the list");
  await item(his, "bread").focus();
  await his.keyboard.press("Space");
  await panelOf(hers).getByRole("checkbox", { name: "bread", checked: true }).waitFor();
  await his.keyboard.press("Tab");
  await his.keyboard.press("Enter");
  await his.keyboard.type("rye");
  await his.keyboard.press("Escape");
  await item(his, "bread").waitFor();
  await his.keyboard.press("Enter");
  await his.keyboard.type("rye bread");
  await his.keyboard.press("Enter");
  await item(hers, "rye bread").waitFor();
  await his.waitForFunction(() => document.activeElement?.matches(".inline-edit"));
  await his.keyboard.press("Escape");
  await panelOf(his).waitFor({ state: "detached" });
});

test("[S5] a list that is no longer shared closes on open pages", async () => {
  await say(his, "add milk to the list");
  await both((page) => item(page, "milk").waitFor());
  await house.api.delete(`/v1/agents/${keeper}/blocks/list/spaces/${spaceId}`);
  await both((page) => panelOf(page).getByText("not shared with this space any more").waitFor());
  // After the agent does something else, the page requests the list of blocks again.
  await say(his, "what do you keep?");
  await both((page) => panelOf(page).getByRole("button", { name: "All blocks" }).waitFor());
  await both((page) => panelOf(page).getByText("not shared with this space any more").waitFor());
  await both(async (page) => expect(await item(page, "milk").isDisabled()).toBe(true));
});
