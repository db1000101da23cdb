import { readFileSync } from "node:fs";
import type { Page, WebSocketRoute } from "playwright-core";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { browserForFile, houseForFile } from "./support/for-file.ts";
import type { Person } from "./support/house.ts";

/** Signing in to the page: by a link, once, into a session that no script reads and no link replaces. */
const [house, browser] = await Promise.all([houseForFile(), browserForFile()]);
let ada: Person;
let bob: Person;
let spaceId: string;
let count = 0;

beforeEach(async () => {
  count += 1;
  ada = await house.addPerson(`Ada ${count}`);
  bob = await house.addPerson(`Bob ${count}`);
  spaceId = await house.addSpace("Town square", [ada.id, bob.id]);
});

/** What a page refused or failed at, as its console tells. */
const troubles: string[] = [];

const open = async (link: string, beside?: Page, prepare?: (page: Page) => Promise<unknown>): Promise<Page> => {
  const context = beside?.context() ?? (await browser.newContext());
  if (!beside) onTestFinished(() => context.close());
  const page = await context.newPage();
  await prepare?.(page);
  page.on("console", (line) => line.type() === "error" && troubles.push(line.text()));
  await page.goto(link);
  return page;
};

const seesAs = (page: Page, person: Person) => page.getByText(person.name, { exact: true }).first().waitFor();
const enter = async (page: Page): Promise<void> => {
  await page.getByRole("navigation", { name: "Spaces" }).getByRole("link", { name: "Town square" }).click();
  await page.getByRole("combobox", { name: "Message to Town square" }).waitFor();
};
const say = async (page: Page, text: string): Promise<void> => {
  await page.getByRole("combobox").fill(text);
  await page.keyboard.press("Enter");
};
const signInPage = (page: Page) => page.getByRole("heading", { name: "Sign in with your link" }).waitFor();
const sender = async (text: string): Promise<string | undefined> => {
  type Said = { items: { sender: { id: string }; text: string }[] };
  const { items } = await ada.api.get<Said>(`/v1/spaces/${spaceId}/messages`);
  return items.find((message) => message.text === text)?.sender.id;
};

test("[C14] a link signs in, and leaves nothing in the address or within reach of a script", async () => {
  const page = await open(await ada.link());
  await enter(page);
  expect(page.url()).toBe(`${house.url}/#${spaceId}`);
  await seesAs(page, ada);
  await say(page, "over the socket");
  await page.getByRole("article", { name: ada.name }).getByText("over the socket").waitFor();
  const readable = await page.evaluate(async () => {
    const databases = await indexedDB.databases();
    return JSON.stringify([document.cookie, { ...localStorage }, { ...sessionStorage }, location.href, databases]);
  });
  const [cookie] = await page.context().cookies();
  expect(cookie).toMatchObject({ name: "colloquy_session", httpOnly: true, sameSite: "Strict", path: "/" });
  expect(readable).not.toContain(cookie?.value);
  expect(readable).not.toMatch(/eyJ|si_wsp|sk_wsp/);
  await page.reload();
  await page.getByRole("heading", { level: 1, name: "Town square" }).waitFor();
  expect(troubles).toEqual([]);
  await page.getByRole("button", { name: "Sign out" }).click();
  await signInPage(page);
  expect(await page.context().cookies()).toEqual([]);
  await page.reload();
  await signInPage(page);
  // The page keeps to its policy: its own socket, no inline styles or scripts. Requests during the sign-out may be
  // refused.
  expect(troubles.filter((line) => !line.includes("401"))).toEqual([]);
});

