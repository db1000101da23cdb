import type { Locator, Page } from "playwright-core";
import { expect, test, vi } from "vitest";
import type { Agent } from "../../src/protocol/agent.ts";
import { browserForFile, houseForFile, modelForFile, onEach } from "./support/for-file.ts";
import type { Person } from "./support/house.ts";
import { openPage, phone, shoot } from "./support/page.ts";

/** Tool calls as people see and answer them: two at a desk and on a phone, and one who may only watch. */
const [house, browser, fake] = await Promise.all([houseForFile(), browserForFile(), modelForFile()]);
const model = "planner";

const open = async (person: Person, options = {}): Promise<Page> => {
  const page = await openPage(browser, await person.link(), options);
  await page.getByRole("combobox", { name: "Message to The office" }).waitFor();
  return page;
};

const seat = "Any one by the window will do, and I pay 900 for it";
const journey = {
  type: "object",
  required: ["to", "on", "people", "class"],
  properties: {
    to: { type: "string", title: "Where to" },
    on: { type: "string", format: "date" },
    people: { type: "integer", minimum: 1, maximum: 9 },
    class: { enum: ["first", "second"] },
    meals: { type: "array", items: { enum: ["lunch", "dinner"] } },
    insured: { type: "boolean" },
    seat: { type: "string", default: seat },
  },
  additionalProperties: false,
};

const husam = await house.addPerson("Husam");
const sara = await house.addPerson("Sara");
const approval = { approvers: [husam.id, sara.id], quorum: 2 };
const common = { description: "For this test.", inputSchema: { type: "object" } };
const planner = await house.addAgent({
  name: "Planner",
  continuity: "timeline",
  model: { provider: "openai-compatible", name: model, baseUrl: fake.baseUrl },
  tools: [
    { ...common, name: "deployApp", executionType: "internal", output: { url: "https://app.example" }, approval },
    { ...common, name: "sendEmail", executionType: "gateway", execution: { url: `${house.url}/mail` }, approval: {} },
    { ...common, name: "choice", executionType: "space" },
    { ...common, name: "form", executionType: "space", answer: { schema: journey } },
    { ...common, name: "chart", executionType: "internal", visible: true },
    { ...common, name: "table", executionType: "internal", visible: true },
  ],
});
const spaceId = await house.addSpace("The office", [husam.id, sara.id, planner]);
const [his, hers] = await Promise.all([open(husam), open(sara, { viewport: phone })]);
const both = onEach(his, hers);

/** A run that has its last step to make would hear the next words, and take the script that is meant for them. */
const rests = (): Promise<void> =>
  vi.waitFor(
    async () => {
      const { agent } = await house.api.get<{ agent: Agent }>(`/v1/agents/${planner}`);
      expect(agent.activity?.state).not.toBe("running");
    },
    { timeout: 10_000 },
  );

/** Husam asks, and the agent calls a tool; then it says `after`. */
const calls = async (name: string, input: string | string[], after: string, more: object = {}): Promise<void> => {
  const speech = { name: "send_message", arguments: { text: after } };
  const made = { toolCalls: [{ name, arguments: [input].flat() }], ...more };
  await rests();
  fake.script([made, { toolCalls: [speech] }, { text: "That was all." }], model);
  await his.getByRole("combobox").fill(`please: ${after}`);
  await his.keyboard.press("Enter");
};

const card = (page: Page, title: string): Locator =>
  page.getByRole("region", { name: new RegExp(`^${title}, `) }).last();

const standing = (page: Page, title: string, words: string): Promise<void> =>
  page
    .getByRole("region", { name: `${title}, ${words}` })
    .last()
    .waitFor();

const said = (page: Page, text: string): Promise<void> =>
  page
    .getByRole("article", { name: /^Planner, / })
    .locator(".markdown", { hasText: text })
    .waitFor();

/** What the model has been given last. */
const given = (): string => JSON.stringify(fake.requests.at(-1)?.body.messages);

const noOverflow = async (): Promise<void> =>
  expect(await hers.evaluate(() => document.documentElement.scrollWidth)).toBe(phone.width);

