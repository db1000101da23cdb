import { globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

/**
 * Holds the tests to `docs/promises.md`: every promise there is named by at least one test (`[D1] …`), unless
 * `test/promises-pending.txt` lists it. That list only shrinks: a listed promise that has a test is a failure too. The
 * tests that its commands name must be there.
 */
const root = resolve(import.meta.dirname, "..");
const read = (path: string): string => readFileSync(join(root, path), "utf8");

const promised = new Set(
  [...read("docs/promises.md").matchAll(/^- \*\*([A-Z]\d)\*\*/gm)].map((match) => match[1] ?? ""),
);
const pending = new Set(
  read("test/promises-pending.txt")
    .split("\n")
    .map((line) => line.replace(/#.*/, "").trim())
    .filter((line) => line !== ""),
);

/** Ids in brackets at the head of a string that opens a test's or a suite's name. */
const named = /\b(?:it|test|describe)(?:\.\w+)*(?:\([^"'`]*\))?\(\s*["'`]((?:\[[A-Z]\d(?:[ ,]+[A-Z]\d)*\]\s*)+)/g;

const tested = new Map<string, string[]>();
for (const file of globSync("test/**/*.test.{ts,tsx}", { cwd: root }).sort()) {
  for (const [, ids = ""] of read(file).matchAll(named)) {
    for (const id of ids.match(/[A-Z]\d/g) ?? []) tested.set(id, [...(tested.get(id) ?? []), file]);
  }
}

const commanded = [...read("docs/promises.md").matchAll(/\btest\/[\w/-]+/g)]
  .map(([path]) => path)
  .filter((path) => path !== "test/promises-pending");

const faults = [
  ...commanded
    .filter((path) => globSync([`${path}*/**/*.test.ts`, `${path}*.test.ts`], { cwd: root }).length === 0)
    .map((path) => `docs/promises.md names ${path}: there is no such test`),
  ...[...promised].filter((id) => !tested.has(id) && !pending.has(id)).map((id) => `${id} has no test`),
  ...[...pending].filter((id) => tested.has(id)).map((id) => `${id} has a test: take it off test/promises-pending.txt`),
  ...[...pending]
    .filter((id) => !promised.has(id))
    .map((id) => `${id} is pending, but docs/promises.md has no such promise`),
  ...[...tested].filter(([id]) => !promised.has(id)).map(([id, files]) => `${files[0]} names ${id}: no such promise`),
];
for (const fault of faults) console.error(fault);
if (promised.size === 0) console.error("docs/promises.md promises nothing");
process.exitCode = faults.length > 0 || promised.size === 0 ? 1 : 0;
console.log(`${tested.size} of ${promised.size} promises have tests, ${pending.size} are pending`);
