import fc from "fast-check";
import { expect, inject, test, vi } from "vitest";
import { log } from "../../src/shared/log.ts";
import { kinds, life, liveAndErase } from "./erased-lives.ts";
import { Findings } from "./findings.ts";
import { longestMs } from "./held-lives.ts";

/** A life costs as much as so many inputs; the normal run has few. */
const inputsOfLife = 200;

test("[L4] [L13] [L16] [L18] nothing holds what is taken out of a life, and all else stays", {
  timeout: longestMs,
}, async ({ task }) => {
  const { seed, inputs } = inject("fuzz");
  for (const level of ["info", "warn"] as const) vi.spyOn(log, level).mockReturnValue();
  const findings = new Findings("erasures", task.meta);
  for (const [index, drawn] of fc.sample(life, { seed, numRuns: Math.ceil(inputs / inputsOfLife) }).entries()) {
    const one = { ...drawn, kind: kinds[index % kinds.length] ?? drawn.kind };
    findings.inputs += 1;
    const wrong = await liveAndErase(one).catch((error: unknown) =>
      error instanceof Error ? String(error.stack) : String(error),
    );
    if (wrong === undefined) findings.taken += 1;
    else findings.add(wrong.replaceAll(/\d+/g, "0").slice(0, 60), { wrong, ...one });
  }
  expect(findings.report()).toEqual([]);
});
