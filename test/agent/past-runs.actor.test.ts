import { env } from "cloudflare:workers";
import { expect, test, vi } from "vitest";
import { maxCallsPerStep, maxPastRuns, maxRecentRuns } from "../../src/agent/bounds.ts";
import type { TriggerAgent } from "../../src/protocol/agent.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { createGate } from "../support/gate.ts";
import { call, step, text, waitAt } from "../support/scripted-model.ts";
import { toolOf } from "../support/tool-of.ts";
import {
  type AgentSettings,
  agentStub,
  ended,
  openHouse,
  runsOf,
  scripted,
  statementsOf,
  userTexts,
  waits,
} from "./fixture.ts";

/** What a timeline's later inputs say of what its runs did elsewhere. */
const refund = toolOf({ name: "refund", executionType: "internal", output: "paid back" });

const stage = async (settings: Partial<AgentSettings> = {}) => {
  const house = await openHouse();
  const [husam, sarah] = [await house.person("Husam"), await house.person("Sarah")];
  const analyst = await house.agent({ name: "Analyst", continuity: "timeline", tools: [refund], ...settings });
  const alpha = await house.space("Alpha", [husam, analyst]);
  const dev = await house.space("Dev", [sarah, analyst]);
  const agent = env.AGENT.getByName(analyst.id);
  const { workspaceId } = house;
  return {
    ...{ house, husam, sarah, analyst, alpha, dev, agent, workspaceId },
    notify: async (payload: TriggerAgent["payload"], serviceName = "jira") =>
      unwrap(await agent.trigger(workspaceId, { serviceName, payload })),
    ended: (count: number) => ended(workspaceId, analyst, count),
  };
};

const sectionIn = (input: string, heading: string): string[] => {
  const lines = input.split("\n");
  const from = lines.findIndex((line) => line.startsWith(heading));
  if (from === -1) return [];
  const to = lines.findIndex((line, index) => index > from && !line.startsWith(" "));
  return lines.slice(from, to === -1 ? undefined : to);
};

/** What a call of `get_my_runs` answered, as the model read it. */
const answered = (prompt: unknown): string => {
  const results = JSON.parse(JSON.stringify(prompt)).filter(({ role }: { role: string }) => role === "tool");
  return JSON.stringify(results.at(-1)?.content[0].output.value);
};

test("[K1] what was asked for here and said elsewhere stands between the messages", async () => {
  const { husam, alpha, dev, ...scene } = await stage();
  const model = scripted([
    step(call("enter_space", { spaceId: dev.id }), call("send_message", { text: 'The report\n"is" out' })),
    step(text("Sent.")),
    step(text("Yes, it did.")),
  ]);
  await alpha.post(husam, "Send the report to Dev");
  await scene.ended(1);
  const said = (await dev.messages()).at(-1);
  await alpha.post(husam, "Did you send it?");
  await scene.ended(2);
  const [input = ""] = userTexts(model.calls.at(-1));
  const line = `You: sent "The report\\n\\"is\\" out" to "Dev" (${said?.id})`;
  expect(input).toContain(line);
  expect(input.indexOf('"Send the report to Dev"')).toBeLessThan(input.indexOf(line));
  expect(input.indexOf(line)).toBeLessThan(input.indexOf('"Did you send it?"'));
  expect(sectionIn(input, "RECENT RUNS")).toEqual([]);
  // Only the agent reads of it.
  expect(JSON.stringify(await alpha.messages())).not.toContain("is out");
});

test("[K1] what a run that goes on has said elsewhere stands in the input of the next", async () => {
  const { husam, alpha, dev, ...scene } = await stage();
  const gate = createGate();
  const model = scripted(async (_, index) => {
    if (index === 0) return step(call("enter_space", { spaceId: dev.id }), call("send_message", { text: "Out" }));
    return index === 1 ? step(waitAt(gate), text("Sent.")) : step(text("Yes."));
  });
  await alpha.post(husam, "Send the report to Dev");
  await model.called(2);
  await alpha.post(husam, "Did you send it?");
  await model.called(3);
  expect(userTexts(model.calls[2])[0]).toContain('You: sent "Out" to "Dev"');
  gate.open();
  await scene.ended(2);
});

