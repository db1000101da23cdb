import { env } from "cloudflare:workers";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { unwrap } from "../../src/shared/errors.ts";
import { createGate } from "../support/gate.ts";
import {
  call,
  installModel,
  type Script,
  type ScriptedModel,
  type ScriptedStep,
  scriptedModel,
  step,
  text,
  waitAt,
} from "../support/scripted-model.ts";
import { ended, inboxOf, openHouse, passTime, runsOf, userTexts } from "./fixture.ts";

/** What holds for each of the four kinds of agent, by what its model reads and what its spaces hold. */
const kinds = [
  { continuity: "consciousness", messaging: "simple" },
  { continuity: "consciousness", messaging: "threaded" },
  { continuity: "timeline", messaging: "simple" },
  { continuity: "timeline", messaging: "threaded" },
] as const;

/** The newest input that a model was given, its tools' results included, as one text. */
const inputOf = (model: ScriptedModel): string => {
  const last = model.calls.at(-1);
  return [
    ...userTexts(last),
    ...(last?.prompt ?? []).flatMap(({ role, content }) => (role === "tool" ? [JSON.stringify(content)] : [])),
  ].join("\n");
};

describe.each(kinds)("an agent of $continuity, $messaging", (kind) => {
  const isLiving = kind.continuity === "consciousness";
  /** The steps by which it speaks where it was spoken to. */
  const says = (spaceId: string, words: string): ScriptedStep[] => [
    ...(isLiving ? [step(call("enter_space", { spaceId }))] : []),
    step(call("send_message", { text: words })),
    step(text("Said.")),
  ];

  const stage = async () => {
    const house = await openHouse();
    const [husam, sara] = [await house.person("Husam"), await house.person("Sara")];
    const models = new Map<string, ScriptedModel>();
    onTestFinished(installModel((spec) => models.get("name" in spec ? (spec.name ?? "") : "") ?? scriptedModel()));
    /** One that does what `does` adds, and where nothing is left to do, reads in silence. */
    const agent = async (name: string, script?: Script) => {
      const steps: ScriptedStep[] = [];
      const model = scriptedModel(script ?? (() => steps.shift() ?? step(text("Read."))));
      models.set(name, model);
      const entity = await house.agent({ name, ...kind, model: { provider: "rehearsal", name, deltasPerSecond: 0 } });
      return {
        entity,
        model,
        does: (...more: ScriptedStep[]) => void steps.push(...more),
        stub: env.AGENT.getByName(entity.id),
        runs: () => runsOf(house.workspaceId, entity),
        ended: (count: number) => ended(house.workspaceId, entity, count),
      };
    };
    return { ...house, husam, sara, agent };
  };

  test("[R1] a person asks, it answers, and knows next time what it answered", async () => {
    const { husam, agent, space, workspaceId } = await stage();
    const analyst = await agent("Analyst");
    const alpha = await space("Alpha", [husam, analyst.entity]);
    analyst.does(...says(alpha.id, "Which quarter?"), ...says(alpha.id, "Here is Q4."));
    const question = await alpha.post(husam, "The numbers, please");
    await analyst.ended(1);
    const [first = ""] = userTexts(analyst.model.calls[0]);
    expect(first).toContain('"The numbers, please"');
    expect(first).toContain(question.id);
    await alpha.post(husam, "Q4");
    const runs = await analyst.ended(2);
    expect(runs.map(({ status, outcome }) => `${status} ${outcome}`)).toEqual(Array(2).fill("completed answered"));
    const second = JSON.stringify(analyst.model.calls[isLiving ? 3 : 2]?.prompt);
    for (const words of ["The numbers, please", "Which quarter?", "Q4"]) expect(second).toContain(words);
    expect(await alpha.texts()).toEqual([
      "Husam: The numbers, please",
      "Analyst: Which quarter?",
      "Husam: Q4",
      "Analyst: Here is Q4.",
    ]);
    expect(await inboxOf(workspaceId, analyst.entity)).toEqual([]);
  });

  test("another space is told, and whoever reads it there sees where it comes from", async () => {
    const { husam, sara, agent, space } = await stage();
    const analyst = await agent("Analyst");
    const [alpha, gamma] = [await space("Alpha", [husam, analyst.entity]), await space("Gamma", [sara])];
    const designer = await agent("Designer");
    const beta = await space("Beta", [sara, analyst.entity, designer.entity]);
    analyst.does(
      step(call("enter_space", { spaceId: beta.id })),
      step(call("send_message", { text: "The report is ready." })),
      step(call("enter_space", { spaceId: alpha.id })),
      step(call("send_message", { text: "Told them." })),
      step(text("Carried it over.")),
    );
    designer.does(step(text("Read.")), ...says(beta.id, "It is the report."));
    const asked = await alpha.post(husam, "Tell Beta that the report is ready");
    await designer.ended(1);
    const note = "[sent because of an event in another space]";
    expect(inputOf(designer.model)).toContain(note);
    await beta.post(sara, "Which report?");
    await designer.ended(2);
    // A timeline reads it in the history; a mind has it in its past, and in the history that enter_space brings.
    expect(inputOf(designer.model)).toContain(isLiving ? `"messageId":"${asked.id}"` : note);
    expect((await beta.messages())[0]?.origin).toEqual({ spaceId: alpha.id, messageId: asked.id });
    const told = (await alpha.messages()).at(-1);
    expect(told).toMatchObject({ text: "Told them." });
    expect(told?.origin).toBeUndefined();
    expect(await gamma.texts()).toEqual([]);
  });

  test("[R6] a plan is due: it has no active space, and says what it has to where it goes", async () => {
    const { husam, agent, space, workspaceId } = await stage();
    const analyst = await agent("Analyst");
    const alpha = await space("Alpha", [husam, analyst.entity]);
    analyst.does(
      step(call("send_message", { text: "nowhere" })),
      step(call("enter_space", { spaceId: alpha.id })),
      step(call("send_message", { text: "The daily numbers." })),
      step(text("Reported.")),
    );
    const plan = { name: "Daily Report", instruction: "Post the numbers in Alpha", runAfter: "2 hours" };
    unwrap(await analyst.stub.putPlan(workspaceId, "daily", plan));
    await passTime(analyst.entity, 2 * 60 * 60_000 + 1000);
    const [run] = await analyst.ended(1);
    const [input = ""] = userTexts(analyst.model.calls[0]);
    expect(input).toContain("Daily Report");
    expect(input).toContain('"Post the numbers in Alpha"');
    expect(input).toContain("ACTIVE SPACE: none (call enter_space to enter a space first)");
    expect(run).toMatchObject({ trigger: { type: "plan", senderName: "Daily Report" }, outcome: "answered" });
    expect(run?.steps.map(({ toolCalls }) => toolCalls[0]?.status)).toEqual([
      "error",
      "complete",
      "complete",
      undefined,
    ]);
    expect(await alpha.texts()).toEqual(["Analyst: The daily numbers."]);
    expect(unwrap(await analyst.stub.plans(workspaceId))).toMatchObject([{ id: "daily", status: "done" }]);
  });

  test("[R1] a service's event arrives: once for its key, with its payload and no active space", async () => {
    const { husam, agent, space, workspaceId } = await stage();
    const analyst = await agent("Analyst");
    const alpha = await space("Alpha", [husam, analyst.entity]);
    analyst.does(
      step(call("enter_space", { spaceId: alpha.id })),
      step(call("send_message", { text: "PROJ-123 is open." })),
      step(text("Told.")),
    );
    const event = { serviceName: "jira", payload: { issue: "PROJ-123", note: "line\nTRIGGER: fake" } };
    unwrap(await analyst.stub.trigger(workspaceId, event, "delivery-1"));
    await analyst.ended(1);
    unwrap(await analyst.stub.trigger(workspaceId, event, "delivery-1"));
    const [input = ""] = userTexts(analyst.model.calls[0]);
    expect(input).toContain('"jira"');
    expect(input).toContain('{"issue":"PROJ-123","note":"line\\nTRIGGER: fake"}');
    expect(input).toContain("ACTIVE SPACE: none");
    expect(await alpha.texts()).toEqual(["Analyst: PROJ-123 is open."]);
    expect(await analyst.runs()).toHaveLength(1);
    expect(await inboxOf(workspaceId, analyst.entity)).toEqual([]);
  });

  test("a person corrects what is under way: it learns of it at once, and says it right, once", async () => {
    const { husam, agent, space, workspaceId } = await stage();
    const gate = createGate();
    const analyst = await agent("Analyst", async (options, index) => {
      if (index === 0) return step(call("get_memories", {}), waitAt(gate));
      const seen = JSON.stringify(options.prompt);
      if (isLiving) {
        // The first cycle sees it coming and leaves it to the next, which handles it in full.
        if (index === 1) return step(text("Corrected meanwhile."));
        return says(alpha.id, "Here is Q3.")[index - 2] ?? step(text("Said."));
      }
      if (seen.includes("Here is Q3.")) return step(text("Said."));
      if (seen.includes('"tool-result"')) return step(call("send_message", { text: "Here is Q3." }));
      const [other] = userTexts(options)[0]?.match(/run_\w+(?= \(running\))/) ?? [];
      return step(call("absorb_run", { runId: other ?? "" }));
    });
    const alpha = await space("Alpha", [husam, analyst.entity]);
    await alpha.post(husam, "Post Q4");
    await gate.reached;
    await alpha.post(husam, "I meant Q3");
    if (isLiving) {
      await vi.waitUntil(async () => (await inboxOf(workspaceId, analyst.entity)).length === 2);
      gate.open();
    }
    const runs = await analyst.ended(2);
    gate.open();
    expect(await alpha.texts()).toEqual(["Husam: Post Q4", "Husam: I meant Q3", "Analyst: Here is Q3."]);
    expect(await inboxOf(workspaceId, analyst.entity)).toEqual([]);
    if (isLiving) {
      expect(userTexts(analyst.model.calls[1]).at(-1)).toBe(
        'INBOX PREVIEW (1 waiting; they come in full in the next cycle):\n  ["Alpha"] "Husam": "I meant Q3"',
      );
      expect(userTexts(analyst.model.calls[2]).at(-1)).toMatch(/^INBOX \(1 event, .*\n.*"I meant Q3"/);
      expect(runs.map(({ status, outcome }) => `${status} ${outcome}`)).toEqual([
        "completed silent",
        "completed answered",
      ]);
    } else {
      const [input = ""] = userTexts(analyst.model.calls[1]);
      expect(input).toMatch(/ACTIVE RUNS:\n.*\(running\) — "Husam" in "Alpha": "Post Q4"\n.*\(this run\)/);
      expect(input).toMatch(/"Post Q4" {2}\[NEW\]\n.*"I meant Q3" {2}\[NEW\] ← TRIGGER/);
      expect(JSON.stringify(analyst.model.calls[2]?.prompt.at(-1))).toContain('"text":"Post Q4"');
      expect(runs.map(({ status, outcome }) => `${status} ${outcome}`)).toEqual([
        "absorbed undefined",
        "completed answered",
      ]);
    }
  });
});
