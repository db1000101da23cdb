import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, test, vi } from "vitest";
import { unwrap } from "../../src/shared/errors.ts";
import { createGate } from "../support/gate.ts";
import { answer, apiError, call, refusal, step, text, waitAt } from "../support/scripted-model.ts";
import { agentStub, ended, ids, inboxOf, openHouse, openScene, scripted, statementsOf, userTexts } from "./fixture.ts";

test("[D2] [R1] a person's message wakes the agent, which answers once and acknowledges it", async () => {
  const { house, analyst, space, ask } = await openScene();
  const model = scripted(answer(space.id, "Here they are."));

  const [run] = await ask("The numbers, please");

  expect(await space.texts()).toEqual(["Husam: The numbers, please", "Analyst: Here they are."]);
  expect(run).toMatchObject({ status: "completed", outcome: "answered", spaceId: space.id });
  expect(run?.steps.map((each) => each.toolCalls.map(({ name, status }) => `${name} ${status}`))).toEqual([
    ["enter_space complete"],
    ["send_message complete"],
    [],
  ]);
  expect(await inboxOf(house.workspaceId, analyst)).toEqual([]);
  expect(userTexts(model.calls[0])[0]).toContain('"Husam" (human, id: ');
});

test("[D4] an agent's words stream to every member as they are written, and end in its message", async () => {
  const house = await openHouse();
  const [husam, sara] = [await house.person("Husam"), await house.person("Sara")];
  const analyst = await house.agent({ name: "Analyst" });
  const space = await house.space("Alpha", [husam, sara, analyst]);
  const gate = createGate();
  const written = call("send_message", { text: "Hello 😀 world" }, [3, 10, 12, 17, 18, 20, 24]);
  scripted([step(call("enter_space", { spaceId: space.id })), step(written, waitAt(gate)), step(text("Greeted."))]);

  const watchers = await Promise.all([space.watch(husam), space.watch(sara)]);
  await space.post(husam, "Say hello");
  await gate.reached;
  const streamedTo = (frames: (typeof watchers)[0]) =>
    frames.flatMap((frame) => (frame.type === "tool-input-delta" ? [frame.textDelta ?? ""] : [])).join("");
  await vi.waitUntil(() => watchers.every((frames) => streamedTo(frames) === "Hello 😀 world"));
  expect(await space.texts()).toHaveLength(1);
  gate.open();
  await ended(house.workspaceId, analyst, 1);

  for (const frames of watchers) {
    await vi.waitUntil(() => frames.some((frame) => frame.type === "agent.inactive"));
    const start = frames.find((frame) => frame.type === "tool-call.start");
    const said = frames.find((frame) => frame.type === "space.message" && frame.message.sender.type === "agent");
    expect(said).toMatchObject({ message: { text: "Hello 😀 world", streamId: start?.streamId } });
    expect(frames.filter((frame) => frame.type === "tool-call.error")).toEqual([]);
    const types = frames.map((frame) => frame.type);
    expect(types.indexOf("agent.active")).toBeLessThan(types.indexOf("tool-call.start"));
    expect(types).toContain("run.started");
    expect(types.indexOf("run.completed")).toBeLessThan(types.indexOf("agent.inactive"));
  }
});

