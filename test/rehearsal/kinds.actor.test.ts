import { expect, test, vi } from "vitest";
import { Run } from "../../src/protocol/run.ts";
import { openHouse } from "../support/house.ts";
import { kinds, listed, messagesIn } from "./listed.ts";

const open = async (kind: { continuity: string; messaging: string }) => {
  const house = await openHouse();
  const [husam, ahmad] = [await house.person("Husam"), await house.person("Ahmad")];
  const echo = await house.agent({ name: "Echo", ...kind });
  const space = await house.space("Family", [husam, ahmad, echo]);
  const runs = () => listed(Run, `/v1/agents/${echo.id}/runs`, house.secretKey);
  const messages = (id = space.id) => messagesIn(id, house.secretKey);
  /** Newest first. */
  const statuses = (...expected: string[]) =>
    vi.waitFor(async () => expect((await runs()).map(({ status }) => status)).toEqual(expected), { timeout: 10_000 });
  const texts = async (id = space.id) => (await messages(id)).map(({ sender, text }) => `${sender.name}: ${text}`);
  return { house, echo, husam, ahmad, statuses, messages, texts, say: house.say, spaceId: space.id };
};

test.each(kinds)("[R1] $continuity, $messaging: it greets, remembers, recalls and is silent", async (kind) => {
  const { echo, husam, statuses, texts, say, spaceId } = await open(kind);
  expect(echo).toMatchObject({ config: kind });
  const silent = kind.continuity === "consciousness" ? "skipped" : "completed";
  await say(spaceId, husam, "Hi Echo");
  await statuses("completed");
  await say(spaceId, husam, "@Echo remember that the code is 7");
  await statuses("completed", "completed");
  await say(spaceId, husam, "I bought bread");
  await statuses(silent, "completed", "completed");
  await say(spaceId, husam, "@Echo what is the code?");
  await statuses("completed", silent, "completed", "completed");
  expect((await texts()).filter((text) => text.startsWith("Echo"))).toEqual([
    "Echo: Hello, Husam!",
    "Echo: Done: I will remember code: 7",
    "Echo: I remember code: 7",
  ]);
});

test("[R7] a threaded timeline asks, waits for the answer and reports it in the same run", async () => {
  const { husam, ahmad, statuses, texts, say, spaceId } = await open({ continuity: "timeline", messaging: "threaded" });
  await say(spaceId, husam, "@Echo ask Ahmad: is the mockup good?");
  await statuses("waiting_reply");
  await say(spaceId, ahmad, "Ship it");
  await statuses("completed");
  expect(await texts()).toEqual([
    "Husam: @Echo ask Ahmad: is the mockup good?",
    "Echo: @Ahmad is the mockup good?",
    "Ahmad: Ship it",
    "Echo: Ahmad said: Ship it",
  ]);
});

test("[K8] a threaded consciousness asks, ends its cycle, and reports the answer in the next", async () => {
  const kind = { continuity: "consciousness", messaging: "threaded" };
  const { husam, ahmad, statuses, texts, say, spaceId } = await open(kind);
  await say(spaceId, husam, "@Echo ask Ahmad: is the mockup good?");
  await statuses("completed");
  await say(spaceId, ahmad, "Ship it");
  await statuses("completed", "completed");
  expect((await texts()).at(-1)).toBe("Echo: Ahmad said: Ship it");
});

test("[R7] an awaited agent answers by a reply, and the waiting one reports the answer", async () => {
  const kind = { continuity: "timeline", messaging: "threaded" };
  const { house, echo, husam, texts, messages } = await open(kind);
  const keeper = await house.agent({ name: "Keeper", ...kind });
  const { id } = await house.space("Archive", [husam, echo, keeper]);
  await house.say(id, husam, "@Keeper remember that the code is 7");
  await vi.waitFor(async () => expect((await texts(id)).at(-1)).toBe("Keeper: Done: I will remember code: 7"));
  await house.say(id, husam, "@Echo ask Keeper: what is the code?");
  await vi.waitFor(async () => expect((await texts(id)).at(-1)).toBe("Echo: Keeper said: I remember code: 7"), {
    timeout: 10_000,
  });
  const [question, answer] = (await messages(id)).slice(-3);
  expect(question).toMatchObject({ text: "@Keeper what is the code?", expectsReply: true });
  expect(answer).toMatchObject({ text: "I remember code: 7", replyTo: question?.id });
});
