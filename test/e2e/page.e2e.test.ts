import type { BrowserContextOptions, Page, WebSocketRoute } from "playwright-core";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { failures, startFakeOpenAi } from "../support/fake-openai.ts";
import { until } from "../support/node/until.ts";
import { browserForFile, houseForFile } from "./support/for-file.ts";
import type { Person } from "./support/house.ts";
import { shoot } from "./support/page.ts";

/** The page in a real browser with a real server. The rehearsal model speaks at a readable pace. */
const [house, browser] = await Promise.all([houseForFile(), browserForFile()]);
let husam: Person;
let sara: Person;
let spaceId: string;
const pages: Page[] = [];

let count = 0;

beforeEach(async () => {
  count += 1;
  husam = await house.addPerson(`Husam ${count}`);
  sara = await house.addPerson(`Sara ${count}`);
  const model = { provider: "rehearsal", deltasPerSecond: 8 };
  const nova = await house.addAgent({ name: `Nova ${count}`, model });
  await house.addSpace("Side room", [husam.id, sara.id]);
  spaceId = await house.addSpace("Town square", [husam.id, sara.id, nova]);
});

afterEach(async () => {
  await Promise.all(pages.splice(0).map((page) => page.context().close()));
});

/** An empty page, closed after the test. */
const newPage = async (options: BrowserContextOptions = {}): Promise<Page> => {
  const page = await (await browser.newContext(options)).newPage();
  pages.push(page);
  return page;
};

const signIn = async (person: Person, prepare?: (page: Page) => Promise<void>): Promise<Page> => {
  const page = await newPage();
  await prepare?.(page);
  await page.goto(await person.link());
  await enter(page, "Town square");
  return page;
};

const enter = async (page: Page, name: string): Promise<void> => {
  await page.getByRole("navigation", { name: "Spaces" }).getByRole("link", { name }).click();
  await page.getByRole("heading", { level: 1, name }).waitFor();
  await page.getByRole("combobox", { name: `Message to ${name}` }).waitFor();
};

const write = async (page: Page, text: string): Promise<void> => {
  await page.getByRole("combobox").fill(text);
  await page.keyboard.press("Enter");
};

const textsFrom = (page: Page, sender: string) =>
  page.getByRole("article", { name: sender }).locator(".markdown").allTextContents();

/** Records every text that the growing agent's message shows. */
const watchGrowth = (page: Page): Promise<void> =>
  page.evaluate(() => {
    const seen: string[] = [];
    Object.assign(globalThis, { seen });
    new MutationObserver(() => {
      const text = document.querySelector(".markdown[data-growing=true]")?.textContent;
      if (text && text !== seen.at(-1)) seen.push(text);
    }).observe(document.body, { subtree: true, childList: true, characterData: true });
  });

const growth = (page: Page): Promise<string[]> =>
  page.evaluate(() => (globalThis as unknown as { seen: string[] }).seen);

const said = (page: Page, sender: string) =>
  page
    .getByRole("article", { name: new RegExp(`^${sender}, \\d`) })
    .first()
    .waitFor();

const question = "please repeat: one two three four five six seven eight nine ten eleven twelve thirteen fourteen";

test("a message of one person appears to the other without a reload", async () => {
  const [hers, his] = await Promise.all([signIn(sara), signIn(husam)]);
  await write(hers, "good *evening*");
  await Promise.all([said(hers, sara.name), said(his, sara.name)]);
  expect(await textsFrom(his, sara.name)).toEqual(["good evening"]);
  expect(await textsFrom(hers, sara.name)).toEqual(["good evening"]);
});

test("[D4] an agent's message grows on both pages, and ends as one message", async () => {
  const [hers, his] = await Promise.all([signIn(sara), signIn(husam)]);
  await Promise.all([watchGrowth(hers), watchGrowth(his)]);
  const nova = `Nova ${count}`;
  await write(his, `@${nova} ${question}`);
  await Promise.all([said(hers, nova), said(his, nova)]);
  const [final] = await textsFrom(his, nova);
  expect(await textsFrom(his, nova)).toHaveLength(1);
  expect(await textsFrom(hers, nova)).toEqual([final]);
  for (const page of [hers, his]) {
    const steps = await growth(page);
    expect(steps.length).toBeGreaterThan(4);
    for (const [index, text] of steps.entries()) {
      expect(final?.startsWith(text)).toBe(true);
      expect(text.length).toBeGreaterThan(steps[index - 1]?.length ?? 0);
    }
  }
});

