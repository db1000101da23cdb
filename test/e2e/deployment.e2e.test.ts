import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { afterAll, expect, test } from "vitest";
import { createApi } from "../../scripts/api.ts";
import { seedDemo } from "../../scripts/demo.ts";
import type { Message } from "../../src/protocol/message.ts";
import type { Run } from "../../src/protocol/run.ts";
import { browserForFile, houseForFile } from "./support/for-file.ts";
import { openPage, write } from "./support/page.ts";

/** The demo's Steward, as the README has it; what it deploys goes to a server of this test, which counts. */
const folder = mkdtempSync(join(tmpdir(), "deployment-"));
afterAll(() => rmSync(folder, { recursive: true }));
const [house, browser] = await Promise.all([houseForFile(), browserForFile()]);
const demo = await seedDemo(house.url, house.adminKey, join(folder, "demo.json"));
const deployments: { body: string; key: unknown }[] = [];

const listenForDeployments = async (): Promise<string> => {
  const target = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) body += chunk;
    deployments.push({ body, key: request.headers["idempotency-key"] });
    response.writeHead(201, { "content-type": "application/json" });
    response.end(JSON.stringify({ status: "deployed", build: deployments.length }));
  });
  afterAll(() => target.close());
  await new Promise<void>((listening) => target.listen(0, "127.0.0.1", listening));
  const address = target.address();
  if (address === null || typeof address === "string") throw new Error("it does not listen");
  return `http://127.0.0.1:${address.port}/deployments`;
};

/** The demo's own tool, but that it asks a server; and nobody waits for words. */
const deployTo = async (url: string): Promise<string> => {
  const api = createApi(house.url, demo.secretKey);
  const { items } = await api.get<{ items: { id: string; name: string }[] }>("/v1/agents");
  const agentId = items.find(({ name }) => name === "Steward")?.id ?? "";
  type Tool = { name: string; description: string; inputSchema: unknown; approval?: unknown };
  const { agent } = await api.get<{ agent: { config: { tools: Tool[] } } }>(`/v1/agents/${agentId}`);
  const tools = agent.config.tools.map((tool) => {
    const { name, description, inputSchema, approval } = tool;
    if (name !== "deploy") return tool;
    const execution = { url, body: { what: "{{input.what}}", environment: "{{input.environment}}" } };
    return { name, description, inputSchema, approval, executionType: "gateway", execution };
  });
  await api.patch(`/v1/agents/${agentId}`, { tools, model: { provider: "rehearsal", deltasPerSecond: 200 } });
  return agentId;
};

const signIn = async (name: string): Promise<Page> => {
  const person = demo.people.find((each) => each.name === name);
  const page = await openPage(browser, person?.link ?? "");
  await page.getByRole("navigation", { name: "Spaces" }).getByRole("link", { name: "Workshop" }).click();
  await page.getByRole("combobox", { name: "Message to Workshop" }).waitFor();
  return page;
};

const agentId = await deployTo(await listenForDeployments());
const his = await signIn("Husam");
const hers = await signIn("Sara");

const card = (page: Page, title: string, standing: string): Locator =>
  page.getByRole("region", { name: `${title}, ${standing}` }).last();

const said = (page: Page, text: string | RegExp): Promise<void> =>
  page
    .getByRole("article", { name: /^Steward, \d/ })
    .filter({ hasText: text })
    .last()
    .waitFor();

const asPerson = () => createApi(house.url, demo.secretKey).as(demo.people[0]?.id ?? "");
const runs = async (): Promise<Run[]> =>
  (await createApi(house.url, demo.secretKey).get<{ items: Run[] }>(`/v1/agents/${agentId}/runs`)).items;
const callsShown = async (): Promise<Message[]> => {
  const id = demo.spaces.find(({ name }) => name === "Workshop")?.id;
  const { items } = await asPerson().get<{ items: Message[] }>(`/v1/spaces/${id}/messages`);
  return items.filter(({ toolCall }) => toolCall !== undefined);
};

test("an empty space shows how to address its agents", async () => {
  const api = createApi(house.url, demo.secretKey);
  const workshop = `/v1/spaces/${demo.spaces.find(({ name }) => name === "Workshop")?.id}`;
  await his.getByText("Ask Steward something, and watch the answer being written.").waitFor();
  await api.patch(workshop, { router: null });
  await his.getByText("Ask @Steward something, and watch the answer being written.").waitFor();
  await api.patch(workshop, { wakePolicy: "every_message" });
  await his.getByText("Ask Steward something, and watch the answer being written.").waitFor();
});

test("[R1] [R2] [R3] a deployment approved by two people around a server crash is made once", async () => {
  await write(his, "@Steward deploy the website to production");
  await Promise.all([his, hers].map((page) => card(page, "Deploy", "Needs you").waitFor()));
  await card(his, "Deploy", "Needs you").getByRole("button", { name: "Approve" }).click();
  await card(his, "Deploy", "Waiting").waitFor();
  await card(hers, "Deploy", "Needs you").getByText("1 of 2 approvals").waitFor();
  expect(await runs()).toMatchObject([{ status: "waiting_tool" }]);

  await house.crash();
  expect(deployments).toEqual([]);
  await card(hers, "Deploy", "Needs you").getByRole("button", { name: "Approve" }).click();
  await Promise.all([his, hers].map((page) => card(page, "Deploy", "Done").waitFor()));
  await Promise.all([his, hers].map((page) => said(page, "Done: deploy (website, production): status: deployed")));

  const [shown, ...others] = await callsShown();
  expect(others).toEqual([]);
  expect(deployments).toEqual([
    { body: JSON.stringify({ what: "website", environment: "production" }), key: shown?.toolCall?.id },
  ]);
  expect(shown?.toolCall).toMatchObject({
    status: "complete",
    awaits: {
      answers: [
        { name: "Husam", approved: true },
        { name: "Sara", approved: true },
      ],
    },
  });
  await expect.poll(runs).toMatchObject([{ status: "completed" }]);
});

test("the agent asks for a choice and a form, shows a chart and a table, and reports each", async () => {
  await write(his, "@Steward ask us to choose tea, coffee or water");
  await card(hers, "Choose", "Needs you").getByRole("button", { name: "coffee" }).click();
  await said(his, "The choice is: coffee");

  await write(hers, "@Steward ask Husam to fill in a name, arrival date and guests (number)");
  const form = card(his, "Form", "Needs you");
  await form.getByText("Husam, please fill this in").waitFor();
  await form.getByLabel("Name").fill("Ann");
  await form.getByLabel("Arrival date").fill("2026-12-01");
  await form.getByLabel("Guests").fill("3");
  await form.getByRole("button", { name: "Send the answer" }).click();
  await said(hers, /Filled in: .*2026-12-01.*guests: 3/);

  await write(his, "@Steward chart visits: Monday: 3, Tuesday: 5, Wednesday: 4");
  await said(hers, 'Here is the chart "Visits".');
  await card(hers, "Chart", "Done").getByText("Tuesday").first().waitFor();
  await write(his, "@Steward table name, age: Ann, 7; Bob, 9");
  await said(hers, "Here is the table.");
  await card(hers, "Table", "Done").getByRole("cell", { name: "Bob" }).waitFor();

  await write(his, "@Steward approve a day off for Ann");
  await card(hers, "Request approval", "Needs you").getByRole("button", { name: "Reject" }).click();
  await said(his, /It was not approved, .*"Sara" rejected it/);
});