test("[C14] [C15] the page and its scripts come with the headers that its rules name", async () => {
  const rules = readFileSync(new URL("../../src/web/public/_headers", import.meta.url), "utf8");
  const named = [...rules.matchAll(/^ +([\w-]+): (.+)$/gm)].map(([, name = "", value = ""]) => [name, value]);
  const page = await (await fetch(house.url)).text();
  const scripts = [...page.matchAll(/<script[^>]* src="([^"]+)"/g)].map(([, path = ""]) => path);
  expect(scripts).toContain("/theme.js");
  expect(page).not.toMatch(/<script(?![^>]* src=)|<style| style=/);
  for (const path of ["/", ...scripts]) {
    const { headers } = await fetch(new URL(path, house.url));
    expect([path, ...named.map(([name = ""]) => [name, headers.get(name)])]).toEqual([path, ...named]);
  }
});

test("[C14] a used link signs nobody in, and says why; a new one is pasted", async () => {
  const link = await ada.link();
  await open(link).then((page) => seesAs(page, ada));
  const page = await open(link);
  await page.getByRole("alert").filter({ hasText: "a link works once" }).waitFor();
  await page.getByRole("textbox", { name: "Link" }).fill("https://example.com/");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").filter({ hasText: "not a sign-in link" }).waitFor();
  await page.getByRole("textbox", { name: "Link" }).fill(` ${await ada.link()} `);
  await page.getByRole("button", { name: "Sign in" }).click();
  await seesAs(page, ada);
});

/** Takes the browser's session from whoever has it, in another tab. */
const takeOver = async (page: Page, person: Person): Promise<void> => {
  await page.goto("about:blank");
  await page.goto(await person.link());
  await page.getByRole("button", { name: "Sign in instead" }).click();
  await seesAs(page, person);
};

test("[C14] a link asks before it takes another's session, and no tab follows unasked", async () => {
  const link = await bob.link();
  const first = await open(await ada.link());
  await enter(first);
  const second = await open(link, first);
  const dialog = second.getByRole("dialog", { name: "Sign in by this link?" });
  await dialog.getByText(`You are signed in as ${ada.name}. Sign in as ${bob.name} instead?`).waitFor();
  await dialog.getByRole("button", { name: "Stay" }).click();
  await dialog.waitFor({ state: "detached" });
  await seesAs(second, ada);
  await say(first, "still Ada");
  await expect.poll(() => sender("still Ada")).toBe(ada.id);

  // The link was not used up by the question.
  await second.goto("about:blank");
  await second.goto(link);
  await dialog.getByRole("button", { name: "Sign in instead" }).click();
  await seesAs(second, bob);
  const notice = first.getByRole("alert").filter({ hasText: `signed in as ${bob.name} now` });
  await notice.waitFor();
  expect(await first.getByRole("combobox").isDisabled()).toBe(true);
  // Signing out on the page of somebody who is no longer signed in signs nobody else out.
  await first.getByRole("button", { name: "Sign out" }).click();
  await notice.getByRole("button", { name: `Go on as ${bob.name}` }).click();
  await notice.waitFor({ state: "detached" });
  await enter(first);
  await say(first, "now Bob");
  await expect.poll(() => sender("now Bob")).toBe(bob.id);
});

test("[C14] [D1] what waits is never sent as who has signed in meanwhile, and is kept", async () => {
  const lines: WebSocketRoute[] = [];
  let isDead = false;
  // This tab is told nothing by the others, as one that slept.
  const first = await open(await ada.link(), undefined, async (page) => {
    await page.addInitScript(() => Reflect.deleteProperty(globalThis, "BroadcastChannel"));
    await page.routeWebSocket(/\/stream(?:\?|$)/, (line) => {
      const server = line.connectToServer();
      line.onMessage((frame) => isDead || server.send(frame));
      lines.push(line);
    });
  });
  await enter(first);
  await say(first, "before");
  await expect.poll(() => sender("before")).toBe(ada.id);
  isDead = true;
  await say(first, "for Ada's mouth only");
  await first.getByText("for Ada's mouth only").waitFor();
  await first.getByRole("combobox").fill("a draft of Ada");
  const second = await open(house.url, first);
  await takeOver(second, bob);
  isDead = false;
  await Promise.all(lines.map((line) => line.close()));

  await first
    .getByRole("alert")
    .filter({ hasText: `signed in as ${bob.name} now` })
    .waitFor();
  await enter(second);
  await say(second, "Bob's own");
  await expect.poll(() => sender("Bob's own")).toBe(bob.id);
  expect(await sender("for Ada's mouth only")).toBeUndefined();
  await takeOver(second, ada);
  await expect.poll(() => sender("for Ada's mouth only"), { timeout: 20_000 }).toBe(ada.id);
  await first.getByText("signed in as").waitFor({ state: "detached" });
  expect(await first.getByRole("combobox").inputValue()).toBe("a draft of Ada");
});