test("a call runs after two people approve it, with a server crash between them", async () => {
  const input = { service: "billing", changes: ["Rounds to the cent", "<img src=x onerror=alert(1)>"] };
  await calls("deployApp", JSON.stringify(input), "It is deployed.");
  await both((page) => standing(page, "Deploy app", "Needs you"));
  await card(his, "Deploy app").getByText("<img src=x onerror=alert(1)>").waitFor();
  await shoot("approval", his, hers);
  await card(hers, "Deploy app").getByRole("textbox", { name: "Note" }).fill("Tested on staging.");
  await card(hers, "Deploy app").getByRole("button", { name: "Approve" }).click();
  await standing(hers, "Deploy app", "Waiting");
  await card(hers, "Deploy app").getByText("You have answered.").waitFor();
  await card(his, "Deploy app").getByText("1 of 2 approvals").waitFor();
  await card(his, "Deploy app").getByText("Tested on staging.").waitFor();
  await shoot("approval-half", his, hers);
  await house.crash();
  const approve = card(his, "Deploy app").getByRole("button", { name: "Approve" });
  await approve.focus();
  await his.keyboard.press("Enter");
  await both((page) => standing(page, "Deploy app", "Done"));
  await his.waitForFunction(() => document.activeElement?.matches(".call"));
  await both((page) => said(page, "It is deployed."));
  for (const page of [his, hers]) {
    const done = card(page, "Deploy app");
    await done.getByText("2 of 2 approvals").waitFor();
    await done.getByRole("link", { name: "https://app.example" }).waitFor();
    expect(await done.getByRole("button").count()).toBe(0);
    expect(await done.locator("img").count()).toBe(0);
  }
  await shoot("approval-done", his, hers);
  await noOverflow();
});

test("one rejection rejects a call, and the agent gets its reason", async () => {
  await calls("deployApp", '{"service": "mail"}', "Then I leave it.");
  await standing(hers, "Deploy app", "Needs you");
  await card(hers, "Deploy app").getByRole("textbox", { name: "Note" }).fill("Not on a Friday.");
  await card(hers, "Deploy app").getByRole("button", { name: "Reject" }).click();
  await standing(his, "Deploy app", "Rejected");
  await card(his, "Deploy app").getByText("Sara rejected").waitFor();
  await said(his, "Then I leave it.");
  expect(given()).toContain("Not on a Friday.");
});

test("[C1] an approval shows every field that is sent, and works once all of it was unfolded", async () => {
  const message = `Wire 1,000,000 to account 7.\n${"Please be quick. ".repeat(40)}The end.`;
  const input = { to: "bank@mail.example\u200b", message, options: ["ok"], question: "Send the weekly digest?" };
  const marks = "\u030a".repeat(60);
  // No field of an input passes for what the tool's config sends.
  const forged = { request: { url: "https://safe.example/" } };
  await calls(
    "sendEmail",
    JSON.stringify({ ...input, note: `Z${marks}`, ...forged, multiple: false, schema: { type: "object" } }),
    "That was it.",
  );
  await both((page) => standing(page, "Send email", "Needs you"));
  await shoot("approval-folded", his, hers);
  const hers1 = card(hers, "Send email");
  const fields = await hers1.locator(".value-field").allInnerTexts();
  for (const part of [
    ...["Tool\nsendEmail", `Goes to\nPOST ${house.url}`, "bank@mail.example\\u{200B}", "1 invisible character"],
    ...["message\nWire 1,000,000", `Read all ${message.length} characters`, "options[0]\nok"],
    ...[`Sends url\n${house.url}/mail`, "\nrequest.url\nhttps://safe.example/"],
    ...["question\nSend the weekly digest?", "multiple\nfalse", "schema.type\nobject"],
  ]) {
    expect(fields.join("\n").replace(/\n+/g, "\n")).toContain(part);
  }
  // Marks stacked on one letter are drawn over no other field.
  const [question, note] = ["question", "note"].map((name) => hers1.locator(".value-field", { hasText: name })) as [
    Locator,
    Locator,
  ];
  const beside = await question.screenshot();
  await note.evaluate((field) => field.style.setProperty("visibility", "hidden"));
  expect(beside.equals(await question.screenshot())).toBe(true);
  await note.evaluate((field) => field.style.removeProperty("visibility"));
  const approve = hers1.getByRole("button", { name: "Approve" });
  await hers1.getByText("Read the folded text above before you approve.").waitFor();
  expect(await approve.isDisabled()).toBe(true);
  await hers1.getByText(/^Read all/).click();
  await hers1.getByText("The end.").waitFor();
  await shoot("approval-unfolded", his, hers);
  await noOverflow();
  await approve.click();
  await both((page) => standing(page, "Send email", "Failed"));
  await said(hers, "That was it.");
  // Whoever scrolled up in a long card is not taken down by what comes next.
  await hers.locator(".timeline-list").evaluate((list) => list.scrollTo({ top: list.scrollHeight }));
  await hers.locator(".jump").waitFor({ state: "detached" });
});

test("a person who may not approve sees why", async () => {
  const ben = await house.addPerson("Ben");
  await house.api.post(`/v1/spaces/${spaceId}/members`, { entityId: ben.id });
  const watching = await open(ben);
  await calls("deployApp", '{"service": "shop"}', "Stopped.");
  await standing(watching, "Deploy app", "Waiting");
  await card(watching, "Deploy app").getByText("Only Husam or Sara can decide.").waitFor();
  expect(await card(watching, "Deploy app").getByRole("button", { name: "Approve" }).isDisabled()).toBe(true);
  await card(his, "Deploy app").getByRole("button", { name: "Reject" }).click();
  await said(watching, "Stopped.");
  await watching.context().close();
});

