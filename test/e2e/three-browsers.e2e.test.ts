import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { browserForFile, houseForFile, modelForFile } from "./support/for-file.ts";
import { openPage } from "./support/page.ts";

/** Three people in one space, each in a browser of their own, while an agent answers one of them. */
const words = Array.from({ length: 50 }, (_, index) => `word${index} `);
const answer = words.join("").trim();

const [house, browser, fake] = await Promise.all([houseForFile(), browserForFile(), modelForFile()]);

type Growth = { at: number; text: string }[];

/** Records each text that the growing message shows, and when. */
const watch = (page: Page): Promise<void> =>
  page.evaluate(() => {
    const growth: { at: number; text: string }[] = [];
    Object.assign(globalThis, { growth });
    new MutationObserver(() => {
      const text = document.querySelector(".markdown[data-growing=true]")?.textContent?.trim();
      if (text && text !== growth.at(-1)?.text) growth.push({ at: performance.timeOrigin + performance.now(), text });
    }).observe(document.body, { subtree: true, childList: true, characterData: true });
  });

const growthIn = (page: Page): Promise<Growth> =>
  page.evaluate(() => (globalThis as unknown as { growth: Growth }).growth);

test("[D4] an agent's message grows at the same time in three browsers, to the same end", async () => {
  const people = await Promise.all(["Husam", "Sara", "Lina"].map((name) => house.addPerson(name)));
  const model = { provider: "openai-compatible", name: "slow", baseUrl: fake.baseUrl };
  const nova = await house.addAgent({ name: "Nova", model });
  const spaceId = await house.addSpace("Town square", [...people.map(({ id }) => id), nova]);
  fake.script([
    { toolCalls: [{ name: "enter_space", arguments: { spaceId } }] },
    { toolCalls: [{ name: "send_message", arguments: ['{"text":"', ...words, '"}'] }], delayMs: 40 },
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
  const articles = pages.map((page) => page.getByRole("article", { name: /^Nova, \d/ }).locator(".markdown"));
  await Promise.all(articles.map((article) => article.filter({ hasText: "word49" }).waitFor()));

  for (const article of articles)
    expect((await article.allTextContents()).map((text) => text.trim())).toEqual([answer]);
  const growths = await Promise.all(pages.map(growthIn));
  for (const growth of growths) {
    expect(growth.length).toBeGreaterThan(10);
    for (const { text } of growth) expect(answer.startsWith(text)).toBe(true);
  }
  // At the same time: when the last browser showed its first words, no browser was near the end.
  const allBegan = Math.max(...growths.map((growth) => growth[0]?.at ?? Number.NaN));
  const firstEnded = Math.min(...growths.map((growth) => growth.at(-1)?.at ?? Number.NaN));
  const tookMs = Math.max(...growths.map((growth) => (growth.at(-1)?.at ?? 0) - (growth[0]?.at ?? 0)));
  expect(firstEnded - allBegan).toBeGreaterThan(tookMs / 2);
});
