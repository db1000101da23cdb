import { parseArgs } from "node:util";
import { startVitest } from "vitest/node";
import type { FuzzReport } from "../test/fuzz/findings.ts";
import { recordMeasured } from "./measured.ts";

/**
 * `npm run fuzz`: generated and mutated input to every route, over sockets, to webhooks' addresses and from models. It
 * is 100,000 inputs unless `--inputs N` says otherwise. `--seed S` gives the same inputs again. Names, such as `lives`,
 * take those files alone. Fails if anything does.
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seed: { type: "string" },
    inputs: { type: "string", default: "100000" },
    write: { type: "boolean", default: false },
  },
});
const seed = values.seed ?? String(Math.floor(Math.random() * 2 ** 31));
for (const number of [seed, values.inputs]) {
  if (/^\d{1,10}$/.test(number)) continue;
  console.error("npm run fuzz -- --seed S --inputs N, where both are whole numbers");
  process.exit(1);
}
process.env.FUZZ_SEED = seed;
process.env.FUZZ_INPUTS = values.inputs;

const begunAt = Date.now();
const files =
  positionals.length === 0 ? ["test/fuzz"] : positionals.flatMap((name) => [`fuzz/${name}.actor`, `-${name}.actor`]);
const vitest = await startVitest("test", files, { project: ["actors"], run: true, watch: false, silent: true });
const tests = vitest.state.getTestModules().flatMap((module) => [...module.children.allTests()]);
const reports = tests.flatMap((one): (FuzzReport & { seconds: number })[] => {
  const { fuzz } = one.meta();
  return fuzz ? [{ ...fuzz, seconds: Math.round((one.diagnostic()?.duration ?? 0) / 1000) }] : [];
});
await vitest.close();

for (const { findings, ...figures } of reports) {
  console.log(JSON.stringify({ ...figures, failures: findings.length }));
}
const all = reports.reduce((sum, { inputs }) => sum + inputs, 0);
const failures = reports.reduce((sum, { findings }) => sum + findings.length, 0);
const seconds = Math.round((Date.now() - begunAt) / 1000);
console.log(JSON.stringify({ inputs: all, failures, seed: Number(seed), seconds }));
if (values.write) {
  recordMeasured(
    "fuzz",
    reports.map(({ kind, inputs, taken, refused, findings }) => ({
      case: kind,
      figure: "inputs / taken / refused / failures",
      value: [inputs, taken, refused, findings.length].map((count) => count.toLocaleString("en")).join(" / "),
    })),
  );
}
const failed = tests.some((one) => one.result().state !== "passed") || vitest.state.getUnhandledErrors().length > 0;
process.exit(failed || tests.length === 0 ? 1 : 0);