test("a call far up that waits for a person is one click away", async () => {
  await calls("deployApp", '{"service": "forum"}', "Not deployed.");
  await standing(hers, "Deploy app", "Needs you");
  const reminder = hers.getByRole("button", { name: "Planner needs you: Deploy app" });
  // Nobody need be reminded of what is in view.
  await reminder.waitFor({ state: "detached" });
  // A run of the agent's own for this message would take the words that the waiting one is to say.
  await house.api.patch(`/v1/spaces/${spaceId}`, { wakePolicy: "addressed" });
  for (const line of ["first", "second", "third"]) {
    await sara.api.post(`/v1/spaces/${spaceId}/messages`, { text: `${line} line\n`.repeat(20) });
  }
  await hers.getByRole("article").getByText("third line").waitFor();
  await reminder.click();
  await hers.waitForFunction(() => document.activeElement?.matches("[data-target=true]"));
  await card(hers, "Deploy app").getByRole("button", { name: "Reject" }).click();
  await reminder.waitFor({ state: "detached" });
  await said(his, "Not deployed.");
  await hers.locator(".jump").click();
  await said(hers, "Not deployed.");
  await house.api.patch(`/v1/spaces/${spaceId}`, { wakePolicy: "every_message" });
});

test("the first of two choices counts, and the second person is told so", async () => {
  const asked = { question: "Tea or coffee?", message: "It costs 3.50.", options: ["Tea", "Coffee"] };
  await calls("choice", JSON.stringify(asked), "Here you are.");
  await both((page) => standing(page, "Choice", "Needs you"));
  // The person who chooses sees all that was asked.
  await both((page) => card(page, "Choice").getByText("It costs 3.50.").waitFor());
  await shoot("choice", his, hers);
  const first = Promise.withResolvers<void>();
  await hers.route(/\/tool-calls\//, async (route) => {
    await first.promise;
    await route.continue();
  });
  await card(hers, "Choice").getByRole("button", { name: "Coffee" }).click();
  await card(his, "Choice").getByRole("button", { name: "Tea" }).click();
  await standing(hers, "Choice", "Done");
  first.resolve();
  await card(hers, "Choice")
    .getByText("Thank you, but your answer came second. Husam has answered it already.")
    .waitFor();
  await card(hers, "Choice").locator(".call-result", { hasText: "Tea" }).waitFor();
  await said(hers, "Here you are.");
  expect(given()).toContain('\\"choice\\":\\"Tea\\"');
  await shoot("choice-done", his, hers);
});

test("a form follows the call's schema, marks missing fields, and answers the agent", async () => {
  await calls("form", '{"message": "I need a few things to book the journey."}', "It is booked.");
  await standing(hers, "Form", "Needs you");
  const form = card(hers, "Form");
  await form.getByText("I need a few things to book the journey.").waitFor();
  await form.getByRole("button", { name: "Send the answer" }).click();
  expect(await form.getByRole("alert").count()).toBe(4);
  // A phone shows the whole default.
  const offered = form.locator("[data-field=seat]");
  expect(await offered.evaluate(({ scrollWidth, clientWidth }) => scrollWidth <= clientWidth)).toBe(true);
  await hers.waitForFunction(() => document.activeElement?.getAttribute("data-field") === "to");
  await shoot("form", his, hers);
  await hers.keyboard.type("Ulm");
  await hers.reload();
  await standing(hers, "Form", "Needs you");
  expect(await form.getByLabel("Where to").inputValue()).toBe("Ulm");
  await form.getByLabel("On", { exact: true }).fill("2026-12-01");
  await form.getByLabel("People").fill("12");
  await form.getByRole("radio", { name: "second" }).check();
  await form.getByRole("checkbox", { name: "dinner" }).check();
  await form.getByRole("checkbox", { name: "Insured" }).check();
  await form.getByRole("button", { name: "Send the answer" }).click();
  await form.getByRole("alert").filter({ hasText: "At most 9, please." }).waitFor();
  await form.getByLabel("People").fill("2");
  await hers.keyboard.press("Enter");
  await both((page) => standing(page, "Form", "Done"));
  await card(his, "Form").getByText("Sara answered").waitFor();
  await card(his, "Form").locator(".call-result", { hasText: "2026-12-01" }).waitFor();
  await said(his, "It is booked.");
  const answer = { to: "Ulm", on: "2026-12-01", people: 2, class: "second", meals: ["dinner"], insured: true, seat };
  const told = /"content":"(\{\\"to\\".*?\})"/.exec(given())?.[1] ?? "";
  expect(JSON.parse(JSON.parse(`"${told}"`))).toEqual(answer);
  await shoot("form-done", his, hers);
  await noOverflow();
});

