import fc from "fast-check";
import { afterEach, expect, inject, test, vi } from "vitest";
import { Findings } from "./findings.ts";
import { type Life, life, live, turnsInLife } from "./lives.ts";

afterEach(() => void vi.useRealTimers());

/** Each turn is one word at least, which each later input is held to. */
const leastCasesInLife = (turnsInLife * (turnsInLife - 1)) / 2;
const allInputs = 100_000;
const longestMs = 30 * 60_000;

/** As many cases as `npm run fuzz` has inputs; half of the few inputs of the normal run, since a case is a part of a run. */
const casesOf = (inputs: number): number => (inputs < allInputs ? Math.round(inputs / 2) : inputs);

test(
  "[K17] all that an agent was told and did can be reached from every later input",
  async ({ task }) => {
    const { seed, inputs } = inject("fuzz");
    const findings = new Findings("lives", task.meta);
    const cases = casesOf(inputs);
    const lives = fc.sample(life, { seed, numRuns: Math.ceil(cases / leastCasesInLife) });
    let compactions = 0;
    for (const [number, drawn] of lives.entries()) {
      if (findings.inputs >= cases) break;
      const one: Life = { ...drawn, continuity: number % 2 === 0 ? "consciousness" : "timeline" };
      const lived = await live(one);
      compactions += lived.compactions;
      findings.inputs += lived.cases;
      findings.taken += lived.cases - lived.missing.length;
      for (const { what, run, laterRun } of lived.missing) {
        const turns = one.turns.slice(0, laterRun + 1);
        findings.add(`${one.continuity}: ${what}`, { number, run, laterRun, ...one, turns });
      }
    }
    expect(findings.report()).toEqual([]);
    expect(findings.inputs).toBeGreaterThanOrEqual(cases);
    expect(compactions).toBeGreaterThan(0);
  },
  longestMs,
);
