import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import {
  maxCallsPerStep,
  maxGoals,
  maxInvalidSteps,
  maxMemories,
  maxMemoriesCharacters,
} from "../../src/agent/bounds.ts";
import type { Run } from "../../src/protocol/run.ts";
import { createGate } from "../support/gate.ts";
import { call, type Script, type ScriptedStep, step, text, waitAt } from "../support/scripted-model.ts";
import { shorten } from "../support/shorten.ts";
import { type AgentSettings, ended, inboxOf, openScene, rowsIn, runsOf, scripted } from "./fixture.ts";

/** What one run may do at most, reached by a model that does too much. */
const stage = async (script: Script, settings: Omit<AgentSettings, "name"> = {}) => {
  const { house, husam, analyst, space } = await openScene(settings);
  const model = scripted(script);
  return {
    ...{ house, husam, analyst, space, model },
    run: async (): Promise<Run | undefined> => {
      await space.post(husam, "Go");
      return (await ended(house.workspaceId, analyst, 1))[0];
    },
  };
};

test("[B3] a run over maxTokensPerRun ends with an error that names it, and is not done again", async () => {
  const much: ScriptedStep = { ...step(call("get_memories", {})), usage: { inputTokens: 100, outputTokens: 600 } };
  const { run, house, analyst, model } = await stage(() => much, { limits: { maxTokensPerRun: 1000 } });
  expect(await run()).toMatchObject({
    status: "failed",
    error: { code: "token_limit", message: expect.stringContaining("maxTokensPerRun (1000)") },
  });
  expect(model.calls).toHaveLength(2);
  expect(await inboxOf(house.workspaceId, analyst)).toEqual([]);
});

test("[B3] [R5] a run over maxRunMinutes is stopped by an error that names it, and not repeated", async () => {
  const maxRunMinutes = 7.77;
  shorten(maxRunMinutes * 60_000);
  const { run, house, analyst, space } = await stage(() => step(waitAt(createGate()), text("Too late.")), {
    limits: { maxRunMinutes },
  });
  expect(await run()).toMatchObject({
    status: "failed",
    error: { code: "time_limit", message: expect.stringContaining("maxRunMinutes (7.77)") },
  });
  expect(await inboxOf(house.workspaceId, analyst)).toEqual([]);
  expect(await space.texts()).toEqual(["Husam: Go"]);
});

test.each([
  ["maxCallsPerStep", step(...Array.from({ length: maxCallsPerStep + 1 }, () => call("get_memories", {})))],
  ["maxInvalidSteps", step(call("no_such_tool", {}))],
])("[B3] [R4] a model beyond %s fails the run as nonsense, naming the bound", async (bound, much) => {
  const { run, model } = await stage(() => much);
  expect(await run()).toMatchObject({
    status: "failed",
    error: { code: "model_nonsense", message: expect.stringContaining(bound) },
  });
  expect(model.calls).toHaveLength(bound === "maxInvalidSteps" ? maxInvalidSteps : 1);
});

const rows = (count: number): string =>
  `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})`;

test.each([
  ["maxMemories", `${rows(maxMemories)} INSERT INTO memories (key, value, updated_at) SELECT 'k' || i, 'x', 0 FROM n`],
  [
    "maxMemoriesCharacters",
    `INSERT INTO memories (key, value, updated_at) VALUES ('k', printf('%.${maxMemoriesCharacters}c', 'x'), 0)`,
  ],
])("[B3] past %s a memory is refused by name, for people as for the model", async (bound, fill) => {
  const { run, house, analyst } = await stage([
    step(call("set_memories", { memories: [{ key: "more", value: "y" }] })),
    step(text("Too many.")),
  ]);
  await rowsIn(analyst, fill);
  expect(await env.AGENT.getByName(analyst.id).putMemory(house.workspaceId, "more", "y")).toMatchObject({
    ok: false,
    problem: { code: "limit_reached", detail: expect.stringContaining(bound) },
  });
  const [toolCall] = (await run())?.steps[0]?.toolCalls ?? [];
  expect(JSON.stringify(toolCall?.output)).toContain(bound);
});

test("[B3] past maxGoals a goal is refused by name", async () => {
  const { house, analyst } = await stage([]);
  const fill = `${rows(maxGoals)} INSERT INTO goals (id, description, status, long_term, created_at, updated_at) SELECT 'g' || i, 'x', 'active', 0, 0, 0 FROM n`;
  await rowsIn(analyst, fill);
  expect(
    await env.AGENT.getByName(analyst.id).putGoal(house.workspaceId, "more", { description: "More" }),
  ).toMatchObject({ ok: false, problem: { code: "limit_reached", detail: expect.stringContaining("maxGoals") } });
});

test("[B3] a timeline agent has at most maxConcurrentRuns; the next begins when one ends", async () => {
  const gates = [createGate(), createGate(), createGate()];
  const { house, husam, analyst, space, model } = await stage(
    (_, index) => step(...(gates[index] ? [waitAt(gates[index])] : []), text("Read.")),
    { continuity: "timeline", limits: { maxConcurrentRuns: 2 } },
  );
  for (const words of ["one", "two", "three"]) await space.post(husam, words);
  await Promise.all([gates[0]?.reached, gates[1]?.reached]);
  await expect.poll(async () => (await inboxOf(house.workspaceId, analyst)).length).toBe(3);
  expect((await runsOf(house.workspaceId, analyst)).map(({ status }) => status)).toEqual(["running", "running"]);
  expect(model.calls).toHaveLength(2);
  gates[1]?.open();
  await gates[2]?.reached;
  for (const gate of gates) gate.open();
  expect(await ended(house.workspaceId, analyst, 3)).toHaveLength(3);
});
