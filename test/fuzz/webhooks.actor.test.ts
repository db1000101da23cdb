import fc from "fast-check";
import { expect, inject, test } from "vitest";
import { adminKey } from "../support/house.ts";
import { deliverFuzzed, delivery } from "./deliveries.ts";
import { Findings, faultOfAnswer, watchErrors } from "./findings.ts";
import { inputsOf } from "./plan.ts";
import { quietModel } from "./quiet-model.ts";
import { hookBodies, openStage } from "./stage.ts";
import { isRefusal, StillStage } from "./still-stage.ts";

const inputsOnStage = 1500;

test("[S4] [D5] no webhook delivery fails, unproven ones are refused and change nothing", async ({ task }) => {
  const { seed, inputs } = inject("fuzz");
  const findings = new Findings("webhooks", task.meta);
  const errors = watchErrors();
  quietModel();
  const all = inputsOf("webhooks", inputs);
  const still = new StillStage();
  const taken = new Set<string>();
  for (let from = 0; from < all; from += inputsOnStage) {
    const stage = await openStage(adminKey);
    for (const one of fc.sample(delivery, { seed: seed + from, numRuns: Math.min(inputsOnStage, all - from) })) {
      const response = await deliverFuzzed(one, stage);
      if (!response) continue;
      const text = await response.text();
      findings.inputs += 1;
      if (response.ok) findings.taken += 1;
      else findings.refused += 1;
      const fault = faultOfAnswer(response, text);
      if (fault !== undefined) findings.add(fault, one, text.slice(0, 600));
      for (const error of errors()) findings.add(`logged ${error.slice(0, 400)}`, one);
      const isProven =
        one.how === "signed" ||
        (one.how === "signed late" && one.hook > 0) ||
        (one.how === "another body" && one.hook > 1);
      if (response.ok && !isProven) findings.add(`took what came ${one.how}`, one, text);
      if (response.ok) taken.add(hookBodies[one.hook]?.name ?? "");
      if (response.ok) continue;
      const changed = await still.changedBy((quiet) => isRefusal(deliverFuzzed(one, quiet)));
      if (changed.length > 0) findings.add(`refused and changed ${changed.join(", ")}`, one, text);
    }
  }
  expect(findings.report()).toEqual([]);
  expect(findings.taken).toBeGreaterThan(findings.inputs / 10);
  expect(still.compared).toBeGreaterThan(findings.refused / 2);
  expect([...taken].toSorted()).toEqual(hookBodies.map(({ name }) => name).toSorted());
}, 3_600_000);
