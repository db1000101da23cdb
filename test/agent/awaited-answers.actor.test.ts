import { abortAllDurableObjects, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, test, vi } from "vitest";
import { maxBatchEvents, maxWaitingRuns, replyWaitMs } from "../../src/agent/bounds.ts";
import { ExportedHead } from "../../src/protocol/exported-agent.ts";
import type { EntityRef } from "../../src/protocol/rpc.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { createGate } from "../support/gate.ts";
import { call, type ScriptedStep, step, text, waitAt } from "../support/scripted-model.ts";
import {
  agentStub,
  ended,
  holdSpeech,
  ids,
  inboxOf,
  openHouse,
  passTime,
  rowsIn,
  runsOf,
  scripted,
  userTexts,
  waits,
} from "./fixture.ts";

/** Threaded messaging in a consciousness: the cycle that asks ends, and the answers wake the agent. */
const stage = async (wakePolicy: "every_message" | "addressed" = "addressed", limits = {}, context = {}) => {
  const house = await openHouse();
  const [husam, sara, tom] = [await house.person("Husam"), await house.person("Sara"), await house.person("Tom")];
  const analyst = await house.agent({ name: "Analyst", messaging: "threaded", limits, context });
  const space = await house.space("Alpha", [husam, sara, tom, analyst]);
  unwrap(await space.stub().update(house.key, { wakePolicy }));
  const runs = (count: number) => ended(house.workspaceId, analyst, count);
  const statuses = async () => (await inboxOf(house.workspaceId, analyst)).map(({ wakes, status }) => [wakes, status]);
  const agent = env.AGENT.getByName(analyst.id);
  return { house, husam, sara, tom, analyst, space, key: house.key, runs, statuses, agent };
};

const continuities = ["consciousness", "timeline"] as const;

const asks = (spaceId: string, words: string): ScriptedStep =>
  step(call("enter_space", { spaceId }), call("send_message", { text: words, wait: true }));

/** The lines of the newest inbox that a model was given. */
const inboxIn = (model: ReturnType<typeof scripted>): string[] => {
  const lines = (userTexts(model.calls.at(-1)).findLast((words) => words.includes("INBOX (")) ?? "").split("\n");
  return lines.slice(lines.findIndex((line) => line.startsWith("INBOX (")));
};

const linesOf = (model: ReturnType<typeof scripted>): string[] =>
  inboxIn(model).filter((line) => line.startsWith("  ["));

/** Waits until the agent has taken in so many events that no run has taken. */
const holds = (workspaceId: string, agent: EntityRef, count: number): Promise<void> =>
  vi.waitFor(async () => expect(await inboxOf(workspaceId, agent)).toHaveLength(count));

test.each(["addressed", "every_message"] as const)(
  "[K8] the awaited answers wake a cycle together, and say what they answer (%s)",
  async (policy) => {
    const { house, husam, sara, tom, analyst, space, runs, statuses } = await stage(policy);
    const model = scripted([asks(space.id, "@Sara @Tom which quarter?"), step(text("Both said it."))]);
    await space.post(husam, "@Analyst ask them");
    const [asked] = await runs(1);
    expect(asked).toMatchObject({ status: "completed", outcome: "answered" });
    expect(model.calls).toHaveLength(1);
    const question = (await space.messages()).at(-1)?.id;

    await space.post(sara, "Q4");
    await holds(house.workspaceId, analyst, 1);
    expect(await statuses()).toEqual([[false, "pending"]]);
    const [held] = await inboxOf(house.workspaceId, analyst);
    expect(held?.data).toMatchObject({ answers: [{ messageId: question, text: "@Sara @Tom which quarter?" }] });
    expect(model.calls).toHaveLength(1);
    await space.post(tom, "The last one");
    const [, answered, ...others] = await runs(2);
    expect(others).toEqual([]);
    expect(answered).toMatchObject({ status: "completed", trigger: { eventCount: 2, text: "The last one" } });
    const lines = linesOf(model);
    const begin = `  [answer to ${question} "@Sara @Tom which quarter?"] ["Alpha", ${space.id}]`;
    expect(lines.map((line) => line.startsWith(begin))).toEqual([true, true]);
    const source = policy === "addressed" ? "answer" : policy;
    expect(lines[0]).toContain(`"Q4" [triggerSource: ${source}]`);
    expect(lines[1]).toContain('"The last one"');
    expect(answered?.prefixReuse).toBeGreaterThan(0.99);
    expect(await inboxOf(house.workspaceId, analyst)).toEqual([]);
  },
);

