import { env } from "cloudflare:workers";
import fc from "fast-check";
import { afterEach, expect, inject, test, vi } from "vitest";
import { unwrap } from "../../src/shared/errors.ts";
import { passTime, told } from "../agent/fixture.ts";
import { adminKey, call } from "../support/house.ts";
import { installModel } from "../support/scripted-model.ts";
import { Findings, faultOfAnswer, watchErrors } from "./findings.ts";
import { type FuzzedStep, fuzzedModel, modelStep } from "./model-steps.ts";
import { inputsOf } from "./plan.ts";
import { marked, openStage, type Stage } from "./stage.ts";
import { StreamWatch } from "./stream-watch.ts";

const runsOnStage = 40;
/** Pauses that a run may take before it counts as stuck: failed events are tried five times, faults pass in hours. */
const maxPauses = 60;

const done: FuzzedStep = { parts: [{ is: "text", deltas: ["Done."] }], end: "finish" };

afterEach(() => void vi.useRealTimers());

/** Lets time pass until the agent has nothing more to do. Answers whether it came to that. */
const settled = async ({ house }: Stage, agentId: string): Promise<boolean> => {
  const agent = { id: agentId, name: "", type: "agent" as const };
  for (let pauses = 0; pauses < maxPauses; ) {
    const { activity } = unwrap(await env.AGENT.getByName(agentId).describe(house.workspaceId));
    if (activity?.state === "idle") return true;
    if (activity?.state === "running") await scheduler.wait(2);
    else {
      pauses += 1;
      const due = activity?.nextDueAt === undefined ? 60_000 : Date.parse(activity.nextDueAt) - Date.now() + 1;
      await passTime(agent, Math.max(due, 1000));
    }
  }
  return false;
};

/** All that shows of an agent can still be read. */
const unreadable = async ({ house, marks }: Stage, agentId: string): Promise<string[]> => {
  const faults: string[] = [];
  const paths = [`agents/${agentId}`, `agents/${agentId}/runs`, `agents/${agentId}/context`, `agents/${agentId}/inbox`];
  for (const path of [...paths, `spaces/${marks.spc0}/messages`]) {
    const response = await call(`/v1/${path}`, { bearer: house.secretKey });
    const fault = faultOfAnswer(response, await response.text());
    if (fault !== undefined || !response.ok)
      faults.push(`/v1/${path.replace(agentId, "…")} ${fault ?? response.status}`);
  }
  return faults;
};

test("[S4] [D4] [R4] whatever a model streams, its run and streams end and can be read", async ({ task }) => {
  const { seed, inputs } = inject("fuzz");
  const findings = new Findings("model streams", task.meta);
  const errors = watchErrors();
  const all = inputsOf("streams", inputs);
  let script: FuzzedStep[] = [];
  let stage = await openStage(adminKey);
  let watch = await StreamWatch.open(stage);
  const restore = installModel(
    fuzzedModel(() => {
      const step = script.shift();
      if (step) findings.inputs += 1;
      return step ?? done;
    }),
  );
  for (let run = 0; findings.inputs < all; run += 1) {
    if (run > 0 && run % runsOnStage === 0) {
      watch.close();
      stage = await openStage(adminKey);
      watch = await StreamWatch.open(stage);
    }
    const sample = fc.sample(fc.array(modelStep, { minLength: 1, maxLength: 3 }), { seed: seed + run, numRuns: 1 });
    const steps: FuzzedStep[] = JSON.parse(marked(JSON.stringify(sample[0]), stage));
    script = [...steps];
    const isLiving = run % 3 > 0;
    const agentId = stage.marks[isLiving ? "agent0" : "agent1"] ?? "";
    const body = { text: `@${isLiving ? "Analyst" : "Clerk"}, go on` };
    const posted = await call(`/v1/spaces/${stage.marks.spc0}/messages`, {
      bearer: stage.house.secretKey,
      as: stage.marks.ent0 ?? "",
      body,
    });
    if (!posted.ok) findings.add(`the message was refused with ${posted.status}`, await posted.text());
    await told(stage.marks.spc0 ?? "");
    if (await settled(stage, agentId)) findings.taken += 1;
    else findings.add("the agent came to no end", steps);
    await watch.quiet();
    if (watch.open > 0) findings.add(`${watch.open} streams have not ended`, steps);
    for (const fault of [...watch.faults(), ...(run % 3 === 0 ? await unreadable(stage, agentId) : [])])
      findings.add(fault, steps);
    for (const error of errors()) findings.add(`logged ${error.slice(0, 500)}`, steps);
  }
  watch.close();
  restore();
  expect(findings.report()).toEqual([]);
}, 3_600_000);
