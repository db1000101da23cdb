import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { unwrap } from "../../src/shared/errors.ts";
import { createGate } from "../support/gate.ts";
import { call, step, text, waitAt } from "../support/scripted-model.ts";
import { ended, inboxOf, openHouse, openScene, runsOf, scripted, userTexts } from "./fixture.ts";

/** A model that takes little: what comes from outside is cut to what it takes, and nothing is lost. */
const maxTokens = 6000;
const long = (name: string): string => `${name}: ${"some words that say little ".repeat(30)}`;

const stage = async (continuity: "consciousness" | "timeline") => {
  const scene = await openScene({ continuity, context: { maxTokens } });
  const { house, agent } = scene;
  /** The tokens of every input that its runs were given, the answer's included. */
  const tokens = async (): Promise<number[]> => {
    const { items } = unwrap(await agent.runs(house.workspaceId, { limit: 100 }));
    const runs = await Promise.all(items.map(async ({ id }) => unwrap(await agent.run(house.workspaceId, id))));
    return runs.flatMap(({ steps }) =>
      steps.flatMap(({ input }) => (input ? [input.tokens + input.limits.reservedResponseTokens] : [])),
    );
  };
  return { ...scene, tokens };
};

test("[B3] events beyond a living agent's input are handled in several cycles, each event once", async () => {
  const { house, husam, analyst, space, tokens } = await stage("consciousness");
  const gate = createGate();
  const model = scripted((_, index) => (index === 0 ? step(waitAt(gate), text("Read.")) : step(text("Read."))));
  await space.post(husam, "First");
  await gate.reached;
  const names = Array.from({ length: 40 }, (_, index) => `message-${index}`);
  for (const name of names) await space.post(husam, long(name));
  await expect.poll(async () => (await inboxOf(house.workspaceId, analyst)).length, { timeout: 10_000 }).toBe(41);
  gate.open();
  await expect.poll(() => inboxOf(house.workspaceId, analyst), { timeout: 10_000 }).toEqual([]);
  const read = model.calls.flatMap(userTexts);
  expect(names.filter((name) => !read.some((each) => each.includes(`"${name}: `)))).toEqual([]);
  const runs = await runsOf(house.workspaceId, analyst);
  expect(runs.reduce((events, { trigger }) => events + trigger.eventCount, 0)).toBe(41);
  expect(Math.max(...(await tokens()))).toBeLessThanOrEqual(maxTokens);
});

test.for(["consciousness", "timeline"] as const)(
  "[B3] what a tool shows of a space fits what the model of a %s takes",
  async (continuity) => {
    const { space, tokens, ask } = await stage(continuity);
    scripted(() => step(text("Read.")));
    for (let run = 1; run <= 20; run += 1) {
      await ask(long(`message-${run}`), run);
    }
    const other = scripted([step(call("enter_space", { spaceId: space.id })), step(text("Read."))]);
    await ask("Go and look", 21);
    const prompt = JSON.stringify(other.calls[1]?.prompt);
    expect(prompt.includes("older messages did not fit; page back with read_messages")).toBe(true);
    expect(prompt.includes('"content":"Go and look"')).toBe(true);
    expect(Math.max(...(await tokens()))).toBeLessThanOrEqual(maxTokens);
  },
);

test("[B4] what a compaction keeps fits the next inputs, by billed tokens and long instructions", async () => {
  const house = await openHouse();
  const husam = await house.person("Husam");
  const context = { maxTokens: 8000, minRecentCycles: 50 };
  const analyst = await house.agent({ name: "Analyst", instructions: long("Know that").repeat(4), context });
  const space = await house.space("Alpha", [husam, analyst]);
  const agent = env.AGENT.getByName(analyst.id);
  const billed = ({ prompt }: { prompt: unknown }) => Math.round(JSON.stringify(prompt).length / 2);
  const model = scripted((options) => ({
    ...step(text("Read.")),
    usage: { inputTokens: billed(options), outputTokens: 10 },
  }));
  const dropped: string[] = [];
  for (let count = 1; count <= 25; count += 1) {
    await space.post(husam, long(`message-${count}`).slice(0, 400));
    const run = (await ended(house.workspaceId, analyst, count)).at(-1);
    const { steps } = unwrap(await agent.run(house.workspaceId, run?.id ?? ""));
    dropped.push(...steps.flatMap(({ input }) => (input?.dropped ?? []).map(({ reason }) => `${count}: ${reason}`)));
  }
  expect(dropped).toEqual([]);
  expect(JSON.stringify(model.calls.at(-1)?.prompt).includes("EARLIER CYCLES")).toBe(true);
});
