import { expect, test, vi } from "vitest";
import { maxToldRuns } from "../../../src/agent/bounds.ts";
import { unwrap } from "../../../src/shared/errors.ts";
import { call, scriptedModel, step, text } from "../../support/scripted-model.ts";
import { agentStub, runsOf, statementsOf, userTexts } from "../fixture.ts";
import { ask, eachTest, playWith, scene } from "./scene.ts";

eachTest();

/** Statements, and rows of the journal, more or less, by what else an object does at a time: far fewer than runs. */
const byChance = 15;

/** An agent with runs that wait for Bob, and what each thing that it does asks of its database. */
const crowd = async () => {
  const set = await scene({ tools: [{ ...ask, visible: true }], steps: [] });
  const { agent, space, ann, bob, workspaceId } = set;
  let asks = true;
  const model = scriptedModel(({ prompt }) =>
    asks && prompt.at(-1)?.role === "user" ? step(call("confirm", {})) : step(text("Well.")),
  );
  playWith(model);
  const statusOf = async (index: number) => (await runsOf(workspaceId, agent))[index]?.status;
  const counted = await statementsOf(agentStub(agent));
  /** Statements from an event to the model's call for it, and the rows of the journal that they read. */
  const until = async (calls: number, wake: () => Promise<unknown>) => {
    counted.length = 0;
    await wake();
    await model.called(calls);
    const ofJournal = counted.filter(({ query }) => query.includes('"journal"'));
    return { statements: counted.length, rows: ofJournal.reduce((sum, { cursor }) => sum + cursor.rowsRead, 0) };
  };
  return {
    ...set,
    model,
    /** Asks until so many runs wait. */
    wait: async (runs: number) => {
      asks = true;
      for (
        let waiting = (await space.messages()).filter(({ toolCall }) => toolCall).length;
        waiting < runs;
        waiting += 1
      ) {
        await until(model.calls.length + 1, () => space.post(ann, "Ask"));
        await vi.waitFor(async () => expect(await statusOf(0)).toBe("waiting_tool"));
      }
      asks = false;
    },
    plain: async () => {
      const counts = await until(model.calls.length + 1, () => space.post(ann, "Hello"));
      await vi.waitFor(async () => expect(await statusOf(0)).toBe("completed"));
      return counts;
    },
    answerOldest: () =>
      until(model.calls.length + 1, async () => {
        const waiting = (await space.messages()).find(({ toolCall }) => toolCall?.status === "requires_action");
        unwrap(await space.stub().answerToolCall(space.as(bob), waiting?.toolCall?.id ?? "", { result: true }));
      }),
  };
};

test("[B4] a run is told of the newest runs that wait, and how many more there are", async () => {
  const { wait, plain, model } = await crowd();
  await wait(maxToldRuns + 3);
  await plain();
  const [prompt = ""] = userTexts(model.calls.at(-1));
  expect(prompt.match(/\(waiting_tool\)/g)).toHaveLength(maxToldRuns);
  expect(prompt).toContain("(this run)");
  expect(prompt).toContain("and 3 earlier ones that wait for their tools; get_my_runs lists them");
});

test("[B4] however many of its runs wait, a message and an answer ask the same of its database", async () => {
  const { wait, plain, answerOldest } = await crowd();
  await wait(maxToldRuns + 2);
  await plain();
  const few = { plain: await plain(), answered: await answerOldest() };
  await wait(4 * maxToldRuns);
  const many = { plain: await plain(), answered: await answerOldest() };
  for (const what of ["plain", "answered"] as const) {
    expect(many[what].statements, what).toBeLessThanOrEqual(few[what].statements + byChance);
    expect(many[what].rows, what).toBeLessThanOrEqual(few[what].rows + byChance);
  }
});
