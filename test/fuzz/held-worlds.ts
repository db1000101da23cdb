import { expect, inject, type TaskMeta, vi } from "vitest";
import { log } from "../../src/shared/log.ts";
import { Findings } from "./findings.ts";
import { comparedWorlds, compareWorlds, conversationsInWorld, happenings, worldsOf } from "./worlds.ts";

/** Half of all conversations: those of agents of one continuity. */
const continuities = 2;
/** Every so many quiet worlds a run of hours says how far it is, so that a cut one goes on from there. */
const seedsBetweenWords = 10;
/** From so many cases on, rare things must have happened. */
const tellingCases = 400;

/** Half as many conversations as `npm run fuzz` has inputs, since each happens in two worlds. */
const casesOf = (inputs: number): number => Math.round(inputs / 2 / continuities);

/**
 * Plays conversations of agents of one continuity in two worlds each, and compares what is seen of them outside. Each quiet
 * world has a seed of its own, from that of the run on: `--seed` with it and few `--inputs` plays it alone.
 */
export const holdWorlds = async (continuity: "consciousness" | "timeline", meta: TaskMeta): Promise<void> => {
  const { seed: firstSeed, inputs } = inject("fuzz");
  const findings = new Findings(`worlds of a ${continuity}`, meta);
  const cases = casesOf(inputs);
  const happened = new Set<string>();
  vi.spyOn(log, "warn").mockReturnValue();
  for (let seed = firstSeed; findings.inputs < cases; seed += 1) {
    const drawn = worldsOf(seed);
    const compared = await compareWorlds(drawn, continuity);
    // They hold what they were called with.
    vi.clearAllMocks();
    for (const what of compared.happened) happened.add(what);
    const leaked = new Set(compared.leaks.map(({ world, conversation }) => `${world} ${conversation}`));
    findings.inputs += conversationsInWorld * comparedWorlds;
    findings.taken += conversationsInWorld * comparedWorlds - leaked.size;
    for (const { what, how, world, conversation } of compared.leaks) {
      const { insides, ...outside } = drawn.conversations[conversation] ?? { insides: [] };
      const played = JSON.stringify({ seed, world, conversation, inside: insides[world], ...outside });
      findings.add(`${what} tells of the confidential space`, how, played);
    }
    // Findings are told at once.
    if (leaked.size > 0) break;
    if ((seed + 1 - firstSeed) % seedsBetweenWords === 0) {
      log.info("fuzz.held", { continuity, conversations: findings.inputs, nextSeed: seed + 1 });
    }
  }
  expect(findings.report()).toEqual([]);
  if (cases < tellingCases) return;
  // Worlds in which nothing happens are equal, whatever is promised.
  expect(happenings().filter((what) => !happened.has(what))).toEqual([]);
};
