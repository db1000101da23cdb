import { rmSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { startCourier } from "./courier.ts";
import { type Demo, seedDemo } from "./demo.ts";
import { ensureKeys } from "./keys.ts";
import { buildPage } from "./page.ts";
import { isPortFree, startServer } from "./server.ts";

/**
 * `npm start`: the whole house on this machine. Builds the page, writes keys, starts the edge, seeds a workspace and
 * says how to get in. When it is told to end, it ends every process that it started.
 */
const root = resolve(import.meta.dirname, "..");
const dataDirectory = join(root, ".wrangler/state");
const keysFile = join(root, ".dev.vars");
const defaultPort = 8787;

const say = (what: string, text: string): void => console.log(`  ${what.padEnd(6)} ${text}`);

const fail = (text: string): never => {
  console.error(`\n  ${text}\n`);
  process.exit(1);
};

const readArguments = (): { fresh: boolean; port: number } => {
  const unknown = process.argv.slice(2).filter((argument) => argument !== "--fresh");
  if (unknown.length > 0) fail(`unknown: ${unknown.join(" ")}. There is only: npm start -- --fresh`);
  const port = Number(process.env.PORT ?? defaultPort);
  if (!Number.isInteger(port) || port < 1 || port > 65_535) {
    fail(`PORT must be a number from 1 to 65535, not "${process.env.PORT}"`);
  }
  return { fresh: process.argv.includes("--fresh"), port };
};

/** Wrangler's own chatter is dropped; what the worker warns of and every error is shown. */
const noise = [/^\s*$/, /AI bindings always access remote resources/, /Logs were written to/, /^\s*at .*node_modules/];

const showOutput = (line: string): void => {
  if (noise.some((pattern) => pattern.test(line))) return;
  console.error(`  edge   ${line.replace(/^[▲✘]\s*\[(\w+)\]\s*/, (_, level: string) => `${level.toLowerCase()}: `)}`);
};

const introduce = (url: string, demo: Demo): void => {
  const [person] = demo.people;
  const [space] = demo.spaces;
  console.log(`\n  Colloquy is at ${url} (its API: ${url}/docs)\n\n  Sign in as`);
  for (const { name, link } of demo.people) console.log(`    ${name.padEnd(6)} ${link}`);
  console.log(`
  A link works once, for ten minutes, and a browser is one person at a time: take a private window for the other. More:
    curl -s -X POST ${url}/v1/entities/${person?.id}/sign-in-links -H "Authorization: Bearer $KEY"

  With curl, as the workspace
    KEY=${demo.secretKey}
    curl -s ${url}/v1/spaces -H "Authorization: Bearer $KEY"
    curl -s ${url}/v1/spaces/${space?.id}/messages -H "Authorization: Bearer $KEY" \\
      -H "X-Entity-Id: ${person?.id}" -H "Content-Type: application/json" -d '{"text": "Hello everyone!"}'

  Ctrl-C stops it; the data stays in .wrangler/state.
`);
};

const over = new AbortController();
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, () => over.abort());

const main = async (): Promise<void> => {
  const { fresh, port } = readArguments();

  console.log("\n  Colloquy\n");
  if (!(await isPortFree(port))) fail(`port ${port} is taken: choose another, such as PORT=${port + 1} npm start`);
  if (fresh) rmSync(dataDirectory, { recursive: true, force: true });
  say("page", (await buildPage()) ? "built" : "unchanged");
  say("keys", `${relative(root, keysFile)} ${ensureKeys(keysFile).written ? "written, with random keys" : "kept"}`);
  if (over.signal.aborted) return;

  const server = await startServer({ dataDirectory, port, watch: true, onOutput: showOutput, signal: over.signal });
  try {
    say("edge", `${server.url}, ${fresh ? "with no data" : "data in .wrangler/state"}`);
    const demo = await seedDemo(server.url, ensureKeys(keysFile).adminKey, join(dataDirectory, "demo.json"));
    say("demo", demo.seeded ? "seeded" : "kept");
    const courier = startCourier(server.url, demo.courier);
    say("guest", "Courier, in Deliveries: docs/examples/guest.ts, a process of its own");
    introduce(server.url, demo);
    await Promise.race([server.ended, aborted(over.signal)]);
    await courier.stop();
    if (!over.signal.aborted) throw new Error("the edge ended by itself");
  } finally {
    await server.stop();
  }
};

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resume) => {
    if (signal.aborted) return resume();
    signal.addEventListener("abort", () => resume(), { once: true });
  });

try {
  await main();
} catch (error) {
  // A failure after the signal to stop comes from stopping.
  if (!over.signal.aborted) fail(error instanceof Error ? error.message : String(error));
}
console.log("  stopped");
process.exit(0);
