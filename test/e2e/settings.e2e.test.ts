import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type { BrowserContextOptions, Page } from "playwright-core";
import { expect, onTestFinished, test, vi } from "vitest";
import * as z from "zod";
import { createApi } from "../../scripts/api.ts";
import { browserForFile, houseForFile } from "./support/for-file.ts";
import type { Person } from "./support/house.ts";
import { openPage, phone, shoot } from "./support/page.ts";

/** What an admin sets, reads and erases on the page, in light on a desktop and in dark on a phone. */
const [house, browser] = await Promise.all([houseForFile(), browserForFile()]);

const [boss, mona, sara] = [
  await house.addPerson("Boss"),
  await house.addPerson("Mona"),
  await house.addPerson("Sara"),
];
await house.api.patch(`/v1/entities/${boss.id}`, { role: "admin" });
const agent = await house.addAgent({ name: "Scribe", model: { provider: "rehearsal", deltasPerSecond: 0 } });
const spaceId = await house.addSpace("Orchard", [boss.id, mona.id, sara.id, agent]);

const enter = async (person: Person, options: BrowserContextOptions = {}): Promise<Page> => {
  const page = await openPage(browser, await person.link(), options);
  onTestFinished(() => page.context().close());
  if (options.viewport) await page.getByRole("button", { name: "Show spaces" }).click();
  await page.getByRole("navigation", { name: "Spaces" }).getByRole("link", { name: "Orchard" }).waitFor();
  return page;
};

const openSettings = async (page: Page): Promise<void> => {
  await page.getByRole("link", { name: "Workspace" }).click();
  await page.getByRole("heading", { level: 1, name: "Test" }).waitFor();
};

const say = (person: Person, where: string, text: string) => person.api.post(`/v1/spaces/${where}/messages`, { text });

const onPhone = { viewport: phone, colorScheme: "dark" } as const;

test("[L15] an admin reads what was used, by day and by person, and what there is room for", async () => {
  const attic = await house.addSpace("Attic", [mona.id, sara.id]);
  for (const text of ["One", "Two"]) await say(mona, attic, text);
  await say(sara, attic, "Three");
  // A space tells what it was used for as it is deleted, and else within a minute.
  await house.api.delete(`/v1/spaces/${attic}`);
  const [page, small] = [await enter(boss), await enter(boss, onPhone)];
  for (const each of [page, small]) {
    await openSettings(each);
    const table = each.getByRole("table");
    await table.getByRole("row", { name: /^The whole workspace 0 0 3$/ }).waitFor();
    await each.getByRole("combobox", { name: "By" }).selectOption("person or service");
    await table.getByRole("row", { name: "Mona 0 0 2" }).waitFor();
    await table.getByRole("row", { name: "Sara 0 0 1" }).waitFor();
    await each.getByText("People and services3").first().waitFor();
  }
  await shoot("settings", page, small);
  expect(await small.evaluate(() => document.documentElement.scrollWidth)).toBe(phone.width);
  await page.getByRole("button", { name: "Close the workspace" }).click();
  await page.getByRole("heading", { level: 1, name: "Orchard" }).waitFor();
});

const Config = z.object({
  mcpServers: z.object({ colloquy: z.object({ url: z.string(), headers: z.record(z.string(), z.string()) }) }),
});

test("[M1] the config that the page shows connects an assistant", async () => {
  const configFor = async (page: Page) =>
    Config.parse(JSON.parse(await page.getByRole("textbox", { name: "Config" }).inputValue())).mcpServers.colloquy;
  const [page, small] = [await enter(boss), await enter(sara, onPhone)];
  for (const each of [page, small]) await each.getByRole("button", { name: "Connect an assistant" }).click();
  await small.getByText(`a token of ${sara.id}`).waitFor();
  expect((await configFor(small)).headers).toEqual({ Authorization: "Bearer TOKEN" });
  await page.getByRole("button", { name: "Make a token" }).click();
  await page.getByRole("button", { name: "Done" }).waitFor();
  await shoot("assistant", page, small);
  const { url, headers } = await configFor(page);
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: "auto" } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  expect(JSON.stringify(await client.callTool({ name: "list_spaces", arguments: {} }))).toContain("Orchard");
  await client.close();
});

test("[L15] who is no admin finds no workspace to set", async () => {
  const page = await enter(sara);
  await page.getByText("Sara", { exact: true }).first().waitFor();
  expect(await page.getByRole("link", { name: "Workspace" }).count()).toBe(0);
  await page.goto(`${house.url}/#workspace`);
  await page.getByRole("alert").filter({ hasText: "admin" }).waitFor();
});

test("[L18] an admin sets how long messages stay, in the workspace and in a space", async () => {
  const page = await enter(boss);
  await openSettings(page);
  await page.getByText("Messages stay for ever.").waitFor();
  await page.getByRole("button", { name: "Change" }).click();
  await page.getByRole("spinbutton", { name: "Days that messages stay" }).fill("365");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Messages are deleted 365 days after they were said.").waitFor();
  await page.getByRole("link", { name: "Orchard" }).click();
  await page.getByRole("button", { name: "Members, 4" }).click();
  await page.getByRole("button", { name: "How long messages stay" }).click();
  await page.getByText("as the workspace says").waitFor();
  await page.getByRole("spinbutton", { name: "Days that messages stay" }).fill("30");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Messages are deleted 30 days after they were said.").waitFor();
  type Kept = { space: { retentionDays?: number; workspaceRetentionDays?: number } };
  const { space } = await house.api.get<Kept>(`/v1/spaces/${spaceId}`);
  expect(space).toMatchObject({ retentionDays: 30, workspaceRetentionDays: 365 });
});