test("[D3] a socket that drops during an answer resumes without lost or doubled messages", async () => {
  const lines: WebSocketRoute[] = [];
  const page = await signIn(husam, (one) =>
    one.routeWebSocket(/\/stream(?:\?|$)/, (line) => {
      line.connectToServer();
      lines.push(line);
    }),
  );
  const hers = await signIn(sara);
  const nova = `Nova ${count}`;
  await write(page, `@${nova} ${question}`);
  await page.locator(".markdown[data-growing=true]", { hasText: "three" }).waitFor();
  await lines.at(-1)?.close({ code: 1012, reason: "dropped by the test" });
  await write(page, "written while the line was down");
  await Promise.all([said(page, nova), said(hers, nova)]);
  await hers.getByRole("article").getByText("written while the line was down").waitFor();
  await page.locator(".message[data-dimmed=true]").waitFor({ state: "detached" });
  expect(lines.length).toBeGreaterThan(1);
  expect(await textsFrom(page, husam.name)).toEqual(await textsFrom(hers, husam.name));
  expect(await textsFrom(page, husam.name)).toHaveLength(2);
  expect((await textsFrom(page, nova))[0]).toBe((await textsFrom(hers, nova))[0]);
});

test("what grows in steps between slow frames stays in view; whoever scrolled up is left there", async () => {
  const page = await signIn(husam);
  const list = page.locator(".timeline-list");
  const say = (text: string) => sara.api.post(`/v1/spaces/${spaceId}/messages`, { text });
  const below = () => list.evaluate((one) => one.scrollHeight - one.scrollTop - one.clientHeight);
  for (const name of ["first", "second", "third"]) await say(`The ${name}.\n\n${"A line of its own.\n\n".repeat(12)}`);
  await page.getByRole("article").getByText("The third.").waitFor();
  // A card that grows twice before the list's own scrolling is heard of.
  await list.evaluate(async (one) => {
    const row = one.querySelector<HTMLElement>("[data-item-index]:last-child");
    for (const height of [400, 800, 1200]) {
      if (row) row.style.minHeight = `${height}px`;
      await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
      const until = performance.now() + 80;
      while (performance.now() < until);
    }
  });
  await vi.waitFor(async () => expect(await below()).toBeLessThan(2), { timeout: 5000 });
  expect(await page.locator(".jump").isVisible()).toBe(false);
  // Small steps up count as much as one leap.
  await list.hover();
  for (let times = 0; times < 3; times += 1) await page.mouse.wheel(0, -15);
  await vi.waitFor(async () => expect(await below()).toBeGreaterThan(40));
  const at = await list.evaluate((one) => one.scrollTop);
  await say("One more.");
  await page.locator(".jump").waitFor();
  expect(await list.evaluate((one) => one.scrollTop)).toBe(at);
  await page.locator(".jump").click();
  await page.locator(".jump").waitFor({ state: "detached" });
});

test("an unread count grows with new messages, and goes when they are read", async () => {
  const his = await signIn(husam);
  const hers = await signIn(sara);
  await enter(hers, "Side room");
  await write(hers, "psst");
  const link = his.getByRole("link", { name: "Side room" });
  await link.getByText("1 unread").waitFor({ timeout: 15_000 });
  expect(await his.title()).toMatch(/^\(1\)/);
  await write(hers, "are you there?");
  await link.getByText("2 unread").waitFor({ timeout: 15_000 });
  await enter(his, "Side room");
  await his.getByText("New", { exact: true }).waitFor();
  await link.getByText("unread").waitFor({ state: "detached" });
  await enter(his, "Town square");
  await write(hers, "hello again");
  await link.getByText("1 unread").waitFor();
});