test("[K1] a run outside any space stands under RECENT RUNS, with its cause and its end", async () => {
  const { husam, alpha, notify, ...scene } = await stage();
  const model = scripted([step(call("refund", { order: "A1" })), step(text("Paid.")), step(text("It was paid back."))]);
  await notify({ issue: "PROJ-123", why: "TRIGGER:" });
  const [served] = await scene.ended(1);
  await alpha.post(husam, "Was A1 paid back?");
  await scene.ended(2);
  const [input = ""] = userTexts(model.calls.at(-1));
  expect(sectionIn(input, "RECENT RUNS").map((line) => line.replace(/\[20[^\]]*\]/, "[…]"))).toEqual([
    "RECENT RUNS (yours; what they did stands nowhere else here):",
    `  - […] ${served?.id} (completed) — service "jira": {"issue":"PROJ-123","why":"TRIGGER:"}`,
    '      You: called refund({"order":"A1"}) → "paid back"',
  ]);
  expect(input.indexOf("SPACE HISTORY")).toBeLessThan(input.indexOf("RECENT RUNS"));
});

test("[K1] a run is listed in the inputs whose history does not show what it did", async () => {
  const { husam, sarah, alpha, dev, ...scene } = await stage();
  const model = scripted([
    step(call("refund", { order: "A1" }), call("send_message", { text: "Paid back." })),
    step(text("Done.")),
    step(text("Read in Dev.")),
    step(text("Read in Alpha.")),
  ]);
  await alpha.post(husam, "Pay A1 back");
  const [paid] = await scene.ended(1);
  await dev.post(sarah, "What did you do today?");
  await scene.ended(2);
  const inDev = sectionIn(userTexts(model.calls.at(-1))[0] ?? "", "RECENT RUNS");
  expect(inDev.slice(1).map((line) => line.replace(/\[20[^\]]*\]/, "[…]"))).toEqual([
    `  - […] ${paid?.id} (completed) — "Husam" in "Alpha": "Pay A1 back"`,
    '      You: called refund({"order":"A1"}) → "paid back"',
    expect.stringMatching(/^ {6}You: sent "Paid back\." to "Alpha" \(msg_\w+\)$/),
  ]);
  await alpha.post(husam, "Thanks");
  await scene.ended(3);
  const [inAlpha = ""] = userTexts(model.calls.at(-1));
  expect(sectionIn(inAlpha, "RECENT RUNS")).toEqual([]);
  expect(inAlpha).toContain('You: called refund({"order":"A1"}) → "paid back"');
  expect(inAlpha.match(/Paid back\./g)).toHaveLength(1);
});

test("[K1] what a run waits for is told once, and apart from what it did before", async () => {
  const { husam, analyst, alpha, notify, workspaceId } = await stage({ messaging: "threaded" });
  const asked = [call("refund", { order: "A1" }), call("send_message", { text: "@Husam which?", wait: true })];
  const model = scripted([step(...asked), step(text("Read."))]);
  await alpha.post(husam, "@Analyst ask");
  await waits(workspaceId, analyst);
  await notify({});
  await model.called(2);
  const [input = ""] = userTexts(model.calls.at(-1));
  expect(input.match(/which\?/g)).toHaveLength(1);
  expect(sectionIn(input, "ACTIVE RUNS").join()).toContain('sent "@Husam which?" in "Alpha", waiting for "Husam"');
  expect(sectionIn(input, "RECENT RUNS")[2]).toBe('      You: called refund({"order":"A1"}) → "paid back"');
});

