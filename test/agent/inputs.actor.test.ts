import { env } from "cloudflare:workers";
import { type ModelMessage, streamText, type ToolSet } from "ai";
import { afterEach, describe, expect, test, vi } from "vitest";
import * as z from "zod";
import { maxRunViewCharacters } from "../../src/agent/bounds.ts";
import type { ModelPrompt } from "../../src/models/language-model.ts";
import type { UpdateAgent } from "../../src/protocol/agent.ts";
import type { Run } from "../../src/protocol/run.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { createGate } from "../support/gate.ts";
import { call, scriptedModel, step, text, waitAt } from "../support/scripted-model.ts";
import { type AgentSettings, ended, openScene, passTime, scripted } from "./fixture.ts";

/** What the API shows of inputs is what the model was given, byte for byte. */
afterEach(() => void vi.useRealTimers());

const stage = async (settings: Partial<AgentSettings> = {}) => {
  const scene = await openScene(settings);
  const { house, agent } = scene;
  return {
    ...scene,
    context: async () => unwrap(await agent.context(house.workspaceId)),
    patch: async (changes: UpdateAgent) => unwrap(await agent.update(house.workspaceId, changes)),
    /** A run as the route answers it, all of its pages. */
    pages: async (runId: string): Promise<Run[]> => {
      const pages: Run[] = [];
      for (let from: number | undefined = 0; from !== undefined; from = pages.at(-1)?.nextStep) {
        pages.push(unwrap(await agent.run(house.workspaceId, runId, from)));
      }
      return pages;
    },
  };
};

type Whole = { instructions: string; messages: unknown[] };

/** Every step's whole input, put together as the API says. */
const inputsOf = (pages: Run[]): Whole[] =>
  pages.flatMap(({ steps }) => {
    const wholes = new Map<number, Whole>();
    for (const { index, input } of steps) {
      const before = input?.continues && wholes.get(input.continues.step);
      const instructions = input?.instructions ?? before?.instructions ?? "";
      const kept = before?.messages.slice(0, input?.continues?.messages) ?? [];
      wholes.set(index, { instructions, messages: [...kept, ...(input?.messages ?? [])] });
    }
    return [...wholes.values()];
  });

/** What a model is given for an input: through the same library, to a model that only listens. */
const promptOf = async ({ instructions, messages }: Whole): Promise<ModelPrompt | undefined> => {
  const listening = scriptedModel([step(text("Heard."))]);
  const tools: ToolSet = {};
  await streamText({ model: listening, instructions, messages: messages as ModelMessage[], tools }).text;
  return listening.calls[0]?.prompt;
};

const promptsOf = (inputs: Whole[]) => Promise.all(inputs.map(promptOf));

const kinds = (["consciousness", "timeline"] as const).flatMap((continuity) =>
  (["simple", "threaded"] as const).map((messaging) => ({ continuity, messaging })),
);