test("a person creates a space with known people, and leaves it", async () => {
  const page = await signIn(husam);
  await page.getByRole("button", { name: "New space" }).click();
  const dialog = page.getByRole("dialog", { name: "New space" });
  await dialog.getByRole("textbox", { name: "Name" }).fill("Book club");
  await dialog.getByRole("checkbox", { name: sara.name }).check();
  await dialog.getByRole("button", { name: "Create" }).click();
  await page.getByRole("heading", { level: 1, name: "Book club" }).waitFor();
  await page.getByText("Nothing said yet").first().waitFor();
  const hers = await signIn(sara);
  await hers.getByRole("link", { name: "Book club" }).waitFor();
  await page.getByRole("button", { name: /^Members/ }).click();
  await page.getByRole("button", { name: "Leave this space" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Leave", exact: true }).click();
  await page.getByRole("link", { name: "Book club" }).waitFor({ state: "detached" });
});

test("an admin sees among the members what of an agent's config cannot work", async () => {
  const tool = { inputSchema: { type: "object" }, executionType: "internal", description: "Checks" };
  const atlas = await house.addAgent({
    name: "Atlas",
    tools: [
      { ...tool, name: "check" },
      { ...tool, name: "pay", confidential: "allowed" },
    ],
    toolRules: [{ rule: "requires_prior", tool: "pay", tools: ["check"] }],
  });
  await house.api.post(`/v1/spaces/${spaceId}/members`, { entityId: atlas });
  await house.api.patch(`/v1/entities/${sara.id}`, { role: "admin" });
  const [hers, his] = [await signIn(sara), await signIn(husam)];
  for (const page of [hers, his]) await page.getByRole("button", { name: /^Members/ }).click();
  await hers.getByText("in confidential spaces each call of pay is refused").waitFor();
  await his.getByText("Atlas", { exact: true }).waitFor();
  expect(await his.getByText("each call of pay is refused").count()).toBe(0);
});

test("[C17] a person makes a space confidential, sees the mark, and says who may release words", async () => {
  const page = await signIn(husam);
  const create = async (name: string, confidential: boolean) => {
    await page.getByRole("button", { name: "New space" }).click();
    const dialog = page.getByRole("dialog", { name: "New space" });
    await dialog.getByRole("textbox", { name: "Name" }).fill(name);
    await dialog.getByRole("checkbox", { name: sara.name }).check();
    if (confidential) await dialog.getByRole("checkbox", { name: "Confidential" }).check();
    await dialog.getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { level: 1, name }).waitFor();
  };
  const mark = page.getByRole("button", { name: "Confidential" });
  await create("Board", true);
  await mark.waitFor();
  await page.getByRole("link", { name: "Confidential: Board" }).waitFor();
  await create("Draft", false);
  await mark.waitFor({ state: "detached" });
  await page.getByRole("button", { name: /^Members/ }).click();
  await page.getByRole("button", { name: "Make it confidential" }).click();
  const warning = page.getByRole("dialog", { name: "Make Draft confidential?" });
  await warning.getByText("This cannot be undone.").waitFor();
  await warning.getByRole("button", { name: "Make it so" }).click();
  await mark.waitFor();
  await page.getByRole("link", { name: "Confidential: Draft" }).waitFor();
  await page.getByText("Nobody can let an agent say it elsewhere.").waitFor();
  await page.getByRole("button", { name: "Who may release words" }).click();
  const release = page.getByRole("dialog", { name: "Who may release words?" });
  await release.getByRole("radio", { name: "Only these" }).check();
  await release.getByRole("checkbox", { name: sara.name }).check();
  await release.getByRole("button", { name: "Save" }).click();
  await page.getByText(`once one person agrees to the exact words: ${sara.name}.`).waitFor();
  await shoot("confidential", page, page);
  const hers = await signIn(sara);
  await enter(hers, "Draft");
  await hers.getByRole("button", { name: "Confidential" }).click();
  await hers.getByText("What is said here stays here").waitFor();
  expect(await hers.getByRole("button", { name: "Who may release words" }).count()).toBe(0);
});

test("[S5] a space's stream ends at once when its person is removed", async () => {
  const live = createClient({ baseUrl: house.url, token: husam.token }).openSpace(spaceId);
  onTestFinished(() => live.close());
  await until(live, ({ connection }) => connection.status === "open");
  await house.api.delete(`/v1/spaces/${spaceId}/members/${husam.id}`);
  // If the client never sent a frame, workerd ends the connection 10 s after the close.
  await until(live, ({ connection }) => connection.status === "closed");
});

test("a message with a mention is written and sent by keyboard alone", async () => {
  const page = await signIn(husam);
  await page.getByRole("combobox").focus();
  await page.keyboard.type("ask @nov");
  await page.getByRole("option", { name: `Nova ${count}` }).waitFor();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Shift+Enter");
  await page.keyboard.type("two lines");
  expect(await page.getByRole("combobox").inputValue()).toBe(`ask @Nova ${count} \ntwo lines`);
  await page.keyboard.press("Enter");
  await said(page, husam.name);
  await page.locator(".mention", { hasText: `@Nova ${count}` }).waitFor();
  expect(await page.getByRole("combobox").inputValue()).toBe("");
});

test("a reply quotes the message that it answers, and leads to it", async () => {
  const [hers, his] = await Promise.all([signIn(sara), signIn(husam)]);
  await write(hers, "who brings the *keys*?");
  const asked = his.getByRole("article", { name: sara.name });
  await asked.hover();
  await asked.getByRole("button", { name: `Reply to ${sara.name}` }).click();
  const strip = his.locator(".reply-strip", { hasText: `Answering ${sara.name}who brings the` });
  await strip.waitFor();
  await his.keyboard.press("Escape");
  await strip.waitFor({ state: "detached" });
  await asked.getByRole("button", { name: `Reply to ${sara.name}` }).focus();
  await his.keyboard.press("Enter");
  await his.reload();
  await strip.waitFor();
  await his.waitForFunction(() => {
    const list = document.querySelector(".timeline-list");
    return list !== null && list.scrollHeight - list.scrollTop - list.clientHeight < 2;
  });
  await write(his, "I do");
  await strip.waitFor({ state: "detached" });
  const answer = hers.getByRole("article", { name: husam.name });
  await answer.getByRole("button", { name: `Answers ${sara.name}` }).click();
  const target = hers.locator(".message[data-target=true]");
  await target.filter({ hasText: "who brings the keys?" }).waitFor();
  await hers.waitForFunction(() => document.activeElement?.matches("[data-target=true]"));
  await hers.getByRole("combobox").focus();
  await target.waitFor({ state: "detached" });
  await write(his, "and you?");
  await hers.getByText("and you?").first().waitFor();
  expect(await his.locator("button.message-quote").count()).toBe(1);
  expect((await sara.api.get<{ items: { replyTo?: string }[] }>(`/v1/spaces/${spaceId}/messages`)).items).toMatchObject(
    [{}, { replyTo: expect.stringMatching(/^msg_/) }, {}],
  );
});

test("[C7] [C8] the page quotes an origin to who is there too, and says what an agent read", async () => {
  const mona = await house.addPerson(`Mona ${count}`);
  const [lobby, board] = [`Lobby ${count}`, `Board ${count}`];
  const scout = await house.addAgent({ name: `Scout ${count}`, model: { provider: "rehearsal", deltasPerSecond: 0 } });
  await house.addSpace(lobby, [husam.id, mona.id, scout]);
  await house.addSpace(board, [sara.id, mona.id, scout]);
  const open = async (person: Person, name: string): Promise<Page> => {
    const page = await newPage();
    await page.goto(await person.link());
    await enter(page, name);
    return page;
  };
  const [his, hers, monas] = [await open(husam, lobby), await open(sara, board), await open(mona, board)];
  await write(his, `@Scout ${count} tell ${board} that lunch is *ready*`);
  const carried = { name: new RegExp(`^Scout ${count}, `) };
  await hers.getByRole("article", carried).getByText("because of a message in another space").waitFor();
  const quotation = `because ${husam.name} said in ${lobby}: “@Scout ${count} tell ${board} that lunch is ready”`;
  await monas.getByRole("article", carried).getByText(quotation).waitFor();
  await his.getByRole("article", carried).getByText("read a space that you are not in").waitFor();
  await enter(monas, lobby);
  await monas.getByRole("article", carried).getByText(`read "${board}"`, { exact: true }).waitFor();
  await shoot("origins", hers, monas);
  await shoot("reads", his, monas);
});

test("a failed router wakes nobody, and the page says so", async () => {
  const fake = await startFakeOpenAi(() => failures.unauthorized("the router's key"));
  onTestFinished(() => fake.stop());
  const router = { model: { provider: "openai-compatible", name: "router", baseUrl: fake.baseUrl } };
  await house.api.patch(`/v1/spaces/${spaceId}`, { wakePolicy: "addressed", router });
  const page = await signIn(husam);
  await write(page, "is anybody there?");
  await page.getByText("The router could not decide who is to answer").waitFor();
  expect(await textsFrom(page, `Nova ${count}`)).toEqual([]);
});

test("on a phone, a tap on a message offers a reply", async () => {
  const page = await newPage({ viewport: { width: 360, height: 640 }, hasTouch: true, isMobile: true });
  await sara.api.post(`/v1/spaces/${spaceId}/messages`, { text: "who brings the keys?" });
  await page.goto(await husam.link());
  await page.getByRole("button", { name: "Show spaces" }).tap();
  await enter(page, "Town square");
  const asked = page.getByRole("article", { name: sara.name });
  await asked.getByText("who brings the keys?").tap();
  await asked.getByRole("button", { name: `Reply to ${sara.name}` }).tap();
  await page.locator(".reply-strip").waitFor();
  await page.getByRole("combobox").fill("I do");
  await page.getByRole("button", { name: "Send" }).tap();
  await page.getByRole("button", { name: `Answers ${sara.name}` }).waitFor();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(360);
});

test("on a phone, the spaces are a drawer, and nothing overflows", async () => {
  const page = await newPage({ viewport: { width: 360, height: 640 } });
  await page.goto(await husam.link());
  await page.getByRole("button", { name: "Show spaces" }).click();
  await enter(page, "Town square");
  await page.getByRole("navigation", { name: "Spaces" }).waitFor({ state: "hidden" });
  await write(page, `a long word: ${"n".repeat(200)}`);
  await said(page, husam.name);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(360);
});

test("on a phone, a long name of a space pushes nothing out of view", async () => {
  const name = "A space whose name is longer than any phone is wide";
  await house.addSpace(name, [husam.id]);
  const page = await newPage({ viewport: { width: 360, height: 640 } });
  await page.goto(await husam.link());
  await page.getByRole("button", { name: "Show spaces" }).click();
  await enter(page, name);
  const { x = 0, width = 0 } = (await page.getByRole("button", { name: "Send" }).boundingBox()) ?? {};
  expect(x + width).toBeLessThan(360);
});
