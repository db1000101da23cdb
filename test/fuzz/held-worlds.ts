import fc from "fast-check";
import { expect, inject, type TaskMeta, vi } from "vitest";
import { log } from "../../src/shared/log.ts";
import { Findings } from "./findings.ts";
import { compareWorlds, conversationsInWorld, happenings, worlds } from "./worlds.ts";

/** Half of all conversations: those of agents of one continuity. */
const continuities = 2;
/** What happens seldom needs some conversations to have happened. */
const tellingCases = 400;

/** Half as many conversations as `npm run fuzz` has inputs, since each is played twice. */
const casesOf = (inputs: number): number => Math.round(inputs / 2 / continuities);

/** Plays conversations of agents of one continuity in two worlds each, and compares what is seen of them outside. */
export const holdWorlds = async (continuity: "consciousness" | "timeline", meta: TaskMeta): Promise<void> => {
  const { seed, inputs } = inject("fuzz");
  const findings = new Findings(`worlds of a ${continuity}`, meta);
  const cases = casesOf(inputs);
  const happened = new Set<string>();
  for (const level of ["info", "warn"] as const) vi.spyOn(log, level).mockReturnValue();
  for (const drawn of fc.sample(worlds, { seed, numRuns: Math.ceil(cases / conversationsInWorld) })) {
    const compared = await compareWorlds(drawn, continuity);
    for (const what of compared.happened) happened.add(what);
    findings.inputs += conversationsInWorld;
    findings.taken += conversationsInWorld - new Set(compared.leaks.map(({ conversation }) => conversation)).size;
    for (const { what, how, conversation } of compared.leaks) {
      findings.add(`${what} tells of the confidential space`, how, JSON.stringify(drawn.conversations[conversation]));
    }
  }
  expect(findings.report()).toEqual([]);
  if (cases < tellingCases) return;
  // Worlds in which nothing happens are equal, whatever is promised.
  expect(happenings().filter((what) => !happened.has(what))).toEqual([]);
};
