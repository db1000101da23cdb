import { parseArgs } from "node:util";
import { startVitest } from "vitest/node";
import { faultPoints } from "../src/shared/fault.ts";
import type { RenderedTable } from "../test/faults/table.ts";
import { recordMeasured } from "./measured.ts";

/**
 * `npm run test:faults`: a crash at every fault point in every scenario, each time that it is reached, and two crashes
 * in one run. Prints the table and fails if a cell of it fails. `--write` writes the figures into `docs/measured.md`.
 */
const { values } = parseArgs({ options: { write: { type: "boolean", default: false } } });
process.env.FAULTS = "all";

const begunAt = Date.now();
const vitest = await startVitest("test", ["test/faults"], {
  project: ["actors"],
  run: true,
  watch: false,
  silent: true,
});
const tests = vitest.state.getTestModules().flatMap((module) => [...module.children.allTests()]);
const tables = tests.flatMap((one): RenderedTable[] => {
  const { faultTable } = one.meta();
  return faultTable ? [faultTable] : [];
});
for (const { text } of tables) console.log(text);
await vitest.close();

const failed = tests.filter((one) => one.result().state !== "passed").length;
console.log(JSON.stringify({ tests: tests.length, failed, seconds: Math.round((Date.now() - begunAt) / 1000) }));
if (values.write) {
  const cells = tables.map(({ text }) => text).join("\n");
  const count = (pattern: RegExp): string => String(cells.match(pattern)?.length ?? 0);
  recordMeasured("test:faults", [
    { case: "fault points", figure: "", value: String(faultPoints.length) },
    { case: "crashes of a point in a scenario that end as without the crash", figure: "", value: count(/ ok\b(?!:)/g) },
    { case: "crashes that do not", figure: "at most 0", value: count(/ FAIL\b/g) },
    { case: "tests that failed", figure: "at most 0", value: String(failed) },
  ]);
}
process.exit(failed > 0 || tests.length === 0 || vitest.state.getUnhandledErrors().length > 0 ? 1 : 0);