test("[C14] [D1] what waits to be sent is kept through a sign-out, and sent as its own person", async () => {
  let isDead = false;
  const first = await open(await ada.link(), undefined, (page) =>
    page.routeWebSocket(/\/stream(?:\?|$)/, (line) => {
      const server = line.connectToServer();
      line.onMessage((frame) => isDead || server.send(frame));
    }),
  );
  await enter(first);
  isDead = true;
  await say(first, "Ada's, not sent yet");
  await first.getByText("Ada's, not sent yet").waitFor();
  const second = await open(house.url, first);
  await second.getByRole("button", { name: "Sign out" }).click();
  await signInPage(first);
  isDead = false;
  const signInAs = async (person: Person, own: string) => {
    await first.goto(await person.link());
    await enter(first);
    await say(first, own);
    await expect.poll(() => sender(own)).toBe(person.id);
  };
  await signInAs(bob, "Bob's own");
  expect(await sender("Ada's, not sent yet")).toBeUndefined();
  await first.getByRole("button", { name: "Sign out" }).click();
  await signInPage(first);
  await signInAs(ada, "Ada is back");
  await expect.poll(() => sender("Ada's, not sent yet")).toBe(ada.id);
});

test("[C14] [S5] signing out in one tab ends the session in every other, told of it or not", async () => {
  const deaf = (page: Page) => page.addInitScript(() => Reflect.deleteProperty(globalThis, "BroadcastChannel"));
  const first = await open(await ada.link(), undefined, deaf);
  await enter(first);
  const [cookie] = await first.context().cookies();
  const second = await open(house.url, first);
  const third = await open(house.url, first);
  await enter(third);
  await second.getByRole("button", { name: "Sign out" }).click();
  await Promise.all([signInPage(second), signInPage(third)]);
  await signInPage(first);
  // Somebody has copied the cookie before.
  const headers = { cookie: `${cookie?.name}=${cookie?.value}` };
  expect((await fetch(`${house.url}/v1/spaces`, { headers })).status).toBe(401);
  expect(
    (await fetch(`${house.url}/v1/spaces`, { headers: { authorization: `Bearer ${cookie?.value}` } })).status,
  ).toBe(401);
});

test("[C3] [L7] an admin copies a link for a person, who sees that and signs out everywhere", async () => {
  const boss = await house.addPerson(`Boss ${count}`);
  await house.api.patch(`/v1/entities/${boss.id}`, { role: "admin" });
  await house.api.post(`/v1/spaces/${spaceId}/members`, { entityId: boss.id });
  const [page, phone] = [await open(await boss.link()), await open(await ada.link())];
  await enter(phone);
  await enter(page);
  await page
    .getByRole("button", { name: /members/i })
    .first()
    .click();
  const row = page.getByRole("listitem").filter({ hasText: ada.name });
  await row.getByRole("button", { name: "Sign-in link" }).click();
  await page.getByRole("button", { name: "Make a link" }).click();
  const link = await page.getByRole("textbox", { name: "Link" }).inputValue();
  const made = await open(link);
  await made.getByText(`Signed in by ${boss.name}: you approve nothing`).waitFor();
  await phone.getByRole("button", { name: "End all sessions" }).click();
  await phone.getByRole("dialog").getByRole("button", { name: "Sign out everywhere" }).click();
  await Promise.all([signInPage(phone), signInPage(made)]);
});
