import type { BrowserContextOptions, Locator, Page } from "playwright-core";
import { expect, test, vi } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { browserForFile, houseForFile, onEach } from "./support/for-file.ts";
import type { Person } from "./support/house.ts";
import { openPage, phone, shoot, write } from "./support/page.ts";

/** A day in one space with an agent of each of the four kinds, as two people see it in the page. */
const [house, browser] = await Promise.all([houseForFile(), browserForFile()]);

const kinds = {
  Sage: { continuity: "consciousness", messaging: "simple" },
  Consul: { continuity: "consciousness", messaging: "threaded" },
  Clerk: { continuity: "timeline", messaging: "simple" },
  Envoy: { continuity: "timeline", messaging: "threaded" },
} as const;

const signIn = async (person: Person, options: BrowserContextOptions = {}): Promise<Page> => {
  const page = await openPage(browser, await person.link(), options);
  if (options.viewport) await page.getByRole("button", { name: "Show spaces" }).click();
  await page.getByRole("navigation", { name: "Spaces" }).getByRole("link", { name: "The office" }).click();
  await page.getByRole("heading", { level: 1, name: "The office" }).waitFor();
  return page;
};

const husam = await house.addPerson("Husam");
const sara = await house.addPerson("Sara");
const model = { provider: "rehearsal", deltasPerSecond: 20 };
const agents: string[] = [];
for (const [name, kind] of Object.entries(kinds)) agents.push(await house.addAgent({ name, model, ...kind }));
const spaceId = await house.addSpace("The office", [husam.id, sara.id, ...agents]);
const his = await signIn(husam);
const hers = await signIn(sara, { viewport: phone });
const both = onEach(his, hers);

const said = (page: Page, sender: string, text: string | RegExp): Locator =>
  page.getByRole("article", { name: new RegExp(`^${sender}, \\d`) }).filter({ hasText: text });

const seenByBoth = (sender: string, text: string | RegExp) =>
  both((page) => said(page, sender, text).first().waitFor());

test.each(Object.keys(kinds))("%s answers a person, and both see it", async (name) => {
  await write(his, `@${name} say the office is open`);
  await seenByBoth(name, /the office is open/i);
});

test("[R6] a plan that a person asks for comes due in the space where it was asked", async () => {
  await write(hers, "@Sage remind us in 2 seconds to water the plants");
  await seenByBoth("Sage", "in 2 seconds");
  await seenByBoth("Sage", "water the plants");
});

test("the page shows whom an agent waits for, until that person answers", async () => {
  await write(his, "@Envoy ask Sara is the room booked?");
  await seenByBoth("Envoy", "is the room booked?");
  await both((page) => page.getByText("waits for Sara").first().waitFor());
  await his.locator(".presence", { hasText: "Envoy is waiting for Sara" }).waitFor();
  await shoot("waiting", his, hers);
  await write(hers, "yes, from nine");
  await seenByBoth("Envoy", "Sara said: yes, from nine");
  await both((page) => page.getByText("waits for Sara").waitFor({ state: "detached" }));
  await shoot("answered", his, hers);
});

test("a silent agent shows as a reader of the message, on the page and in the client", async () => {
  await write(hers, "I will be back at noon.");
  const message = said(his, "Sara", "back at noon");
  await message.waitFor();
  const readers = message.getByRole("img", { name: /Read by .*Clerk.*said nothing/ });
  await readers.waitFor();
  const client = createClient({ baseUrl: house.url, token: husam.token });
  const { items } = await client.listMessages(spaceId, { limit: 1 });
  await vi.waitFor(
    async () => {
      const reads = await client.listReads(spaceId, items[0]?.id ?? "");
      const agents = reads.filter(({ entityId }) => entityId !== husam.id);
      expect(agents.map(({ outcome }) => outcome)).toEqual(["silent", "silent", "silent", "silent"]);
    },
    { timeout: 10_000, interval: 50 },
  );
  await shoot("read", his, hers);
});

test("the next input of each kind of agent can be read, with its limits", async () => {
  const { items } = await house.api.get<{ items: { id: string; name: string }[] }>("/v1/agents");
  for (const { id, name } of items) {
    const context = await house.api.get<{ instructions: string; limits: { model: string } }>(
      `/v1/agents/${id}/context`,
    );
    expect(context.instructions).toContain(name);
    expect(context.limits.model).toBe("rehearsal");
  }
  expect(await hers.evaluate(() => document.documentElement.scrollWidth)).toBe(phone.width);
});