describe.each(kinds)("$continuity, $messaging:", (kind) => {
  test("every step of a run shows exactly what the model was given", async () => {
    const { house, husam, analyst, space, pages, ask } = await stage(kind);
    const gate = createGate();
    const model = scripted([
      step(call("enter_space", { spaceId: space.id })),
      step(call("send_message", { text: "One." }), call("set_memories", { memories: [{ key: "a", value: "1" }] })),
      step(waitAt(gate), text("Said it.")),
      step(call("get_memories", {})),
      step(call("send_message", { text: "Two." })),
      step(text("Said it again.")),
    ]);
    await space.post(husam, "First");
    await gate.reached;
    gate.open();
    await ended(house.workspaceId, analyst, 1);
    const runs = await ask("Second", 2);
    const shown = await Promise.all(runs.map(async ({ id }) => inputsOf(await pages(id))));
    expect(await promptsOf(shown.flat())).toEqual(model.calls.map(({ prompt }) => prompt));
    const [first] = await pages(runs[0]?.id ?? "");
    expect(first?.steps.map(({ input }) => input?.continues)).toEqual([
      undefined,
      { step: 0, messages: 1 },
      { step: 1, messages: 3 },
    ]);
    for (const { input } of first?.steps ?? []) {
      const sum = (input?.sections ?? []).reduce((total, { tokens }) => total + tokens, 0);
      expect(sum).toBeGreaterThan(0);
      expect(input?.limits).toMatchObject({ model: "rehearsal", maxTokens: 100_000 });
      expect(input?.dropped).toEqual([]);
    }
  });

  test("what the next input would be is what it is then, and shows what it begins with", async () => {
    const { house, husam, analyst, space, context, patch } = await stage({
      ...kind,
      limits: { maxTokensPerDay: 1000 },
    });
    const model = scripted([step(text("Read."))]);
    const { id } = await space.post(husam, "What does it cost?");
    await vi.waitFor(async () => {
      const { activity } = unwrap(await env.AGENT.getByName(analyst.id).describe(house.workspaceId));
      expect(activity?.state).toBe("budget_exhausted");
    });
    // Later than the run that found no budget, and still the same second when the next one begins.
    vi.setSystemTime(Date.now() + 1000);
    const before = await context();
    expect(before.trigger).toMatchObject({ type: "space_message", spaceId: space.id, text: "What does it cost?" });
    expect(JSON.stringify(before.messages)).toContain(id);
    await patch({ limits: { maxTokensPerDay: 1_000_000 } });
    await model.called(1);
    expect([await promptOf(before)]).toEqual(model.calls.map(({ prompt }) => prompt));
    expect(before.tokens).toBe(before.sections.reduce((sum, { tokens }) => sum + tokens, 0) + frame(kind));
    await ended(house.workspaceId, analyst, 2);
    expect((await context()).trigger).toBeUndefined();
  });
});

/** What a timeline's prompt costs beside its sections. */
const frame = ({ continuity }: { continuity: string }): number => (continuity === "timeline" ? 16 : 0);

test("memories beyond their limit are named as left out, in what would be given and in what was", async () => {
  const { house, context, agent, pages, ask } = await stage({ context: { memoryTokens: 256 } });
  for (const key of ["old", "older", "oldest"]) {
    unwrap(await agent.putMemory(house.workspaceId, key, `${key} `.repeat(150)));
  }
  const left = [{ name: "memories", reason: "2 do not fit context.memoryTokens" }];
  expect((await context()).dropped).toEqual(left);
  scripted([step(text("Read."))]);
  const [run] = await ask("Hello");
  const [shown] = await pages(run?.id ?? "");
  expect(shown?.steps[0]?.input?.dropped).toEqual(left);
});

test("the next input of a timeline answers the event that waits, of whatever kind", async () => {
  const { house, analyst, agent, context } = await stage({ continuity: "timeline", limits: { maxTokensPerDay: 1000 } });
  scripted();
  unwrap(await agent.trigger(house.workspaceId, { serviceName: "jira", payload: { issue: "P-1" } }));
  await vi.waitFor(async () => {
    const { activity } = unwrap(await env.AGENT.getByName(analyst.id).describe(house.workspaceId));
    expect(activity?.state).toBe("budget_exhausted");
  });
  const { trigger, sections } = await context();
  expect(trigger).toMatchObject({ type: "service", senderName: "jira" });
  expect(sections.find(({ name }) => name === "trigger")?.text).toContain('"issue":"P-1"');
});

test.for(["consciousness", "timeline"] as const)(
  "the next input of a %s that a plan begins shows it",
  async (continuity) => {
    const { house, analyst, agent, context } = await stage({ continuity, limits: { maxTokensPerDay: 1000 } });
    scripted();
    const plan = { name: "Report", instruction: "Post the numbers", runAfter: "1 hour" };
    unwrap(await agent.putPlan(house.workspaceId, "report", plan));
    expect((await context()).trigger).toBeUndefined();
    await passTime(analyst, 3_601_000);
    await ended(house.workspaceId, analyst, 1);
    const next = await context();
    expect(next.trigger).toMatchObject({ type: "plan", senderName: "Report", text: "Post the numbers" });
    const shown = { consciousness: '[Plan "Report"] "Post the numbers"', timeline: 'instruction: "Post the numbers"' };
    expect(JSON.stringify((await promptOf(next))?.[1])).toContain(JSON.stringify(shown[continuity]).slice(1, -1));
  },
);

