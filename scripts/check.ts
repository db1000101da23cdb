import { spawn } from "node:child_process";
import { join, resolve } from "node:path";

/** `npm run check`: all that can be told without running the house. Every step runs, so that one call tells everything. */
const root = resolve(import.meta.dirname, "..");

/** The step whose output is shown even where it does not fail. */
const structure = "the structure's figures are within their bounds";

const steps: [name: string, command: string[]][] = [
  ["format, lint, arrows, cycles", ["biome", "check", "--error-on-warnings", "--max-diagnostics=100"]],
  ["types of src and test", ["tsc", "-p", "."]],
  ["types of the page", ["tsc", "-p", "src/web"]],
  ["types of its service worker", ["tsc", "-p", "src/web/service-worker"]],
  ["types of scripts, benches and end-to-end tests", ["tsc", "-p", "scripts"]],
  ["unused code and dependencies", ["knip"]],
  ["the lock covers every platform", ["node", "scripts/lock.ts", "--check"]],
  ["migrations in step with schemas", ["node", "scripts/migrations.ts", "--check"]],
  ["every promise has a test", ["node", "scripts/promises.ts"]],
  [structure, ["node", "scripts/structure.ts"]],
];

const run = ([tool = "", ...rest]: string[]): Promise<{ code: number; output: string }> =>
  new Promise((done) => {
    const child = spawn(join(root, "node_modules/.bin", tool), rest, {
      cwd: root,
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, FORCE_COLOR: process.stdout.isTTY ? "1" : "0" },
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += String(chunk)));
    child.once("error", (error) => done({ code: 1, output: error.message }));
    child.once("close", (code) => done({ code: code ?? 1, output }));
  });

let failed = 0;
for (const [name, command] of steps) {
  const startedAt = performance.now();
  const { code, output } = await run(command);
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  console.log(`${code === 0 ? "✓" : "✗"} ${name} (${seconds} s)`);
  if (code !== 0) failed += 1;
  if (code !== 0 || name === structure) console.log(output.trimEnd());
}
if (failed > 0) console.error(`${failed} of ${steps.length} checks failed`);
process.exitCode = failed > 0 ? 1 : 0;
