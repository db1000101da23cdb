import { createHmac } from "node:crypto";
import { expect, test, vi } from "vitest";
import type { Message } from "../../src/protocol/message.ts";
import { houseForFile } from "./support/for-file.ts";

/** A webhook as GitHub sends it, over HTTP, to an agent that tells a space of it. */
const house = await houseForFile();
const person = await house.addPerson("Husam");
const agentId = await house.addAgent({ name: "Herald", instructions: "Announce events in Town Square." });
const spaceId = await house.addSpace("Town Square", [person.id, agentId]);
let hook = await house.api.post<{ hookId: string; url: string; secret: string }>(`/v1/agents/${agentId}/hooks`, {
  scheme: "github",
  name: "github",
  events: ["issues.opened"],
  template:
    "{{payload.sender.login}} opened #{{payload.issue.number}} in {{payload.repository.full_name}}: {{payload.issue.title}}",
});

/** The delivery of GitHub's own documents, with a title; `number` tells one issue from another. */
const opened = (number: number): string =>
  JSON.stringify({
    action: "opened",
    issue: { url: `https://api.github.com/repos/octocat/Hello-World/issues/${number}`, number, title: "Found a bug" },
    repository: { id: 1296269, full_name: "octocat/Hello-World", owner: { login: "octocat", id: 1 } },
    sender: { login: "octocat", id: 1 },
  });

const deliver = async (id: string, event: string, body: string): Promise<{ status: number; answer: unknown }> => {
  const response = await fetch(hook.url, {
    method: "POST",
    body,
    headers: {
      "content-type": "application/json",
      "user-agent": "GitHub-Hookshot/044aadd",
      "x-github-delivery": id,
      "x-github-event": event,
      "x-hub-signature-256": `sha256=${createHmac("sha256", hook.secret).update(body).digest("hex")}`,
    },
  });
  return { status: response.status, answer: await response.json() };
};

const said = async (): Promise<string[]> =>
  (await person.api.get<{ items: Message[] }>(`/v1/spaces/${spaceId}/messages`)).items.map(({ text }) => text ?? "");

const announced = (number: number): string =>
  `Event from github: octocat opened #${number} in octocat/Hello-World: Found a bug`;

test("[D5] a GitHub webhook makes one summary, also when it is sent again after a crash", async () => {
  expect(hook.url).toBe(`${house.url}/v1/hooks/${hook.hookId}`);
  expect(await deliver("guid-0", "ping", '{"zen":"Keep it logically awesome."}')).toEqual({
    status: 202,
    answer: { ignored: "greeting" },
  });
  const first = await deliver("guid-1", "issues", opened(1347));
  expect(first).toEqual({ status: 202, answer: { eventId: expect.stringMatching(/^evt_/) } });
  await vi.waitFor(async () => expect(await said()).toEqual([announced(1347)]), { timeout: 20_000 });
  expect(await deliver("guid-1", "issues", opened(1347))).toEqual(first);
  await house.crash();
  expect(await deliver("guid-1", "issues", opened(1347))).toEqual(first);
  expect((await deliver("guid-2", "issues", opened(1348))).status).toBe(202);
  await vi.waitFor(async () => expect(await said()).toContain(announced(1348)), { timeout: 20_000 });
  expect(await said()).toEqual([announced(1347), announced(1348)]);
});

test("[S4] a forged webhook is refused, and wakes no agent", async () => {
  const before = await said();
  hook = { ...hook, secret: "another secret altogether" };
  expect(await deliver("guid-3", "issues", opened(1))).toMatchObject({ status: 401, answer: { code: "unauthorized" } });
  expect(await said()).toEqual(before);
});
