import fc from "fast-check";
import { afterEach, expect, inject, test, vi } from "vitest";
import { Findings } from "./findings.ts";
import { type Life, life, live, turnsInLife } from "./lives.ts";

afterEach(() => void vi.useRealTimers());

/** Each turn is one word at least, which each later input is held to. */
const leastCasesInLife = (turnsInLife * (turnsInLife - 1)) / 2;

/** The normal run takes a hundredth of what `npm run fuzz` does. */
const casesOf = (inputs: number): number => (inputs >= 100_000 ? 100_000 : Number(inputs));

test("[K17] all that an agent was told and did can be reached from every later input", async ({ task }) => {
  const { seed, inputs } = inject("fuzz");
  const findings = new Findings("lives", task.meta);
  const wanted = casesOf(inputs);
  const drawnLives = fc.sample(life, { seed, numRuns: Math.ceil(wanted / leastCasesInLife) });
  const t0 = performance.now();
  let turns = 0;
  for (let number = 0; findings.inputs < wanted; number += 1) {
    turns += 16;
    const drawn = drawnLives[number];
    if (!drawn) break;
    const one: Life = { ...drawn, continuity: number % 2 === 0 ? "consciousness" : "timeline" };
    const { cases, missing, compactions } = await live(one);
    console.log("LIFE", one.continuity, one.maxTokens, cases, compactions, missing.length);
    findings.inputs += cases;
    findings.taken += cases - missing.length;
    for (const { what, run, laterRun } of missing) {
      const turns = one.turns.slice(0, laterRun + 1);
      findings.add(`${one.continuity}: ${what}`, { run, laterRun, number, ...one, turns });
    }
  }
  console.log("TIMES", performance.now() - t0, turns, findings.inputs);
  expect(findings.report()).toEqual([]);
}, 600_000);
