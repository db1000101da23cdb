import fc from "fast-check";
import { afterEach, expect, inject, test, vi } from "vitest";
import { Findings } from "./findings.ts";
import { life, live } from "./lives.ts";

afterEach(() => void vi.useRealTimers());

/** The normal run takes a hundredth of what `npm run fuzz` does. */
const casesOf = (inputs: number): number => (inputs >= 100_000 ? 100_000 : 1000);

test("[K17] all that an agent was told and did can be reached from every later input", async ({ task }) => {
  const { seed, inputs } = inject("fuzz");
  const findings = new Findings("lives", task.meta);
  const wanted = casesOf(inputs);
  const t0 = performance.now();
  let turns = 0;
  for (let number = 0; findings.inputs < wanted; number += 1) {
    turns += 16;
    const [one] = fc.sample(life, { seed: seed + number, numRuns: 1 });
    if (!one) throw new Error("no life");
    const { cases, missing, compactions } = await live(one);
    console.log("LIFE", one.continuity, one.maxTokens, cases, compactions, missing.length);
    findings.inputs += cases;
    findings.taken += cases - missing.length;
    for (const { what, run } of missing) {
      const kind = `${one.continuity}: ${what.replace(/run \d+: /, "")}`;
      findings.add(kind, { what, laterRun: run, seed: seed + number, ...one, turns: one.turns.slice(0, run) });
    }
  }
  console.log("TIMES", performance.now() - t0, turns, findings.inputs);
  expect(findings.report()).toEqual([]);
}, 600_000);