test("another model's limits are used from the next run on, and said", async () => {
  const byModel = { "small-*": { maxTokens: 20_000, memoryTokens: 300 } };
  const { house, husam, analyst, space, context, patch, pages, ask } = await stage({ context: { byModel } });
  const gate = createGate();
  scripted([step(waitAt(gate), text("Read.")), step(text("Read."))]);
  await space.post(husam, "One");
  await gate.reached;
  const model = { provider: "rehearsal", name: "small-1", deltasPerSecond: 0 } as const;
  const { config } = await patch({ model });
  expect(config.context).toEqual({
    byModel,
    blockDescriptions: true,
    blockSchemas: true,
    activity: false,
    historyMessages: 50,
    history: "prompt",
    minRecentCycles: 10,
    compaction: { strategy: "self_summaries" },
  });
  gate.open();
  await ended(house.workspaceId, analyst, 1);
  const runs = await ask("Two", 2);
  const limits = await Promise.all(runs.map(async ({ id }) => (await pages(id))[0]?.steps[0]?.input?.limits));
  expect(limits.map((each) => [each?.model, each?.maxTokens, each?.memoryTokens])).toEqual([
    ["rehearsal", 100_000, 8000],
    ["small-1", 20_000, 300],
  ]);
  expect((await context()).limits).toMatchObject({ model: "small-1", maxTokens: 20_000, historyTokens: 12_000 });
});

test("[B3] limits beyond a known window are fitted to it, and the context says so", async () => {
  const model = { provider: "openai-compatible", name: "gpt-4", baseUrl: "https://models.example/v1" } as const;
  const { context, patch } = await stage({ model, context: { maxTokens: 50_000 } });
  expect((await context()).limits).toEqual({
    model: "gpt-4",
    window: 8192,
    maxTokens: 8192,
    reservedResponseTokens: 2048,
    memoryTokens: 655,
    historyTokens: 4915,
    notes: ["maxTokens: 8192 instead of 50000, since the model takes no more"],
  });
  await patch({ context: { maxTokens: null } });
  expect((await context()).limits).toMatchObject({ maxTokens: 8192, notes: [] });
  await patch({ model: { alias: "nowhere" } });
  expect((await context()).limits).toMatchObject({ model: "nowhere", maxTokens: 100_000, notes: [] });
});

test("[S4] a change that leaves limits in contradiction is refused by name, and changes nothing", async () => {
  const { house, agent } = await stage({ context: { memoryTokens: 20_000 } });
  const outcome = await agent.update(house.workspaceId, { context: { maxTokens: 20_000 } });
  expect(outcome).toMatchObject({
    ok: false,
    problem: {
      code: "invalid_request",
      issues: [{ path: "context.maxTokens", message: expect.stringContaining("memoryTokens (20000)") }],
    },
  });
  expect(unwrap(await agent.describe(house.workspaceId)).config.context.maxTokens).toBeUndefined();
});

test("[B3] a run whose inputs one answer does not hold is answered in pages, whole", async () => {
  const { pages, ask } = await stage({
    limits: { maxTokensPerRun: 10_000_000, maxTokensPerDay: 1_000_000_000, maxSteps: 40 },
    context: { maxTokens: 2_000_000 },
  });
  const long = "long ".repeat(40_000);
  const count = 24;
  const model = scripted((_, index) =>
    index < count - 1 ? step(text(long), call("get_memories", {})) : step(text("Enough.")),
  );
  const [run] = await ask("Go on");
  const answers = await pages(run?.id ?? "");
  expect(answers.length).toBeGreaterThan(2);
  expect(answers.flatMap(({ steps }) => steps.map(({ index }) => index))).toEqual([...Array(count).keys()]);
  for (const { steps } of answers) {
    if (steps.length > 1) expect(JSON.stringify(steps).length).toBeLessThan(maxRunViewCharacters + 1000);
  }
  const prompts = z.array(z.array(z.unknown())).parse(await promptsOf(inputsOf(answers)));
  expect(prompts.every((prompt, index) => JSON.stringify(prompt) === JSON.stringify(model.calls[index]?.prompt))).toBe(
    true,
  );
});
