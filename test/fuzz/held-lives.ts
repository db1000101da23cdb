import fc from "fast-check";
import { expect, inject, type TaskMeta, vi } from "vitest";
import { log } from "../../src/shared/log.ts";
import { Findings } from "./findings.ts";
import { type Life, life, live, things, turnsInLife } from "./lives.ts";

/** Half of all lives: those of one continuity. */
const continuities = 2;
/** The normal run plays so many lives of each at least. */
const fewestLives = 20;
/** From so many cases on, rare things must have happened. */
const tellingCases = 400;
/** A run of so many inputs is one of `npm run fuzz`. */
const manyInputs = 10_000;
/** The time for a run that gets only spare processor time. */
export const longestMs = 24 * 60 * 60_000;

/** As many cases as `npm run fuzz` has inputs. A case is a whole run, so the normal run takes half as many. */
const casesOf = (inputs: number): number => Math.round((inputs < manyInputs ? inputs / 2 : inputs) / continuities);

/** Plays random lives of agents of one continuity, and holds every input of each to all that was before it. */
export const holdLives = async (continuity: Life["continuity"], meta: TaskMeta): Promise<void> => {
  const { seed, inputs } = inject("fuzz");
  const findings = new Findings(`lives of a ${continuity}`, meta);
  const cases = casesOf(inputs);
  const lives = fc.sample(life, { seed, numRuns: Math.ceil(cases / turnsInLife) });
  const happened = new Set<string>();
  for (const level of ["info", "warn"] as const) vi.spyOn(log, level).mockReturnValue();
  let played = 0;
  for (const drawn of lives) {
    if (findings.inputs >= cases) break;
    const one: Life = { ...drawn, continuity };
    const lived = await live(one);
    played += 1;
    for (const what of lived.happened) happened.add(what);
    findings.inputs += lived.cases;
    findings.taken += lived.cases - new Set(lived.missing.map(({ laterRun }) => laterRun)).size;
    for (const { what, run, laterRun } of lived.missing) {
      findings.add(what, { number: played, run, laterRun, ...one, turns: one.turns.slice(0, laterRun + 1) });
    }
  }
  expect(findings.report()).toEqual([]);
  expect(findings.inputs).toBeGreaterThanOrEqual(cases);
  if (cases < tellingCases) return;
  expect(played).toBeGreaterThanOrEqual(fewestLives);
  // A life in which nothing happens holds whatever is promised.
  expect(things(continuity).filter((what) => !happened.has(what))).toEqual([]);
};
