import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { setImmediate } from "node:timers/promises";
import { parseArgs, stripVTControlCharacters } from "node:util";
import { asking } from "./asking-guards.ts";
import { guards } from "./label-guards.ts";

/**
 * `npm run test:labels`: takes each guard of confidential spaces out, one by one, and fails where no test then does. A
 * name, or a part of one, takes those guards alone. The files are put back, however it ends.
 */
const { positionals } = parseArgs({ allowPositionals: true });
const root = resolve(import.meta.dirname, "..");
const asked = [...guards, ...asking].filter(
  ({ name }) => positionals.length === 0 || positionals.some((part) => name.includes(part)),
);
let survived = 0;

// Heard once the file is back.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(1));

for (const { name, file, guard, open, tests, named } of asked) {
  const path = join(root, file);
  const before = readFileSync(path, "utf8");
  if (before.split(guard).length !== 2) {
    console.error(`${file} does not hold this guard once: ${guard}`);
    survived += 1;
    continue;
  }
  try {
    writeFileSync(
      path,
      before.replace(guard, () => open),
    );
    const vitest = join(root, "node_modules/vitest/vitest.mjs");
    const ran = spawnSync(process.execPath, [vitest, "run", "--bail=1", tests, "-t", named], {
      cwd: root,
      encoding: "utf8",
    });
    const counted = /Tests\s.*\d failed/.test(stripVTControlCharacters(ran.stdout));
    const isCaught = ran.status !== 0 && counted;
    if (!isCaught) survived += 1;
    console.log(JSON.stringify({ guard: name, file, caught: isCaught }));
  } finally {
    writeFileSync(path, before);
  }
  await setImmediate();
}
console.log(JSON.stringify({ guards: asked.length, caught: asked.length - survived, survived }));
process.exit(survived > 0 ? 1 : 0);