test("a skipped cycle says nothing, is rolled back, and its event is named in the next one", async () => {
  const { space, ask } = await openScene();
  const model = scripted([step(call("skip", { reason: "a vote only" })), ...answer(space.id, "A has one vote.")]);

  const [silent] = await ask("Option A");
  expect(silent).toMatchObject({ status: "skipped", outcome: "silent", reason: "a vote only" });
  expect(await space.texts()).toHaveLength(1);

  await ask("Count the votes", 2);
  const texts = userTexts(model.calls[1]);
  expect(texts).toHaveLength(1);
  expect(texts[0]).toMatch(/^READ, NOTHING SAID:\n {2}\["Alpha", .*"Option A"/);
});

test("memories and goals are kept, told as changes, and a later input repeats the earlier one", async () => {
  const { house, analyst, space, ask } = await openScene();
  const model = scripted([
    step(
      call("set_memories", { memories: [{ key: "deadline", value: "Feb 28" }] }),
      call("set_goals", { goals: [{ id: "q4", description: "Complete Q4" }] }),
    ),
    step(text("Kept.")),
    ...answer(space.id, "Feb 28."),
  ]);
  await ask("Remember the deadline");
  const [, second] = await ask("When?", 2);

  const [first, later] = userTexts(model.calls[2]);
  expect(first).toContain("STATE:");
  expect(later).toContain(
    'STATE CHANGES:\n  GOALS:\n    - "Complete Q4" (id: q4, active)\n  MEMORIES:\n    - "deadline": "Feb 28"',
  );
  expect(second?.prefixReuse).toBe(1);
  const agent = env.AGENT.getByName(analyst.id);
  expect(unwrap(await agent.memories(house.workspaceId))).toMatchObject([{ key: "deadline", value: "Feb 28" }]);
  expect(unwrap(await agent.goals(house.workspaceId))).toMatchObject([{ id: "q4", status: "active" }]);
});

const twoSpaces = async () => {
  const house = await openHouse();
  const [husam, sara] = [await house.person("Husam"), await house.person("Sara")];
  const analyst = await house.agent({ name: "Analyst" });
  const alpha = await house.space("Alpha", [husam, analyst]);
  const beta = await house.space("Beta", [sara, analyst]);
  return { house, husam, analyst, alpha, beta };
};

test("a message told to another space carries where it comes from", async () => {
  const { house, husam, analyst, alpha, beta } = await twoSpaces();
  scripted([
    step(call("enter_space", { spaceId: beta.id })),
    step(call("send_message", { text: "The report is ready." })),
    step(call("enter_space", { spaceId: alpha.id })),
    step(call("send_message", { text: "Told them." })),
    step(text("Carried it over.")),
  ]);
  const asked = await alpha.post(husam, "Tell Beta the report is ready");
  await ended(house.workspaceId, analyst, 1);
  expect((await beta.messages())[0]?.origin).toEqual({ spaceId: alpha.id, messageId: asked.id });
  expect((await alpha.messages()).at(-1)?.origin).toBeUndefined();
});

test("words that follow a move in the same step never show in the space that was active before", async () => {
  const { house, husam, analyst, alpha, beta } = await twoSpaces();
  scripted([
    step(call("enter_space", { spaceId: alpha.id })),
    step(call("enter_space", { spaceId: beta.id }), call("send_message", { text: "only for Beta" })),
    step(text("Moved.")),
  ]);
  const watching = await alpha.watch(husam);
  await alpha.post(husam, "Go");
  await ended(house.workspaceId, analyst, 1);
  expect(await beta.texts()).toEqual(["Analyst: only for Beta"]);
  expect(watching.some((frame) => frame.type === "tool-call.start" || frame.type === "tool-input-delta")).toBe(false);
});

test("what arrives while a cycle runs is shown before the next step, handled in the next cycle", async () => {
  const { house, husam, analyst, space } = await openScene();
  const gate = createGate();
  const model = scripted([
    step(call("enter_space", { spaceId: space.id }), waitAt(gate)),
    step(text("Saw it coming.")),
    step(text("Handled.")),
  ]);
  await space.post(husam, "One");
  await gate.reached;
  await space.post(husam, "Two");
  await vi.waitUntil(async () => (await inboxOf(house.workspaceId, analyst)).length === 2);
  gate.open();
  await ended(house.workspaceId, analyst, 2);
  expect(userTexts(model.calls[1]).at(-1)).toBe(
    'INBOX PREVIEW (1 waiting; they come in full in the next cycle):\n  ["Alpha"] "Husam": "Two"',
  );
  expect(userTexts(model.calls[2]).at(-1)).toContain('"Two"');
});

test("a service's event wakes the agent without any space, once for its key", async () => {
  const house = await openHouse();
  const analyst = await house.agent({ name: "Analyst" });
  const model = scripted([step(text("Noted."))]);
  const agent = env.AGENT.getByName(analyst.id);
  const event = { serviceName: "jira", payload: { issue: "PROJ-123" } };
  const first = unwrap(await agent.trigger(house.workspaceId, event, "delivery-1"));
  await ended(house.workspaceId, analyst, 1);
  expect(unwrap(await agent.trigger(house.workspaceId, event, "delivery-1"))).toEqual(first);
  expect(await inboxOf(house.workspaceId, analyst)).toEqual([]);
  expect(userTexts(model.calls[0])[0]).toContain('[Service "jira"] {"issue":"PROJ-123"}');
  expect(userTexts(model.calls[0])[0]).toContain("ACTIVE SPACE: none");
});

test("[S1] another workspace finds no agent, and an agent never made stores nothing", async () => {
  const house = await openHouse();
  const analyst = await house.agent({ name: "Analyst" });
  const other = (await openHouse()).workspaceId;
  expect(await env.AGENT.getByName(analyst.id).describe(other)).toMatchObject({
    ok: false,
    problem: { code: "not_found" },
  });
  const nobody = { ...analyst, id: ids.mint("ent") };
  expect(await env.AGENT.getByName(nobody.id).describe(house.workspaceId)).toMatchObject({ ok: false });
  const tables = await runInDurableObject(agentStub(nobody), (_, state) =>
    state.storage.sql.exec("SELECT name FROM sqlite_master WHERE name NOT LIKE '_cf_%'").toArray(),
  );
  expect(tables).toEqual([]);
});

test("the context route shows what the next run would be given", async () => {
  const house = await openHouse();
  const analyst = await house.agent({ name: "Analyst", instructions: "Read figures." });
  const view = unwrap(await env.AGENT.getByName(analyst.id).context(house.workspaceId));
  expect(view.instructions).toContain("Read figures.");
  expect(view.sections.map((section) => section.name)).toEqual(["instructions", "this_cycle"]);
  expect(view.tokens).toBeGreaterThan(0);
  expect(view.dropped).toEqual([]);
});

test("[B4] what a run reads does not grow with how often the agent was silent before", async () => {
  const { house, husam, analyst, space, agent } = await openScene();
  const model = scripted([
    ...answer(space.id, "Here."),
    ...Array.from({ length: 3 }, () => step(call("skip", {}))),
    step(text("Read.")),
  ]);
  let runs = 0;
  const hear = async (words: string): Promise<void> => {
    await space.post(husam, words);
    runs += 1;
    await ended(house.workspaceId, analyst, Math.min(runs, 100));
  };
  await hear("Hello");
  await hear("Not for you");
  const rowsRead = async () => {
    const statements = await statementsOf(agentStub(analyst));
    const view = unwrap(await agent.context(house.workspaceId));
    return { view, rows: statements.reduce((sum, { cursor }) => sum + cursor.rowsRead, 0) };
  };
  await hear("Nor this");
  const few = await rowsRead();
  // As a long silence would have left them: each with its row in the journal.
  await runInDurableObject(agentStub(analyst), (_, { storage: { sql } }) => {
    sql.exec(
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
       INSERT INTO journal (seq, run_ordinal, step, kind, content, meta, created_at)
       SELECT j.seq + i, 3 + i, 0, 'inbox', '{"role":"user","content":"INBOX"}', '{"kind":"inbox","lines":["line"]}', 0
       FROM n, (SELECT max(seq) AS seq FROM journal) AS j`,
    );
    sql.exec(
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
       INSERT INTO runs (ordinal, id, status, "trigger", events, roots, space_ids, window_id, journal_from, journal_to,
         told, kept, kept_before, silent_before, started_at, completed_at, continuity)
       SELECT 3 + i, 'run' || i, 'skipped', r."trigger", '[1]', '[]', '[]', r.window_id, j.seq - 5000 + i,
         j.seq - 5000 + i, r.told, 0, 1, 1 + i, 0, 0, r.continuity
       FROM n, (SELECT * FROM runs WHERE ordinal = 3) AS r, (SELECT max(seq) AS seq FROM journal) AS j`,
    );
  });
  // The object keeps the newest run in memory; what was written past it is read once it wakes anew.
  await evictDurableObject(agentStub(analyst));
  const many = await rowsRead();
  expect(many.rows).toBeLessThan(few.rows + 200);
  expect(many.view.sections.at(-1)?.text).toContain("(4952 earlier ones left out)");
  await space.post(husam, "And now?");
  await vi.waitUntil(() => model.calls.length >= 6);
  await space.post(husam, "Speak");
  await vi.waitUntil(() => model.calls.length === 7);
  expect(userTexts(model.calls[6])[0]).toContain("Hello");
});

test("a notice of messages left to a space's history is shown until a kept cycle has read it", async () => {
  const { analyst, ask } = await openScene();
  const model = scripted([
    step(text("Read.")),
    step(call("skip", {})),
    refusal(apiError(400)),
    step(text("Read.")),
    step(text("Read.")),
  ]);
  await ask("zero");
  await runInDurableObject(agentStub(analyst), (_, { storage }) => {
    storage.sql.exec("UPDATE spaces SET left_to_history = 7");
  });
  // It remembers its rows: what was written behind its back is read after a sleep.
  await evictDurableObject(agentStub(analyst));
  for (const [index, words] of ["one", "two", "three", "four"].entries()) {
    await ask(words, index + 2);
  }
  const told = [1, 2, 3, 4].map((index) => userTexts(model.calls[index]).at(-1)?.includes("(7 earlier messages"));
  expect(told).toEqual([true, true, true, false]);
});