/** So many messages like the newest that was overheard, after it. */
const chatter = (agent: EntityRef, count: number): Promise<void> =>
  runInDurableObject(agentStub(agent), (_, { storage }) => {
    storage.sql.exec(
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
       INSERT INTO overheard (seq, event_id, type, data, root_id, received_at)
       SELECT seq + i, event_id || i, type, json_set(data, '$.delivered.message.text', 'Rain ' || i), root_id, 0
       FROM n, (SELECT * FROM overheard ORDER BY seq DESC LIMIT 1)`,
    );
  });

test.each([false, true])(
  "[K8] [B3] answers come in one batch, whatever was said between them (root muted: %s)",
  async (isMuted) => {
    const { house, husam, sara, tom, analyst, space, runs, agent } = await stage("addressed", { maxWakesPerRoot: 1 });
    const model = scripted((_, index) => (index === 0 ? asks(space.id, "@Sara @Tom good?") : step(text("Read."))));
    await space.post(husam, "@Analyst ask them");
    await runs(1);
    await space.post(sara, "Good");
    if (isMuted) {
      await space.post(husam, "Sun");
      // The agent's last wake has the same root, and leaves the answer where it is.
      const root = ids.deriveOwned("evt", analyst.id, "trigger", "tick");
      await runInDurableObject(agentStub(analyst), (_, { storage }) => {
        storage.sql.exec(
          "UPDATE inbox SET root_id = ?1, data = json_set(data, '$.delivered.root.id', ?1, '$.delivered.root.kind', 'agent')",
          root,
        );
      });
      unwrap(await agent.update(house.workspaceId, { context: { maxEvents: 1 } }));
      unwrap(await agent.trigger(house.workspaceId, { serviceName: "clock", payload: 1 }, "tick"));
      await runs(2);
      expect(await inboxOf(house.workspaceId, analyst)).toMatchObject([{ data: { message: { text: "Good" } } }]);
      unwrap(await agent.update(house.workspaceId, { context: { maxEvents: null } }));
    }
    await space.post(husam, "Rain 0");
    await holds(house.workspaceId, analyst, 2);
    await chatter(analyst, 150);
    await space.post(tom, "Bad");
    const all = await runs(isMuted ? 3 : 2);
    expect(all.at(-1)?.trigger).toMatchObject({ text: "Bad", eventCount: maxBatchEvents });
    const [left, ...lines] = linesOf(model);
    expect(left).toContain("(53 earlier messages: read_messages shows them)");
    expect(lines[0]).toMatch(/\[answer to .* "Good"/);
    expect(lines.at(-1)).toMatch(/\[answer to .* "Bad"/);
    const heard = lines.slice(1, -1).map((line) => Number(/"Rain (\d+)"/.exec(line)?.[1]));
    expect(heard).toEqual(Array.from({ length: maxBatchEvents - 2 }, (_, index) => index + 53));
    expect(await inboxOf(house.workspaceId, analyst)).toEqual([]);
  },
);

test.each(continuities)(
  "[K8] an answer that came before a second question is held for the first (%s)",
  async (continuity) => {
    const { house, husam, sara, tom, analyst, space, agent } = await stage("every_message");
    unwrap(await agent.update(house.workspaceId, { continuity }));
    const [words, later] = ["@Sara @Tom which quarter?", "@Sara and which year?"];
    const model = scripted((_, index) =>
      index > 0
        ? step(text("Read."))
        : step(
            call("enter_space", { spaceId: space.id }),
            call("send_message", { text: words, wait: true }),
            call("send_message", { text: later, wait: true }),
          ),
    );
    const saying = createGate();
    holdSpeech(saying, "before", later);
    await space.post(husam, "Ask");
    await saying.reached;
    await space.post(sara, "Q4");
    await holds(house.workspaceId, analyst, 2);
    saying.open();
    await vi.waitFor(async () => expect(await space.texts()).toContain(`Analyst: ${later}`));
    await vi.waitFor(async () => expect((await runsOf(house.workspaceId, analyst))[0]?.status).not.toBe("running"));
    expect(
      (await inboxOf(house.workspaceId, analyst)).filter(({ wakes, status }) => wakes && status === "pending"),
    ).toEqual([]);
    expect(model.calls).toHaveLength(1);
    await space.post(tom, "The last one");
    await space.post(sara, "2030");
    await vi.waitFor(() => expect(model.calls.flatMap(userTexts).join("\n")).toContain("2030"));
    const told = model.calls.flatMap(userTexts).join("\n");
    if (continuity === "timeline") expect(told).toMatch(/"Q4" {2}\[NEW\] ← REPLY/);
    else expect(told).toMatch(/which quarter\?"\] \["Alpha".*"Q4".*\n.*which quarter\?"\] \["Alpha".*"The last one"/);
    await vi.waitFor(async () => expect(await inboxOf(house.workspaceId, analyst)).toEqual([]));
  },
);

test.each([
  ["consciousness", "time is up", 'no answer from "Tom" after 24 h'],
  ["consciousness", "he leaves", 'no answer from "Tom", who left'],
  ["timeline", "time is up", '"Tom" did not reply in time'],
  ["timeline", "he leaves", '"Tom" left the space without a reply.'],
] as const)("[K8] a %s is told who gave no answer until %s, with the answers", async (continuity, until, told) => {
  const { house, husam, sara, tom, analyst, space, key, agent, runs } = await stage();
  unwrap(await agent.update(house.workspaceId, { continuity }));
  const model = scripted([asks(space.id, "@Sara @Tom good?"), step(text("Tom is silent."))]);
  await space.post(husam, "@Analyst ask them");
  await runs(1);
  await space.post(sara, "Good");
  await holds(house.workspaceId, analyst, continuity === "timeline" ? 2 : 1);
  if (until === "he leaves") unwrap(await space.stub().removeMember(key, tom.id));
  else await passTime(analyst, replyWaitMs + 1000);
  await model.called(2);
  vi.useRealTimers();
  const [, question] = await space.messages();
  if (continuity === "consciousness") {
    const silence = `  [${told}] ["Alpha", ${space.id}] to ${question?.id} "@Sara @Tom good?"`;
    expect(linesOf(model)).toEqual([expect.stringMatching(/^ {2}\[answer to .* "Good"/), silence]);
  } else {
    const [prompt = ""] = userTexts(model.calls[1]);
    expect(prompt).toMatch(/"Good" {2}\[NEW\] ← REPLY/);
    expect(prompt).toContain(told);
  }
});

test("[K8] a wait that nobody answers ends by itself, once, after an eviction too", async () => {
  const { husam, analyst, space, runs, house } = await stage();
  const activity = async () => unwrap(await env.AGENT.getByName(analyst.id).describe(house.workspaceId)).activity;
  const model = scripted([asks(space.id, "@Sara?"), step(text("Nobody is there.")), step(text("Read."))]);
  await space.post(husam, "@Analyst ask");
  await runs(1);
  const waiting = await activity();
  expect(waiting?.waiting).toMatchObject({ replies: 1, events: 0 });
  expect(Date.parse(waiting?.nextDueAt ?? "")).toBeGreaterThan(Date.now() + replyWaitMs - 60_000);
  await abortAllDurableObjects();
  await passTime(analyst, replyWaitMs + 1000);
  await runs(2);
  expect(linesOf(model)).toEqual([expect.stringMatching(/^ {2}\[no answer from "Sara" after 24 h\]/)]);
  await passTime(analyst, replyWaitMs + 1000);
  vi.useRealTimers();
  await space.post(husam, "@Analyst and?");
  expect(await runs(3)).toHaveLength(3);
  expect((await activity())?.waiting.replies).toBe(0);
});

test("[K8] what else wakes the agent brings the answers that are there; the wait goes on", async () => {
  const { husam, sara, tom, space, runs } = await stage();
  const model = scripted([asks(space.id, "@Sara @Tom good?"), step(text("Not yet.")), step(text("Now both."))]);
  await space.post(husam, "@Analyst ask them");
  await runs(1);
  await space.post(sara, "Good");
  await space.post(husam, "@Analyst any news?");
  await runs(2);
  expect(linesOf(model)).toEqual([
    expect.stringMatching(/\[answer to .* "Good"/),
    expect.stringContaining('"@Analyst any news?"'),
  ]);
  await space.post(tom, "Good, too");
  await runs(3);
  expect(linesOf(model)).toEqual([expect.stringMatching(/^ {2}\[answer to .* "Good, too"/)]);
});

test("[K8] an answer that comes while the cycle is still asking waits for its end", async () => {
  const { house, husam, sara, analyst, space, runs } = await stage();
  const saying = createGate();
  const model = scripted([asks(space.id, "@Sara good?"), step(text("She agrees."))]);
  holdSpeech(saying, "after");
  await space.post(husam, "@Analyst ask");
  await saying.reached;
  await space.post(sara, "Good");
  await holds(house.workspaceId, analyst, 2);
  saying.open();
  await runs(2);
  expect(linesOf(model)).toEqual([expect.stringMatching(/^ {2}\[answer to msg_\S+ "@Sara good\?"\] .* "Good"/)]);
});

test("[K8] [B1] an awaited answer counts like any wake: two that ask each other come to an end", async () => {
  const house = await openHouse();
  const husam = await house.person("Husam");
  const limits = { maxWakesPerRoot: 3 };
  const [one, two] = [
    await house.agent({ name: "One", messaging: "threaded", limits }),
    await house.agent({ name: "Two", messaging: "threaded", limits }),
  ];
  const space = await house.space("Alpha", [husam, one, two]);
  unwrap(await space.stub().update(house.key, { wakePolicy: "addressed" }));
  scripted((options) => {
    const other = JSON.stringify(options.prompt[0]).includes('name: \\"One\\"') ? "Two" : "One";
    return asks(space.id, `@${other} and you?`);
  });
  await space.post(husam, "@One begin");
  await vi.waitFor(async () => {
    const counts = await Promise.all([one, two].map(async (each) => (await runsOf(house.workspaceId, each)).length));
    expect(counts).toEqual([3, 3]);
  });
  await passTime(one, replyWaitMs + 1000);
  await passTime(two, replyWaitMs + 1000);
  vi.useRealTimers();
  await ended(house.workspaceId, one, 3);
  expect(await runsOf(house.workspaceId, two)).toHaveLength(3);
});

test.each([
  ["consciousness", "answers", /\[answer to .* "Good"/],
  ["consciousness", "left", /no answer from "Sara", who left/],
  ["timeline", "answers", /"Good" {2}\[NEW\] ← REPLY/],
  ["timeline", "left", /"Sara" left the space/],
] as const)(
  "[K8] [R3] a %s that crashed after it asked awaits whom it asked, who %s",
  async (continuity, does, told) => {
    const { house, husam, sara, analyst, space, key, agent } = await stage();
    unwrap(await agent.update(house.workspaceId, { continuity }));
    const saying = createGate();
    const model = scripted((_, index) => (index === 0 ? asks(space.id, "@Sara good?") : step(text("Read."))));
    holdSpeech(saying, "after");
    await space.post(husam, "@Analyst ask");
    await saying.reached;
    await abortAllDurableObjects();
    if (does === "left") unwrap(await space.stub().removeMember(key, sara.id));
    saying.open();
    await passTime(analyst, 6000);
    vi.useRealTimers();
    if (does === "answers") await space.post(sara, "Good");
    await vi.waitFor(() => expect(model.calls.slice(1).flatMap(userTexts).join("\n")).toMatch(told));
    expect((await space.texts()).filter((words) => words === "Analyst: @Sara good?")).toHaveLength(1);
    const [asked] = (await runsOf(house.workspaceId, analyst)).slice(-1);
    expect(asked?.steps[0]?.toolCalls[1]).toMatchObject({ status: "complete", output: { waitingFor: ["Sara"] } });
  },
);

test("[K8] [R5] a canceled cycle waits for nobody: the answer is a message like any other", async () => {
  const { house, husam, sara, analyst, space, agent, runs } = await stage("every_message");
  const gate = createGate();
  const goesOn = [{ tool: "send_message", rule: "continue_loop" } as const];
  unwrap(await agent.update(house.workspaceId, { toolRules: goesOn }));
  const model = scripted([asks(space.id, "@Sara @Tom good?"), step(waitAt(gate), text("Never.")), step(text("Read."))]);
  await space.post(husam, "@Analyst ask");
  await gate.reached;
  await space.post(sara, "Good");
  await holds(house.workspaceId, analyst, 2);
  const [run] = await runsOf(house.workspaceId, analyst);
  unwrap(await agent.cancelRun(house.workspaceId, run?.id ?? ""));
  gate.open();
  const [canceled] = await runs(2);
  expect(canceled?.status).toBe("canceled");
  expect(linesOf(model)).toEqual([expect.stringContaining('"Good"')]);
  expect(unwrap(await agent.describe(house.workspaceId)).activity?.waiting.replies).toBe(0);
});

test.each(["a person", "stop_run"])(
  "[K8] [R5] an answer that a run had not read when %s canceled it begins a run",
  async (by) => {
    const { house, husam, sara, analyst, space, agent, runs } = await stage("every_message");
    unwrap(await agent.update(house.workspaceId, { continuity: "timeline" }));
    let waiting = "";
    const model = scripted((_, index) => {
      if (index === 0) return asks(space.id, "@Sara @Tom good?");
      return step(by === "stop_run" && index === 1 ? call("stop_run", { runId: waiting }) : text("Read."));
    });
    await space.post(husam, "Ask");
    await waits(house.workspaceId, analyst);
    const answer = await space.post(sara, "Good");
    await holds(house.workspaceId, analyst, 2);
    waiting = (await runsOf(house.workspaceId, analyst))[0]?.id ?? "";
    if (by === "stop_run") unwrap(await agent.trigger(house.workspaceId, { serviceName: "jira", payload: 1 }));
    else unwrap(await agent.cancelRun(house.workspaceId, waiting));
    const all = await runs(by === "stop_run" ? 3 : 2);
    expect([all[0]?.status, all.at(-1)?.trigger.text]).toEqual(["canceled", "Good"]);
    expect(model.calls.flatMap(userTexts).join("\n")).toMatch(/"Good" {2}\[NEW\] ← TRIGGER/);
    await vi.waitFor(async () => {
      const reads = unwrap(await space.stub().reads(space.as(husam), answer.id));
      expect(reads.map(({ runId }) => runId)).toEqual([all.at(-1)?.id]);
    });
  },
);

test.each(continuities)(
  "[K8] [B3] past maxWaitingRuns a %s cannot wait as well, and is told so",
  async (continuity) => {
    const { house, husam, analyst, space, agent, runs } = await stage();
    unwrap(await agent.update(house.workspaceId, { continuity }));
    await runInDurableObject(agentStub(analyst), (_, { storage }) => {
      storage.sql.exec(
        `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${maxWaitingRuns})
       INSERT INTO waits (call_id, run_ordinal, space_id, text, awaited, due_at)
       SELECT 'call' || i, 1000 + i, 'elsewhere', '', '[]', 0 FROM n`,
      );
    });
    scripted([asks(space.id, "@Sara good?"), step(text("Not asked."))]);
    await space.post(husam, "@Analyst ask");
    const [run] = await runs(1);
    expect(run?.status).toBe("completed");
    expect(await space.texts()).toEqual(["Husam: @Analyst ask"]);
    expect(JSON.stringify(run?.steps[0]?.toolCalls[1]?.output)).toContain(`maxWaitingRuns (${maxWaitingRuns})`);
  },
);

test("[K8] an agent that can wait is told who expects a reply; a simple one is not", async () => {
  const { house, husam, analyst, space, runs, agent } = await stage();
  const model = scripted([step(text("Read.")), step(text("Read."))]);
  const ask = async (words: string) =>
    unwrap(await space.stub().post(space.as(husam), { text: words, expectsReply: true }));
  await ask("@Analyst are you there?");
  await runs(1);
  expect(linesOf(model)[0]).toMatch(/\[expects a reply\]$/);
  unwrap(await agent.update(house.workspaceId, { messaging: "simple" }));
  await ask("@Analyst and now?");
  await ended(house.workspaceId, analyst, 2);
  expect(linesOf(model).at(-1)).toMatch(/"@Analyst and now\?" \[triggerSource: mention\]$/);
});

test("[K8] an agent that became a timeline still gets the answers that its cycle asked for", async () => {
  const { house, husam, sara, space, runs, agent } = await stage();
  const model = scripted([asks(space.id, "@Sara good?"), step(text("She agrees."))]);
  await space.post(husam, "@Analyst ask");
  await runs(1);
  unwrap(await agent.update(house.workspaceId, { continuity: "timeline" }));
  await space.post(sara, "Good");
  const [, answered] = await runs(2);
  expect(answered?.trigger.text).toBe("Good");
  expect(userTexts(model.calls[1])[0]).toMatch(/"Good" {2}\[NEW\] ← TRIGGER/);
});

test("[K8] an export with an open question is whole, and counts it as left behind", async () => {
  const { house, husam, space, runs, agent } = await stage();
  scripted([asks(space.id, "@Sara good?")]);
  await space.post(husam, "@Analyst ask");
  await runs(1);
  const { text: exported } = unwrap(await agent.exportPage(house.workspaceId, null));
  expect(ExportedHead.parse(JSON.parse(exported.split("\n")[0] ?? "")).agent.left).toMatchObject({ waits: 1, runs: 0 });
});

test.each(["is removed from its space", "loses its space"])(
  "[K8] an agent that %s stops waiting, and is told when next woken",
  async (how) => {
    const { house, husam, analyst, space, key, runs, agent } = await stage();
    const model = scripted([asks(space.id, "@Sara good?"), step(text("Read."))]);
    await space.post(husam, "@Analyst ask");
    await runs(1);
    const [, question] = await space.messages();
    unwrap(await (how === "loses its space" ? space.stub().remove(key) : space.stub().removeMember(key, analyst.id)));
    await vi.waitFor(async () =>
      expect(unwrap(await agent.describe(house.workspaceId)).activity?.waiting.replies).toBe(0),
    );
    expect(model.calls).toHaveLength(1);
    // Nothing is left of a deleted space.
    const [name, asked] = how === "loses its space" ? ["(deleted space)", "[deleted]"] : ["Alpha", "@Sara good?"];
    await vi.waitFor(async () =>
      expect(JSON.stringify(await rowsIn(analyst, "SELECT data FROM events"))).toContain(asked),
    );
    unwrap(await agent.trigger(house.workspaceId, { serviceName: "clock", payload: 1 }));
    await runs(2);
    expect(linesOf(model)).toEqual([
      `  [no answer from "Sara": you are no longer in the space] ["${name}", ${space.id}] to ${question?.id} "${asked}"`,
      '  [Service "clock"] 1',
    ]);
    expect(await inboxOf(house.workspaceId, analyst)).toEqual([]);
  },
);

test.each(continuities)("[K8] a reply to one of two questions leaves the other open (%s)", async (continuity) => {
  const { house, husam, sara, analyst, space, runs, agent } = await stage();
  unwrap(await agent.update(house.workspaceId, { continuity }));
  const question = (words: string) => call("send_message", { text: `@Sara ${words}`, wait: true });
  const both = [question("which quarter?"), question("which colour?")];
  const model = scripted((_, index) =>
    index === 0 ? step(call("enter_space", { spaceId: space.id }), ...both) : step(text("Read.")),
  );
  await space.post(husam, "@Analyst ask");
  if (continuity === "timeline") await waits(house.workspaceId, analyst);
  else await runs(1);
  const questions = (await space.messages()).slice(-2).map(({ id }) => id);
  const reply = async (to: number, words: string) =>
    unwrap(await space.stub().post(space.as(sara), { text: words, replyTo: questions[to] }));
  await reply(1, "Blue");
  if (continuity === "timeline") {
    await holds(house.workspaceId, analyst, 2);
    expect(model.calls).toHaveLength(1);
    await reply(0, "Q4");
    await model.called(2);
    expect(userTexts(model.calls[1])[0]).toMatch(/"Blue".* ← REPLY(.|\n)*"Q4".* ← REPLY/);
    return;
  }
  await runs(2);
  expect(linesOf(model)).toEqual([
    expect.stringContaining(`  [answer to ${questions[1]} "@Sara which colour?"] ["Alpha"`),
  ]);
  await reply(0, "Q4");
  await runs(3);
  expect(linesOf(model)).toEqual([
    expect.stringContaining(`  [answer to ${questions[0]} "@Sara which quarter?"] ["Alpha"`),
  ]);
});

test("[K8] an answer to two questions names both, and wakes for the one that is complete", async () => {
  const { husam, sara, tom, space, runs } = await stage();
  const model = scripted([
    step(
      call("enter_space", { spaceId: space.id }),
      call("send_message", { text: "@Sara @Tom which quarter?", wait: true }),
      call("send_message", { text: "@Sara and which year?", wait: true }),
    ),
    step(text("She said it.")),
    step(text("He, too.")),
  ]);
  await space.post(husam, "@Analyst ask");
  await runs(1);
  const [first, second] = (await space.messages()).slice(-2).map(({ id }) => id);
  await space.post(sara, "Q4 of 2030");
  await runs(2);
  expect(linesOf(model)).toEqual([
    expect.stringContaining(
      `[answer to ${first} "@Sara @Tom which quarter?"] [answer to ${second} "@Sara and which year?"] ["Alpha"`,
    ),
  ]);
  await space.post(tom, "Q4");
  await runs(3);
  expect(linesOf(model)).toEqual([expect.stringContaining(`[answer to ${first} `)]);
});
