import { startVitest } from "vitest/node";
import type { RenderedTable } from "../test/faults/table.ts";

/**
 * `npm run test:faults`: every fault point in every scenario, each time that it is come to, and two in one run.
 * Prints the table; fails if anything in it does.
 */
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
process.exit(failed > 0 || tests.length === 0 || vitest.state.getUnhandledErrors().length > 0 ? 1 : 0);