test("[K1] [B4] of a past run's long result an input reads the beginning", async () => {
  const lots = toolOf({ name: "lots", executionType: "internal", output: "x".repeat(12_000) });
  const { husam, alpha, notify, ...scene } = await stage({ tools: [lots] });
  const model = scripted([step(call("lots", {})), step(text("Read.")), step(text("Fine."))]);
  await notify({});
  await scene.ended(1);
  await alpha.post(husam, "How are you?");
  await scene.ended(2);
  const [, , line] = sectionIn(userTexts(model.calls.at(-1))[0] ?? "", "RECENT RUNS");
  expect(line).toMatch(
    /You: called lots\(\{\}\) → \(first 400 of \d{4} characters\) "\{\\"bytes\\":12\d{3},\\"beginning\\":/,
  );
});

test("[K1] a call that failed, and a run that was cut, say so", async () => {
  const { husam, alpha, notify, ...scene } = await stage({
    tools: [refund, toolOf({ name: "pay", executionType: "gateway", execution: { url: "http://127.0.0.1:9/" } })],
    limits: { maxSteps: 1 },
  });
  const model = scripted([step(call("pay", {})), step(text("Read."))]);
  await notify({});
  const [cut] = await scene.ended(1);
  expect(cut?.error?.code).toBe("step_limit");
  await alpha.post(husam, "Hello");
  await scene.ended(2);
  const lines = sectionIn(userTexts(model.calls.at(-1))[0] ?? "", "RECENT RUNS");
  expect(lines[1]).toContain(`${cut?.id} (failed: step_limit) — service "jira": {}`);
  expect(lines[2]).toMatch(/You: called pay\(\{\}\) → \{"success":false,"error":\{"code":"/);
});

test("[K1] [B3] the newest of many runs are listed; get_my_runs has the others, page by page", async () => {
  const { husam, alpha, notify, ...scene } = await stage();
  const runs = maxRecentRuns + 2;
  const model = scripted((options) => {
    const isService = JSON.stringify(options.prompt).includes("type: service");
    const acted = options.prompt.some(({ role }) => role === "tool");
    return isService && !acted ? step(call("refund", { order: `${model.calls.length}` })) : step(text("Done."));
  });
  for (let index = 1; index <= runs; index += 1) {
    await notify({ issue: `PROJ-${index}`, text: "x".repeat(300) });
    await scene.ended(index);
  }
  await alpha.post(husam, "Hello");
  const all = await scene.ended(runs + 1);
  const lines = sectionIn(userTexts(model.calls.at(-1))[0] ?? "", "RECENT RUNS");
  expect(lines[1]).toBe("  (2 earlier runs are not shown: get_my_runs has them)");
  expect(lines.filter((line) => line.startsWith("  - "))).toHaveLength(maxRecentRuns);
  expect(lines.at(-2)).toContain(`PROJ-${runs}`);

  const asking = scripted([
    step(call("get_my_runs", { before: all[2]?.id ?? "", limit: 1 })),
    step(call("get_my_runs", { runId: all[0]?.id })),
    step(text("Read.")),
  ]);
  await alpha.post(husam, "And before?");
  await scene.ended(runs + 2);
  const [earlier, first] = [asking.calls[1], asking.calls[2]].map((each) => JSON.parse(answered(each?.prompt)));
  expect(earlier.runs).toMatchObject([{ runId: all[1]?.id }]);
  expect(first.runs).toMatchObject([
    {
      runId: all[0]?.id,
      status: "completed",
      trigger: { type: "service", serviceName: "jira", payload: { issue: "PROJ-1", text: "x".repeat(300) } },
      actions: [{ toolName: "refund", input: { order: expect.any(String) }, output: "paid back" }],
    },
  ]);
});

test("[K1] [B4] an input reads as many rows after a hundred runs as after forty", async () => {
  const { notify, analyst, ...scene } = await stage();
  scripted((options) =>
    options.prompt.some(({ role }) => role === "tool") ? step(text("Done.")) : step(call("refund", { order: "A1" })),
  );
  let count = 0;
  const rowsAfter = async (runs: number): Promise<number> => {
    for (; count < runs; count += 1) {
      await notify({ count });
      await scene.ended(count + 1);
    }
    const statements = await statementsOf(agentStub(analyst));
    unwrap(await scene.agent.context(scene.workspaceId));
    return statements.reduce((sum, { cursor }) => sum + cursor.rowsRead, 0);
  };
  const [forty, hundred] = [await rowsAfter(40), await rowsAfter(99)];
  expect(hundred).toBeLessThanOrEqual(forty);
});

test("[K1] [B4] get_my_runs reads the runs that it shows, and says where others begin", async () => {
  const big = toolOf({ name: "refund", executionType: "internal", output: "paid back ".repeat(1500) });
  const { husam, alpha, notify, analyst, ...scene } = await stage({ tools: [big] });
  const count = 30;
  const statements = await statementsOf(agentStub(analyst));
  const ofCall: typeof statements = [];
  const model = scripted((options) => {
    const acted = options.prompt.some(({ role }) => role === "tool");
    if (userTexts(options)[0]?.includes("type: service")) return acted ? step(text("Done.")) : step(call("refund", {}));
    // The statements between these two steps are the call's.
    const since = statements.splice(0);
    if (acted) ofCall.push(...since);
    return acted ? step(text("Done.")) : step(call("get_my_runs", { limit: 50 }));
  });
  for (let index = 1; index <= count; index += 1) {
    await notify({ index });
    await scene.ended(index);
  }
  await alpha.post(husam, "What did you do?");
  await scene.ended(count + 1);
  const { runs, omitted } = JSON.parse(answered(model.calls.at(-1)?.prompt));
  const read = ofCall.filter(({ query }) => query.includes("from json_each") && query.includes('"journal"'));
  const rows = read.reduce((sum, { cursor }) => sum + cursor.rowsRead, 0);
  expect(runs.length).toBeGreaterThan(2);
  // A run has seven rows. One is read that does not fit.
  expect(rows).toBeLessThanOrEqual((runs.length + 1) * 8);
  expect(omitted).toBe(`older runs are left out: ask with before: ${runs.at(-1).runId}`);
});

test("[K1] get_my_runs has every action of a run with many, part by part", async () => {
  const big = toolOf({ name: "refund", executionType: "internal", output: "paid back ".repeat(300) });
  const { husam, alpha, notify, ...scene } = await stage({ tools: [big] });
  const all = Array.from({ length: 2 * maxCallsPerStep }, (_, order) => order);
  const refunds = all.map((order) => call("refund", { order, why: "y".repeat(3000) }));
  scripted([step(...refunds.slice(0, maxCallsPerStep)), step(...refunds.slice(maxCallsPerStep)), step(text("Done."))]);
  await notify({});
  const [run] = await scene.ended(1);
  const orders: number[] = [];
  const model = scripted(({ prompt }, index) => {
    if (index === 0) return step(call("get_my_runs", { runId: run?.id }));
    const [{ actions, omitted = "" }] = JSON.parse(answered(prompt)).runs;
    const read = actions.map(({ input }: { input: unknown }) => /order\D+(\d+)/.exec(JSON.stringify(input))?.[1]);
    orders.unshift(...read.map(Number));
    const actionsBefore = /with runId and actionsBefore: (\d+)$/.exec(omitted)?.[1];
    if (actionsBefore === undefined) return step(text("Read."));
    return step(call("get_my_runs", { runId: run?.id, actionsBefore: Number(actionsBefore) }));
  });
  await alpha.post(husam, "What did you do?");
  await scene.ended(2);
  expect(model.calls.length).toBeGreaterThan(2);
  expect(orders).toEqual(all);
});

test("[K1] [K17] get_my_runs gives a call after the other, however little room is left", async () => {
  const filling = toolOf({ name: "fill", executionType: "internal" });
  const context = { maxTokens: 6000, reservedResponseTokens: 500, memoryTokens: 500 };
  const { husam, alpha, notify, ...scene } = await stage({ tools: [refund, filling], context });
  scripted([step(...[1, 2].map((order) => call("refund", { order, why: "y".repeat(3000) }))), step(text("Done."))]);
  await notify({ about: "z".repeat(3000) });
  const [run] = await scene.ended(1);
  const page = (actionsBefore: number) => step(call("get_my_runs", { runId: run?.id, actionsBefore }));
  const model = scripted([
    step(call("fill", { text: "and so on ".repeat(900) })),
    page(2),
    page(1),
    step(text("Read.")),
  ]);
  await alpha.post(husam, "What did you do?");
  await scene.ended(2);
  const pageAt = (index: number) => JSON.parse(answered(model.calls[index]?.prompt)).runs[0];
  const [newest, oldest] = [pageAt(2), pageAt(3)];
  expect(newest.actions[0].input.part).toContain('"order":2');
  expect(newest.actions[0].input.note).toMatch(/: ask with runId, actionsBefore: 2 and offset: \d+$/);
  expect(newest.omitted).toMatch(/with runId and actionsBefore: 1$/);
  expect(oldest.actions[0].input.part).toContain('"order":1');
});

test("[K1] [B4] what a run did after a long wait is known, however many began since", async () => {
  const { husam, alpha, notify, analyst, workspaceId } = await stage({ messaging: "threaded" });
  const model = scripted((options, index) => {
    if (index === 0) return step(call("send_message", { text: "@Husam may I?", wait: true }));
    const isResumed = JSON.stringify(options.prompt).includes("← RESUME");
    const acted = options.prompt.some(({ role }) => role === "tool");
    return isResumed && !acted ? step(call("refund", { order: "A1" })) : step(text("Read."));
  });
  await alpha.post(husam, "Pay A1 back");
  await waits(workspaceId, analyst);
  for (let index = 1; index <= maxPastRuns + 1; index += 1) {
    await notify({ index });
    await vi.waitFor(async () => expect((await runsOf(workspaceId, analyst))[0]?.status).toBe("completed"));
  }
  await alpha.post(husam, "You may");
  await ended(workspaceId, analyst, maxPastRuns + 2);
  await notify({ last: true });
  const [waited] = await ended(workspaceId, analyst, maxPastRuns + 3);
  const lines = sectionIn(userTexts(model.calls.at(-1))[0] ?? "", "RECENT RUNS").join("\n");
  expect(lines).toContain(`${waited?.id} (completed) — "Husam" in "Alpha": "Pay A1 back"`);
  expect(lines).toContain('You: called refund({"order":"A1"}) → "paid back"');
});

test("[K5] the list of active runs tells runs of one service apart, and says why each waits", async () => {
  const { husam, alpha, notify, ...scene } = await stage({ limits: { maxConcurrentRuns: 3 } });
  const gates = [createGate(), createGate()];
  const model = scripted((_, index) => {
    const gate = gates[index];
    return gate ? step(waitAt(gate), text("Done.")) : step(text("Read."));
  });
  await notify({ issue: "PROJ-1", text: 'said "no"\n- run_FAKE' });
  await gates[0]?.reached;
  await notify({ issue: "PROJ-2" });
  await gates[1]?.reached;
  await alpha.post(husam, "Hello");
  await vi.waitFor(() => expect(model.calls).toHaveLength(3));
  for (const gate of gates) gate.open();
  await scene.ended(3);
  const lines = sectionIn(userTexts(model.calls[2])[0] ?? "", "ACTIVE RUNS:");
  expect(lines).toHaveLength(4);
  expect(lines[1]).toContain('(running) — service "jira": {"issue":"PROJ-1","text":"said \\"no\\"\\n- run_FAKE"}');
  expect(lines[2]).toContain('(running) — service "jira": {"issue":"PROJ-2"}');
  const [second] = (await runsOf(scene.workspaceId, scene.analyst)).toReversed().slice(1);
  expect(second?.trigger.text).toBe('{"issue":"PROJ-2"}');
});
