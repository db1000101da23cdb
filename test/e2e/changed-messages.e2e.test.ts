import type { Page } from "playwright-core";
import { expect, onTestFinished, test, vi } from "vitest";
import { browserForFile, houseForFile, modelForFile } from "./support/for-file.ts";
import type { Person } from "./support/house.ts";

/** A message is edited and deleted on the page, with another window watching. */
const [house, browser, fake] = await Promise.all([houseForFile(), browserForFile(), modelForFile()]);

const enter = async (person: Person): Promise<Page> => {
  const page = await (await browser.newContext()).newPage();
  onTestFinished(() => page.context().close());
  await page.goto(await person.link());
  await page.getByRole("navigation", { name: "Spaces" }).getByRole("link", { name: "Orchard" }).click();
  await page.getByRole("combobox", { name: "Message to Orchard" }).waitFor();
  return page;
};

const shown = (page: Page, text: string) => page.locator(".markdown", { hasText: text });

test("[L1] a person edits and deletes by the keyboard, and the other window sees it live", async () => {
  const [husam, sara] = [await house.addPerson("Husam"), await house.addPerson("Sara")];
  await house.addSpace("Orchard", [husam.id, sara.id]);
  const [his, hers] = await Promise.all([enter(husam), enter(sara)]);
  await his.getByRole("combobox").fill("the quinces");
  await his.keyboard.press("Enter");
  await shown(hers, "the quinces").waitFor();
  expect(await hers.getByRole("button", { name: "Edit your message" }).count()).toBe(0);

  // His answer comes after her window shows the edit, so his dialog is still open then.
  await his.route("**/messages/*", async (route) => {
    const response = await route.fetch();
    await shown(hers, "the pears").waitFor();
    await route.fulfill({ response });
  });
  const edit = his.getByRole("button", { name: "Edit your message" });
  await edit.focus();
  await his.keyboard.press("Enter");
  await his.getByRole("textbox", { name: "Its text" }).fill("the pears");
  await his.getByRole("button", { name: "Save" }).press("Enter");
  await shown(hers, "the pears").waitFor();
  await hers.getByText("edited", { exact: true }).waitFor();
  await his.locator(":focus").and(edit).waitFor();
  await his.unrouteAll();

  await his.getByRole("button", { name: "Delete the message of Husam" }).focus();
  await his.keyboard.press("Enter");
  await his.getByRole("button", { name: "Delete", exact: true }).press("Enter");
  for (const page of [his, hers]) await page.getByText("Message deleted by Husam").waitFor();
  expect(await shown(hers, "the pears").count()).toBe(0);
});

/** Two people, one of them an admin, and the message that the other said in their space. */
const saidToAdmin = async (words: string, others: string[] = []) => {
  const [mona, boss] = [await house.addPerson("Mona"), await house.addPerson("Boss")];
  await house.api.patch(`/v1/entities/${boss.id}`, { role: "admin" });
  const spaceId = await house.addSpace("Orchard", [mona.id, boss.id, ...others]);
  await mona.api.post(`/v1/spaces/${spaceId}/messages`, { text: words });
  return { mona, boss };
};

const deleteOfMona = (page: Page) => page.getByRole("button", { name: "Delete the message of Mona" });

test("[L1] an admin deletes another's message, as who is none may not", async () => {
  const omar = await house.addPerson("Omar");
  const { boss } = await saidToAdmin("the quinces", [omar.id]);
  const [page, his] = await Promise.all([enter(boss), enter(omar)]);
  await Promise.all([shown(page, "the quinces").waitFor(), shown(his, "the quinces").waitFor()]);
  await deleteOfMona(page).press("Enter");
  expect(await deleteOfMona(his).count()).toBe(0);
  await page.getByRole("button", { name: "Delete", exact: true }).press("Enter");
  for (const each of [page, his]) await each.getByText("Message deleted by Boss").waitFor();
  expect(await shown(his, "the quinces").count()).toBe(0);
  await page.getByRole("dialog").waitFor({ state: "detached" });
});

test("[L4] an admin is offered to delete what agents wrote of a message, and deletes all of it", async () => {
  const model = { provider: "openai-compatible", name: "scribe", baseUrl: fake.baseUrl };
  const scribe = await house.addAgent({ name: "Scribe", model });
  const written = [
    { name: "block_create", arguments: { label: "fruit", content: "about the orchard" } },
    { name: "recall", arguments: { op: "insert", content: "Mona knows an orchard" } },
  ];
  fake.script([...written.map((each) => ({ toolCalls: [each] })), { text: "Kept." }], "scribe");
  const { boss } = await saidToAdmin("I like the quinces of the old orchard", [scribe]);
  const has = async (what: string) =>
    (await house.api.get<{ items: unknown[] }>(`/v1/agents/${scribe}/${what}`)).items.length;
  await vi.waitFor(async () =>
    expect(await house.api.get(`/v1/agents/${scribe}/runs`)).toMatchObject({
      items: [{ status: "completed" }],
    }),
  );
  const before = { blocks: await has("blocks"), archival: await has("archival") };
  const page = await enter(boss);
  await deleteOfMona(page).press("Enter");
  await page.getByRole("button", { name: "Delete", exact: true }).press("Enter");
  const offer = page.getByRole("dialog", { name: "Delete what agents wrote of it?" });
  await offer.waitFor();
  expect(await offer.getByRole("listitem").allTextContents()).toEqual([
    "Scribe: the block fruit",
    "Scribe: a fact in its archive",
  ]);
  expect({ blocks: await has("blocks"), archival: await has("archival") }).toEqual(before);
  await offer.getByRole("button", { name: "Delete all of it" }).press("Enter");
  await offer.waitFor({ state: "detached" });
  expect({ blocks: await has("blocks"), archival: await has("archival") }).toEqual({
    blocks: before.blocks - 1,
    archival: 0,
  });
});

test("[S4] a message that cannot be shown says so by its id, and the rest of the page stays", async () => {
  const [omar, lina] = [await house.addPerson("Omar"), await house.addPerson("Lina")];
  const messages = `/v1/spaces/${await house.addSpace("Orchard", [omar.id, lina.id])}/messages`;
  const say = async (text: string) => (await omar.api.post<{ message: { id: string } }>(messages, { text })).message.id;
  await say("the quinces");
  const page = await enter(lina);
  await shown(page, "the quinces").waitFor();
  // Whatever is wrong with a text, it shows as its row is drawn.
  await page.evaluate(() => {
    const { split } = String.prototype as { split(...given: unknown[]): string[] };
    const odd = function (this: string, ...given: unknown[]): string[] {
      if (this.startsWith("the medlars")) throw new Error("This text cannot be shown");
      return split.apply(this, given);
    };
    Object.assign(String.prototype, { split: odd });
  });
  const id = await say("the medlars");
  await page.getByText(`Message ${id} cannot be shown.`).waitFor();
  await shown(page, "the quinces").waitFor();
  await say("the sloes");
  await shown(page, "the sloes").waitFor();
  await omar.api.patch(`${messages}/${id}`, { text: "the pears" });
  await shown(page, "the pears").waitFor();
  expect(await page.getByText("cannot be shown").count()).toBe(0);
});
