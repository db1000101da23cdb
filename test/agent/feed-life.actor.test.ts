import { evictDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import { maxFedCharacters, maxFedRuns, maxPastRuns } from "../../src/agent/bounds.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { answer, call, step, text } from "../support/scripted-model.ts";
import { openBoth, openCompartment } from "./compartment.ts";
import { agentStub, inboxOf, openScene, rowsIn, scripted, userTexts } from "./fixture.ts";

/** What becomes of an agent's open past in its compartments over time. */
const inputOf = (given: Parameters<typeof userTexts>[0]): string => JSON.stringify(given?.prompt ?? []);

/** Copies an agent's only run, so that it has done it `count` times more. */
const repeatRun = async (agent: { id: string }, count: number): Promise<void> => {
  const columns = (await rowsIn(agent, "SELECT name FROM pragma_table_info('runs')")).map(({ name }) => String(name));
  const values = columns.map(
    (name) => ({ ordinal: "ordinal + i", id: "id || i", kept_before: "iif(kept, ordinal + i - 1, 0)" })[name] ?? name,
  );
  const numbers = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})`;
  await rowsIn(agent, `${numbers} INSERT INTO runs (${columns.join()}) SELECT ${values.join()} FROM runs, n`);
  await evictDurableObject(agentStub(agent));
};

test("[C21] with three compartments each input repeats 99 % of the one before in its own", async () => {
  const scene = await openScene({});
  const names = ["Board", "People", "Legal"];
  const secrets = await Promise.all(names.map((name) => openCompartment(scene, name)));
  const model = scripted();
  for (let round = 1; round <= 4; round += 1) {
    model.push(...answer(scene.space.id, `Open answer ${round}.`));
    await scene.ask(`Open question ${round}?`, round);
    for (const secret of secrets) {
      model.push(step(call("set_memories", { memories: [{ key: "round", value: `${round}` }] })), step(text("Kept.")));
      await secret.ask(`Secret question ${round}?`, round);
    }
  }
  for (const secret of secrets) {
    const reuse = (await secret.runs()).reverse().map(({ prefixReuse }) => prefixReuse ?? 0);
    expect(Math.min(...reuse.slice(1))).toBeGreaterThanOrEqual(0.99);
    expect(reuse).toHaveLength(4);
  }
  const last = inputOf(model.calls.at(-1));
  for (let round = 1; round <= 4; round += 1) expect(last).toContain(`Open answer ${round}.`);
  expect(last.match(/Secret question 1\?/g)).toHaveLength(1);
});

test("[C21] after a compaction there, it knows what it did openly by its own words", async () => {
  const context = { maxTokens: 12_000, minRecentCycles: 1 };
  const { space, ask, secret } = await openBoth({ context });
  const model = scripted([
    step(call("enter_space", { spaceId: space.id }), call("send_message", { text: "The budget is 40k." })),
    step(text("I told Husam the budget.")),
  ]);
  await ask("What is the budget?");
  for (let run = 1; run <= 4; run += 1) {
    model.push(step(text(`${run}: ${"a long thought about it all, ".repeat(900)}`)));
    await secret.ask("Go on", run);
  }
  const input = userTexts(model.calls.at(-1)).join("\n");
  expect(input).toContain("EARLIER CYCLES");
  expect(input).toContain("I told Husam the budget.");
});

test("[C21] an open cycle that ended in silence is read there as read, with nothing said", async () => {
  const { ask, secret } = await openBoth({});
  const model = scripted([step(call("skip", { reason: "no" })), step(text("Read."))]);
  await ask("My vote is blue");
  await secret.ask("Which colour?", 1);
  const input = userTexts(model.calls.at(-1)).join("\n");
  expect(input).toContain("READ, NOTHING SAID:");
  expect(input).toContain("My vote is blue");
});

test("[C21] of too many open cycles the newest are told, and once how many others there were", async () => {
  const { space, ask, analyst, secret } = await openBoth({});
  const model = scripted([...answer(space.id, "Open answer."), step(text("Read.")), step(text("Read."))]);
  await ask("Open?");
  await repeatRun(analyst, maxFedRuns + 11);
  await secret.ask("Anything?", 1);
  await secret.ask("And now?", 2);
  const note = "(12 runs of yours outside of this space were too many to be told here)";
  expect(userTexts(model.calls.at(-1)).join("\n").split(note)).toHaveLength(2);
  const fed = await rowsIn(secret.mind, "SELECT count(*) AS fed, sum(kept) AS kept FROM runs WHERE fed");
  expect(fed).toEqual([{ fed: maxFedRuns, kept: maxFedRuns }]);
});

test("[C21] a timeline is fed its newest open runs, and told that there were more", async () => {
  const { space, ask, analyst, secret } = await openBoth({ continuity: "timeline" });
  const model = scripted([...answer(space.id, "Open answer."), step(text("Read."))]);
  await ask("Open?");
  await repeatRun(analyst, maxPastRuns + 4);
  await secret.ask("Anything?", 1);
  expect(inputOf(model.calls.at(-1))).toContain(
    "(5 earlier runs of yours outside of this space were too many to be told here)",
  );
  expect(await rowsIn(secret.mind, "SELECT count(*) AS fed FROM runs WHERE fed")).toEqual([{ fed: maxPastRuns }]);
});

const kinds = ["consciousness", "timeline"] as const;
test.for(kinds)("[C10] [C21] open runs of a %s fill no hour there; its runs there none outside", async (kind) => {
  const { house, ask, secret } = await openBoth({
    continuity: kind,
    limits: { maxRunsPerHour: 2, maxShareOfPerson: 1 },
  });
  const { workspaceId } = house;
  scripted(() => step(text("Read.")));
  await ask("One?", 1);
  await secret.ask("One?", 1);
  await secret.ask("Two?", 2);
  await secret.tell("Three?");
  expect(await inboxOf(workspaceId, secret.mind)).toMatchObject([{ status: "pending" }]);
  expect(unwrap(await secret.stub().describe(workspaceId)).activity?.refusing).toBe("maxRunsPerHour");
  expect((await ask("Two?", 2)).at(-1)?.status).toBe("completed");
});

test("[C21] asked where it knows an open message from, it names its input there", async () => {
  const { house, space, ask, secret } = await openBoth({});
  scripted((_, index) => answer(space.id, "The budget is 40k.")[index] ?? step(text("Read.")));
  await ask("What is the budget?");
  await secret.ask("Is it enough?", 1);
  const said = (await space.messages()).at(-1);
  const known = unwrap(await secret.stub().knows(house.workspaceId, { messageId: said?.id ?? "" }));
  expect(known.places).toContainEqual({ how: "verbatim", section: "earlier_cycles" });
});

test("[C21] its index there holds nothing of the runs that it was fed", async () => {
  const { house, space, ask, secret } = await openBoth({});
  scripted((_, index) => answer(space.id, "The budget is 40k.")[index] ?? step(text("Thought of the merger.")));
  const [open] = await ask("What is the budget?");
  await secret.ask("Is it enough?", 1);
  unwrap(await secret.stub().search(house.workspaceId, { query: "merger", mode: "fts", types: [], limit: 5 }));
  const held = await rowsIn(secret.mind, "SELECT ref, lived FROM search_entries");
  expect(JSON.stringify(held)).toContain("run_");
  expect(JSON.stringify(held)).not.toContain(open?.id);
});

test("[C21] a newest open run too long to be told does not hide those before it", async () => {
  const { space, ask, analyst, secret } = await openBoth({ continuity: "timeline" });
  const model = scripted([...answer(space.id, "Open answer."), step(text("Huge.")), step(text("Read."))]);
  await ask("Open?");
  await ask("More?", 2);
  // No value of a table is longer than 2 MB.
  const rows = Math.ceil(maxFedCharacters / 1_500_000);
  const numbers = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${rows})`;
  const content = "json_object('role', 'assistant', 'content', hex(zeroblob(750000)))";
  await rowsIn(
    analyst,
    `${numbers} INSERT INTO journal SELECT seq + i, run_ordinal, step, kind, ${content}, meta, created_at
      FROM n, (SELECT * FROM journal WHERE kind = 'assistant' ORDER BY seq DESC LIMIT 1)`,
  );
  await rowsIn(analyst, "UPDATE runs SET journal_to = (SELECT max(seq) FROM journal) WHERE ordinal = 2");
  await evictDurableObject(agentStub(analyst));
  await secret.ask("Anything?", 1);
  expect(inputOf(model.calls.at(-1))).toContain("Open answer.");
  expect(inputOf(model.calls.at(-1))).toContain("(1 earlier runs of yours outside of this space");
  expect(await rowsIn(secret.mind, "SELECT count(*) AS fed FROM runs WHERE fed")).toEqual([{ fed: 1 }]);
});
