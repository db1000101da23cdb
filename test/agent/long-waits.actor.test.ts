import { expect, test, vi } from "vitest";
import type { EntityRef } from "../../src/protocol/rpc.ts";
import { call, step, text } from "../support/scripted-model.ts";
import { agentStub, ended, openHouse, runsOf, scripted, statementsOf, userTexts, waits } from "./fixture.ts";

/** Counts the journal's rows that the agent's SQLite reads from now on. */
const journalReads = async (agent: EntityRef): Promise<() => number> => {
  const statements = await statementsOf(agentStub(agent));
  const ofJournal = () => statements.filter(({ query }) => query.includes('"journal"'));
  return () => ofJournal().reduce((sum, { cursor }) => sum + cursor.rowsRead, 0);
};

const runsBetween = 25;
/** The rows of each of the newest runs are read once, for what it did. */
const mostRows = 160;

test("[B4] a run that waited while many others ran goes on by its own rows of the journal", async () => {
  const house = await openHouse();
  const [husam, designer] = [await house.person("Husam"), await house.person("Designer")];
  const settings = { continuity: "timeline", messaging: "threaded", limits: { maxConcurrentRuns: 2 } } as const;
  const analyst = await house.agent({ name: "Analyst", ...settings });
  const alpha = await house.space("Alpha", [husam, designer, analyst]);
  const beta = await house.space("Beta", [husam, analyst]);
  const model = scripted((options, index) => {
    if (index === 0) {
      return step(
        call("set_memories", { memories: [{ key: "asked", value: "Designer" }] }),
        call("send_message", { text: "@Designer is it good?", wait: true }),
      );
    }
    const inSpace = userTexts(options)[0] ?? "";
    const isFirst = options.prompt.every(({ role }) => role !== "tool");
    return inSpace.includes("← RESUME") && isFirst
      ? step(call("send_message", { text: "Thank you." }))
      : step(text("Read."));
  });
  await alpha.post(husam, "Have it reviewed");
  await waits(house.workspaceId, analyst);
  for (let run = 1; run <= runsBetween; run += 1) await beta.post(husam, `Aside ${run}`);
  await vi.waitFor(
    async () => {
      const { length } = (await runsOf(house.workspaceId, analyst)).filter(({ status }) => status === "completed");
      expect(length).toBe(runsBetween);
    },
    { timeout: 20_000, interval: 100 },
  );

  const resumed = await journalReads(analyst);
  await alpha.post(designer, "It is");
  await vi.waitFor(async () => expect(await alpha.texts()).toContain("Analyst: Thank you."));
  const read = resumed();
  const [first] = (await ended(house.workspaceId, analyst, runsBetween + 1)).slice(0, 1);
  expect(first?.steps.map(({ toolCalls }) => toolCalls.map(({ status }) => status))).toEqual([
    ["complete", "complete"],
    ["complete"],
    [],
  ]);
  const calls = model.calls.length;
  const afterwards = await journalReads(analyst);
  await alpha.post(husam, "And now?");
  await model.called(calls + 1);
  const readBy = [read, afterwards()];
  await ended(house.workspaceId, analyst, runsBetween + 2);
  expect(userTexts(model.calls[calls])[0]).toContain("You: called set_memories(");
  expect(readBy.map((rows) => rows <= mostRows || rows)).toEqual([true, true]);
});
