import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { browserForFile, houseForFile, modelForFile } from "./support/for-file.ts";
import { openPage } from "./support/page.ts";

/** Three people in one space, each in a browser of their own, while an agent answers one of them. */
const words = Array.from({ length: 50 }, (_, index) => `word${index} `);
const answer = words.join("").trim();

const [house, browser, fake] = await Promise.all([houseForFile(), browserForFile(), modelForFile()]);

/** Records each text that the growing message shows. */
const watch = (page: Page): Promise<void> =>
  page.evaluate(() => {
    const growth: string[] = [];
    Object.assign(globalThis, { growth });
    new MutationObserver(() => {
      const text = document.querySelector(".markdown[data-growing=true]")?.textContent?.trim();
      if (text && text !== growth.at(-1)) growth.push(text);
    }).observe(document.body, { subtree: true, childList: true, characterData: true });
  });

const growthIn = (page: Page): Promise<string[]> =>
  page.evaluate(() => (globalThis as unknown as { growth: string[] }).growth);

test("[D4] an agent's message grows at the same time in three browsers, to the same end", async () => {
  const people = await Promise.all(["Husam", "Sara", "Lina"].map((name) => house.addPerson(name)));
  const model = { provider: "openai-compatible", name: "slow", baseUrl: fake.baseUrl };
  const nova = await house.addAgent({ name: "Nova", model });
  const spaceId = await house.addSpace("Town square", [...people.map(({ id }) => id), nova]);
  fake.script([
    { toolCalls: [{ name: "enter_space", arguments: { spaceId } }] },
    { toolCalls: [{ name: "send_message", arguments: ['{"text":"', ...words, '"}'] }], delayMs: 40, holdAfter: 30 },
    { text: "That was all." },
  ]);
  const pages = await Promise.all(
    people.map(async ({ link: newLink }) => {
      const page = await openPage(browser, await newLink());
      await page.getByRole("heading", { level: 1, name: "Town square" }).waitFor();
      await page.getByRole("combobox", { name: "Message to Town square" }).waitFor();
      await watch(page);
      return page;
    }),
  );
  await people[0]?.api.post(`/v1/spaces/${spaceId}/messages`, { text: "@Nova what is new?" });
  // At the same time: each browser shows words while the model still holds the last ones back.
  const growing = pages.map((page) => page.locator(".markdown[data-growing=true]"));
  await Promise.all(growing.map((message) => message.filter({ hasText: "word20" }).waitFor()));
  fake.release();
  const articles = pages.map((page) => page.getByRole("article", { name: /^Nova, \d/ }).locator(".markdown"));
  await Promise.all(articles.map((article) => article.filter({ hasText: "word49" }).waitFor()));

  for (const article of articles)
    expect((await article.allTextContents()).map((text) => text.trim())).toEqual([answer]);
  for (const growth of await Promise.all(pages.map(growthIn))) {
    expect(growth.length).toBeGreaterThan(10);
    for (const text of growth) expect(answer.startsWith(text)).toBe(true);
  }
});
