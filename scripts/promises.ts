import { globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

/**
 * Holds the tests to `docs/promises.md`: every promise there is named by at least one test (`[D1] …`), unless
 * `test/promises-pending.txt` lists it. That list only shrinks: a listed promise that has a test is a failure too. The
 * tests that its commands name must be there.
 *
 * It also holds the tests' names to `maxNameLength` characters, without their suites' names and with `%s` as it stands.
 */
const maxNameLength = 89;

const root = resolve(import.meta.dirname, "..");
const read = (path: string): string => readFileSync(join(root, path), "utf8");

const promised = new Set(
  [...read("docs/promises.md").matchAll(/^- \*\*([A-Z]\d+)\*\*/gm)].map((match) => match[1] ?? ""),
);
const pending = new Set(
  read("test/promises-pending.txt")
    .split("\n")
    .map((line) => line.replace(/#.*/, "").trim())
    .filter((line) => line !== ""),
);

/** Ids in brackets at the head of a string that opens a test's or a suite's name. */
const named = /\b(?:it|test|describe)(?:\.\w+)*(?:\([^"'`]*\))?\(\s*["'`]((?:\[[A-Z]\d+(?:[ ,]+[A-Z]\d+)*\]\s*)+)/g;

const quoted = /\(\s*(["'`])((?:\\.|(?!\1)[^\\])*)\1,/.source;
const plainName = new RegExp(String.raw`\b(?:it|test)(?:\.(?!each|for)\w+)*${quoted}`, "g");
/** The name behind a table of cases: `it.each([…])("name", …)`. */
const tableName = new RegExp(String.raw`\)${quoted}\s*(?:async|\(|\{)`, "g");

const namesIn = (source: string): string[] => {
  const inTables = [...source.matchAll(tableName)].filter(({ index }) => {
    const table = [...source.slice(0, index).matchAll(/\b(it|test|describe)\.(?:each|for)\b/g)].at(-1);
    return table !== undefined && table[1] !== "describe";
  });
  return [...source.matchAll(plainName), ...inTables].map(([, , name = ""]) => name);
};

const tested = new Map<string, string[]>();
const longNames: string[] = [];
for (const file of globSync("test/**/*.test.{ts,tsx}", { cwd: root }).sort()) {
  const source = read(file);
  for (const [, ids = ""] of source.matchAll(named)) {
    for (const id of ids.match(/[A-Z]\d+/g) ?? []) tested.set(id, [...(tested.get(id) ?? []), file]);
  }
  const long = namesIn(source).filter((name) => name.length > maxNameLength);
  longNames.push(...long.map((name) => `${file}: ${name.length} characters: ${name}`));
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
  ...longNames,
];
for (const fault of faults) console.error(fault);
if (promised.size === 0) console.error("docs/promises.md promises nothing");
process.exitCode = faults.length > 0 || promised.size === 0 ? 1 : 0;
console.log(`${tested.size} of ${promised.size} promises have tests, ${pending.size} are pending`);
