import { abortAllDurableObjects } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, test, vi } from "vitest";
import { maxBatchEvents } from "../../src/agent/bounds.ts";
import { ContextConfig } from "../../src/protocol/context-config.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { createGate } from "../support/gate.ts";
import { step, text, waitAt } from "../support/scripted-model.ts";
import { ended, inboxOf, openHouse, rowsIn, scripted, userTexts } from "./fixture.ts";

/** `context.maxEvents`: how many events one cycle takes. The agent thinks while the messages come. */
const stage = async (context: { maxEvents?: number }, wakePolicy: "every_message" | "addressed" = "every_message") => {
  const house = await openHouse();
  const [husam, sara] = [await house.person("Husam"), await house.person("Sara")];
  const analyst = await house.agent({ name: "Analyst", context });
  const space = await house.space("Alpha", [husam, sara, analyst]);
  unwrap(await space.stub().update(house.key, { wakePolicy }));
  const gate = createGate();
  const model = scripted((_, index) => (index === 0 ? step(waitAt(gate), text("Read.")) : step(text("Read."))));
  await space.post(husam, "@Analyst begin");
  await gate.reached;
  /** The events of each cycle after the first, once so many messages were posted and so many cycles have ended. */
  const taken = async (words: string[], runs: number): Promise<string[][]> => {
    for (const each of words) await space.post(husam, each);
    await vi.waitFor(async () => expect(await inboxOf(house.workspaceId, analyst)).toHaveLength(1 + words.length));
    gate.open();
    await ended(house.workspaceId, analyst, 1 + runs);
    expect(await inboxOf(house.workspaceId, analyst)).toEqual([]);
    return model.calls.slice(1).map((call) => {
      const inbox = userTexts(call).findLast((message) => message.startsWith("INBOX (")) ?? "";
      const lines = inbox.split("\n").filter((line) => line.startsWith("  ["));
      return lines.map((line) => /: "([^"]*)"/.exec(line)?.[1] ?? /\(\d+ earlier messages/.exec(line)?.[0] ?? line);
    });
  };
  return { taken };
};

const words = ["one", "two", "three", "four", "five"];

test("[K14] a cycle takes as many events as its owner allows, in order; the rest comes next", async () => {
  const { taken } = await stage({ maxEvents: 2 });
  expect(await taken(words, 3)).toEqual([["one", "two"], ["three", "four"], ["five"]]);
});

test("[K14] without a bound of its own a cycle takes all that waits", async () => {
  const { taken } = await stage({});
  expect(await taken(words, 1)).toEqual([words]);
});

test("[K14] the event that wakes is among those taken; what lies too far back is counted", async () => {
  const { taken } = await stage({ maxEvents: 2 }, "addressed");
  expect(await taken([...words, "@Analyst look"], 1)).toEqual([["(4 earlier messages", "five", "@Analyst look"]]);
});

test("[K14] [S4] a bound that is no number from 1 to maxBatchEvents is refused by its path", () => {
  expect(ContextConfig.parse({ maxEvents: maxBatchEvents }).maxEvents).toBe(maxBatchEvents);
  for (const maxEvents of [0, maxBatchEvents + 1, 1.5, "2", null]) {
    const refused = ContextConfig.safeParse({ maxEvents });
    expect(refused.error?.issues.map(({ path }) => path.join("."))).toEqual(["maxEvents"]);
  }
});

test("[K15] a bound that a timeline was given before it was refused is dropped, not in the way", async () => {
  const house = await openHouse();
  const analyst = await house.agent({ name: "Analyst", continuity: "timeline" });
  await rowsIn(analyst, "update agent set config = json_set(config, '$.context.maxEvents', 5)");
  await abortAllDurableObjects();
  const agent = env.AGENT.getByName(analyst.id);
  const refused = await agent.update(house.workspaceId, { context: { maxEvents: 5 } });
  expect(refused).toMatchObject({ ok: false, problem: { issues: [{ path: "context.maxEvents" }] } });
  const { config } = unwrap(await agent.update(house.workspaceId, { instructions: "Be kind" }));
  expect(config).toMatchObject({ instructions: "Be kind" });
  expect(config.context.maxEvents).toBeUndefined();
  unwrap(await agent.update(house.workspaceId, { continuity: "consciousness", context: { maxEvents: 5 } }));
  const back = await agent.update(house.workspaceId, { continuity: "timeline" });
  expect(back).toMatchObject({ ok: false, problem: { issues: [{ path: "context.maxEvents" }] } });
});