test("[L17] an admin sees which agents and spaces near the end of their storage", async () => {
  const roomy = await house.addSpace("Barn", [boss.id]);
  const page = await enter(boss);
  // No test stores gigabytes: the server's own answers are given other figures.
  const tell = (path: string, change: (answer: Record<string, Record<string, unknown>>) => object) =>
    page.route(`**/v1/${path}`, async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: change(await response.json()) });
    });
  const near = { bytes: 6.9e9, maxBytes: 8.5e9, state: "near" };
  const full = { bytes: 8.5e9, maxBytes: 8.5e9, state: "full" };
  const act = { at: new Date().toISOString(), action: "storage.near", actor: { id: "workspace" }, detail: {} };
  const targets = [agent, spaceId, roomy, agent, house.workspaceId];
  await tell("workspace/audit?action=storage.near*", () => ({
    items: targets.map((target) => ({ ...act, target })),
    nextCursor: null,
  }));
  await tell(`agents/${agent}`, ({ agent: told }) => ({
    agent: { ...told, activity: { ...(told?.activity as object), storage: near } },
  }));
  await tell(`spaces/${spaceId}`, ({ space }) => ({ space: { ...space, storage: full } }));
  await openSettings(page);
  const told = page.locator("section", { hasText: "What it may use" }).getByRole("paragraph");
  await vi.waitFor(async () =>
    expect(await told.allTextContents()).toEqual([
      "Scribe Stores 6.9 GB of 8.5 GB: once it is full, what is new is refused.",
      "Orchard Stores 8.5 GB of 8.5 GB, or its workspace is full: what is new is refused until something is deleted.",
    ]),
  );
});

test("[L16] an admin erases a person, is told what cannot be known, and reads the report", async () => {
  await say(mona, spaceId, "the quinces are ripe");
  const [page, small] = [await enter(boss), await enter(boss, onPhone)];
  await page.getByRole("link", { name: "Orchard" }).click();
  await page.locator(".markdown", { hasText: "the quinces are ripe" }).waitFor();
  for (const each of [page, small]) {
    await openSettings(each);
    await each.getByRole("searchbox", { name: "Find a person or a service" }).fill("mona");
    await each.getByRole("button", { name: "Erase Mona" }).click();
    await each.getByText("what models wrote in words of their own").waitFor();
  }
  await shoot("erase", page, small);
  await small.getByRole("button", { name: "Keep them" }).click();
  await page.getByRole("button", { name: "Erase for good" }).click();
  const report = page.getByRole("dialog", { name: "Erased: Mona" });
  await report.getByText("all that may have held something have let it go").waitFor();
  await report.getByText("objects visited, 0 left").waitFor();
  await report.getByText("What a model wrote in its own words").waitFor();
  await small.reload();
  await small.getByRole("button", { name: "Report" }).click();
  await small.getByRole("dialog", { name: "Erased: a person" }).waitFor();
  await shoot("erased", page, small);
  await report.getByRole("button", { name: "Done" }).click();
  await page.getByText("Nobody is found.").waitFor();
  await page.getByRole("searchbox").fill("");
  await page.getByRole("button", { name: "Erase Sara" }).waitFor();
  expect(await page.getByRole("button", { name: "Erase Mona" }).count()).toBe(0);
  await page.getByRole("link", { name: "Orchard" }).click();
  await page.getByText("Message deleted").first().waitFor();
  expect(await page.getByText("the quinces are ripe").count()).toBe(0);
});

test("[L6] who is in a suspended workspace is told so, reads what was said, and goes on", async () => {
  const cellar = await house.addSpace("Cellar", [boss.id]);
  await say(boss, cellar, "The medlars are ripe.");
  const page = await enter(boss);
  await page.goto(`${house.url}/#${cellar}`);
  await page.getByText("The medlars are ripe.").first().waitFor();
  const operator = createApi(house.url, house.adminKey);
  const workspace = `/v1/operator/workspaces/${house.workspaceId}`;
  await operator.post(`${workspace}/suspend`, { reason: "Unpaid" });
  const told = page.getByRole("status").filter({ hasText: "This workspace is suspended" });
  await told.waitFor();
  await page.reload();
  await told.waitFor();
  await page.getByText("The medlars are ripe.").first().waitFor();
  await operator.post(`${workspace}/resume`, {});
  await told.waitFor({ state: "detached" });
});

test("[L10] an admin sees tokens as used up where no step fits in those that are left", async () => {
  await createApi(house.url, house.adminKey).put(`/v1/operator/workspaces/${house.workspaceId}/limits`, {
    maxTokensPerDay: 1000,
    force: true,
  });
  const porter = await house.addAgent({ name: "Porter", model: { provider: "rehearsal", deltasPerSecond: 0 } });
  await say(boss, await house.addSpace("Shed", [boss.id, porter]), "What is in the shed?");
  const page = await enter(boss);
  await page.getByRole("link", { name: "Shed" }).click();
  await page.getByText("The workspace has used its tokens for today.").waitFor();
  await openSettings(page);
  const figure = page.getByRole("listitem").filter({ hasText: "Tokens leased today" });
  await figure.getByText(/^used up$/).waitFor();
  expect(await figure.textContent()).toMatch(/today\d{1,3} of 1,000 used up$/);
});
