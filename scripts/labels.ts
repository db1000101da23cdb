import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { createVitest, type TestCase, type Vitest } from "vitest/node";
import { asking } from "./asking-guards.ts";
import { guards } from "./label-guards.ts";

/**
 * `npm run test:labels`: takes each guard of confidential spaces out, one by one, and fails where no test then does. A
 * name, or a part of one, takes those guards alone. Only the tests that are named to catch a guard run. They have to pass
 * while all guards stand. One vitest serves all: started for each guard, it would take most of the time. The files are put
 * back, however it ends.
 */
const { positionals } = parseArgs({ allowPositionals: true });
const root = resolve(import.meta.dirname, "..");
const asked = [...guards, ...asking].filter(
  ({ name }) => positionals.length === 0 || positionals.some((part) => name.includes(part)),
);
const sourceOf = ({ file }: { file: string }): string => readFileSync(join(root, file), "utf8");

const moved = asked.filter((each) => sourceOf(each).split(each.guard).length !== 2);
for (const { name, file, guard } of moved) console.error(`${name}: ${file} does not hold this once: ${guard}`);
if (moved.length > 0 || asked.length === 0) process.exit(1);

/** The original text of files that lack a guard now. */
const originals = new Map<string, string>();
const putBack = (): void => {
  for (const [path, before] of originals) writeFileSync(path, before);
  originals.clear();
};
process.on("exit", putBack);
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(1));

const begunAt = Date.now();
const vitest: Vitest = await createVitest("test", {
  ...{ root, watch: false, silent: true, bail: 0, project: ["actors", "pure"] },
  reporters: [{}],
});
await vitest.standalone();

/** Runs the tests of these files that are named so. Answers those that ran. */
const run = async (files: string[], named: string): Promise<TestCase[]> => {
  vitest.setGlobalTestNamePattern(new RegExp(named));
  const specifications = await vitest.globTestSpecifications(files);
  // Vitest tells of earlier runs too.
  const begun = new Set(specifications.map(({ moduleId }) => moduleId));
  const { testModules } = await vitest.runTestSpecifications(specifications);
  return testModules
    .filter(({ moduleId }) => begun.has(moduleId))
    .flatMap((module) => [...module.children.allTests()])
    .filter((test) => test.result().state !== "skipped");
};
const failed = (test: TestCase): boolean => test.result().state === "failed";

const whole = await run(
  [...new Set(asked.map(({ tests }) => tests))],
  asked.map(({ named }) => `(?:${named})`).join("|"),
);
for (const { fullName } of whole.filter(failed)) console.error(`fails while all guards stand: ${fullName}`);

let survived = 0;
for (const { name, file, guard, open, tests, named } of asked) {
  const path = join(root, file);
  const before = sourceOf({ file });
  originals.set(path, before);
  writeFileSync(
    path,
    before.replace(guard, () => open),
  );
  vitest.invalidateFile(path);
  const ran = await run([tests], named);
  putBack();
  vitest.invalidateFile(path);
  const caughtBy = ran.filter(failed).map(({ fullName }) => fullName);
  if (caughtBy.length === 0) survived += 1;
  const told = caughtBy.join("; ") || (ran.length === 0 ? "NO TEST IS NAMED SO" : "NOT CAUGHT");
  console.log(`| ${name} | ${file} | ${told} |`);
}
await vitest.close();
const seconds = Math.round((Date.now() - begunAt) / 1000);
console.log(JSON.stringify({ guards: asked.length, caught: asked.length - survived, survived, seconds }));
process.exit(survived > 0 || whole.some(failed) || whole.length === 0 ? 1 : 0);