test("[D4] a chart grows while it is written, and has a table for screen readers", async () => {
  const written = [
    '{"type":"bar","title":"Orders","labels":["Jan","Feb","Mar"],',
    '"series":[{"name":"2026","values":[120,1',
    "60,210]}]}",
  ];
  await calls("chart", written, "Up and up.", { holdAfter: 2 });
  await both((page) => standing(page, "Chart", "Writing"));
  for (const page of [his, hers]) await card(page, "Chart").locator(".chart-bar").nth(1).waitFor();
  fake.release();
  await both((page) => standing(page, "Chart", "Done"));
  for (const page of [his, hers]) {
    const chart = card(page, "Chart");
    await chart.getByRole("img", { name: "Bar chart: Orders." }).waitFor();
    expect(await chart.locator(".chart-bar").count()).toBe(3);
    await chart.getByText("Values as a table").click();
    expect(await chart.getByRole("row").allInnerTexts()).toEqual(["\t2026", "Jan\t120", "Feb\t160", "Mar\t210"]);
  }
  await said(hers, "Up and up.");
  await shoot("chart", his, hers);
  await noOverflow();
});

test("a wide table scrolls in its own frame", async () => {
  const columns = ["customer", "invoice", "amount", "due", "state", "contact"];
  const rows = [["Acme and Daughters", "2026-114", 1200.5, "2026-11-30", "reminded twice", "ann@acme.example"]];
  await calls("table", JSON.stringify({ title: "Open invoices", columns, rows }), "That is all of them.");
  await both((page) => standing(page, "Table", "Done"));
  const frame = card(hers, "Table").getByRole("region", { name: "Open invoices" });
  await frame.getByRole("cell", { name: "1,200.5" }).waitFor();
  expect(await frame.evaluate((element) => element.scrollWidth > element.clientWidth)).toBe(true);
  await said(hers, "That is all of them.");
  await shoot("table", his, hers);
  await noOverflow();
});

test.each([
  { type: "bar", title: "No span", values: [5e-324, -5e-324] },
  { type: "bar", title: "No length", values: [1], labels: [{ length: { toString: null } }] },
])("[S4] a chart that cannot be drawn shows as its fields: $title", async (input) => {
  const after = `That was ${input.title}.`;
  await calls("chart", JSON.stringify(input), after);
  await both((page) => standing(page, "Chart", "Done"));
  for (const page of [his, hers]) {
    await card(page, "Chart").getByText(input.title, { exact: true }).waitFor();
    expect(await card(page, "Chart").getByRole("img").count()).toBe(0);
    await said(page, after);
  }
});

test("[C20] people see who will read what leaves a confidential space, and why it stays", async () => {
  const members = [husam.id, sara.id, planner].map((entityId) => ({ entityId }));
  const board = { name: "Board", members, confidential: true, release: {} };
  const { space } = await house.api.post<{ space: { id: string } }>("/v1/spaces", board);
  const enter = { name: "enter_space", arguments: { spaceId } };
  const tell = { name: "send_message", arguments: { text: "We merge on Friday." } };
  const ask = async (words: string): Promise<void> => {
    fake.script([{ toolCalls: [enter] }, { toolCalls: [tell] }, { text: "That was all." }], model);
    await his.getByRole("combobox", { name: "Message to Board" }).fill(words);
    await his.keyboard.press("Enter");
  };
  await both((page) => page.goto(`${house.url}/#${space.id}`));
  await ask("Tell the office.");
  await both((page) => standing(page, "Send message", "Needs you"));
  const fields = await card(hers, "Send message").locator(".value-field").allInnerTexts();
  expect(fields.join("\n").replace(/\n+/g, "\n")).toMatch(
    /Goes to\na message in "The office" .*\nRead by\n\d people and 1 agent now\. The space is open: its agents know it everywhere\.\ntext\n/,
  );
  await shoot("release", his, hers);
  await noOverflow();
  await card(hers, "Send message").getByRole("button", { name: "Approve" }).click();
  await both((page) => standing(page, "Send message", "Done"));
  await house.api.patch(`/v1/spaces/${space.id}`, { release: null });
  await ask("Tell them again.");
  await both((page) => standing(page, "Send message", "Failed"));
  await card(hers, "Send message").getByText('what is said in "Board" stays there').waitFor();
  await shoot("kept", his, hers);
  await his.goto(`${house.url}/#${spaceId}`);
  await his.getByRole("button", { name: /^Members/ }).click();
  await his.getByText("What is said in Board stays there: agents know nothing of it here.").waitFor();
  await shoot("kept-outside", his, hers);
});
