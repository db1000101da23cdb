import { existsSync, mkdtempSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cloudflareTest } from "@cloudflare/vitest-plugin";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * What the worker imports from `node_modules`, bundled once: each of the actors' files loads all of it into a workerd of
 * its own, which takes a second more of a processor's time module by module. What is missing here works all the same.
 */
const bundled = [
  "@block65/webcrypto-web-push",
  "@ai-sdk/openai-compatible",
  "@cfworker/json-schema",
  "@modelcontextprotocol/client",
  "@modelcontextprotocol/server",
  "ai",
  "croner",
  "diff",
  "drizzle-orm",
  "drizzle-orm/durable-sqlite",
  "drizzle-orm/durable-sqlite/migrator",
  "drizzle-orm/sqlite-core",
  "hono",
  "hono/body-limit",
  "hono/cors",
  "hono/factory",
  "hono/html",
  "hono/utils/html",
  "jose",
  "loro-crdt/web",
  "parse-duration",
  "re2js",
  "tokenx",
  "ulid",
  "workers-ai-provider",
  "zod",
];

/**
 * Each write of a Durable Object waits for the disk. Where the system has room for files in memory, tests do not: what
 * survives a crash of the machine is for `npm run test:kill`, which uses the disk.
 */
const inMemory = "/dev/shm";
const leastBytes = 4 * 2 ** 30;
const roomIn = (path: string): number => {
  if (!existsSync(path)) return 0;
  const { bavail, bsize } = statfsSync(path);
  return bavail * bsize;
};
if (process.env.TMPDIR === undefined && roomIn(inMemory) >= leastBytes) process.env.TMPDIR = inMemory;

/** What a run leaves behind goes with it: servers that end with their process cannot clear up. */
const ofThisRun = mkdtempSync(join(tmpdir(), "colloquy-tests-"));
process.env.TMPDIR = ofThisRun;
process.once("exit", () => rmSync(ofThisRun, { recursive: true, force: true, maxRetries: 10 }));

/** Vitest takes large files first. The longest are small, and would each be alone at the end. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification): boolean => /\/(fuzz|faults)\//.test(moduleId);
    const { long = [], short = [] } = Object.groupBy(await super.sort(files), (file) =>
      isLong(file) ? "long" : "short",
    );
    return [...long, ...short];
  }
}

/**
 * Three projects, one after another: promises to users end to end in a real browser, actors in workerd, pure modules in
 * node. Actors wait for each other at times, so four files at once share two cores well.
 */
export default defineConfig({
  test: {
    // Vitest collects an actor's lines by a timer of another object, which workerd refuses where files share it.
    disableConsoleIntercept: true,
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        define: { __FAULTS__: "true" },
        test: {
          name: "pure",
          maxWorkers: 2,
          sequence: { groupOrder: 2 },
          // Functions of data: what one file leaves behind is no other's concern, and a process for each costs a minute.
          isolate: false,
          testTimeout: 20_000,
          include: ["test/**/*.test.ts", "test/**/*.test.tsx"],
          exclude: ["test/**/*.actor.test.ts", "test/e2e/**"],
        },
      },
      {
        define: { __FAULTS__: "true" },
        plugins: [
          cloudflareTest({
            remoteBindings: false,
            wrangler: { configPath: "./wrangler.toml" },
            miniflare: {
              bindings: {
                ADMIN_KEY: "test-admin-key",
                SIGNING_SECRET: "test-signing-secret-of-32-bytes!!",
                ENVIRONMENT: "development",
                VAPID_KEYS:
                  "BMb8EwSTsqBkAX9QQGx2a2BT5v8SY6iQHgRhiLfUwg5TXCQyCj2qG3yAKxyQWkwaMBrDD4pfAa6xisouyxDjiYw.uivDAVuGWki330rl2_Pzuinxg59tVU5zN5VJkjx0WK0",
                RATE_LIMITS: "off",
              },
              // Small, so that a test reaches it; `test/routes/rates.actor.test.ts` puts it in the others' place.
              ratelimits: { RATE_OF_TESTS: { namespace_id: "1", simple: { limit: 5, period: 60 } } },
            },
          }),
        ],
        test: {
          name: "actors",
          maxWorkers: 4,
          sequence: { groupOrder: 1 },
          // A workerd of its own for each file costs as much as its tests. `test/support/patience.ts` clears up between files.
          isolate: false,
          include: ["test/**/*.actor.test.ts"],
          setupFiles: ["test/support/patience.ts"],
          testTimeout: 20_000,
          hookTimeout: 60_000,
          deps: { optimizer: { ssr: { enabled: true, include: bundled } } },
          globalSetup: ["test/support/remote.ts", "test/fuzz/settings.ts", "test/faults/settings.ts"],
        },
      },
      {
        test: {
          name: "e2e",
          maxWorkers: 2,
          // Files share a server and a browser: `test/e2e/support/for-file.ts`.
          isolate: false,
          sequence: { groupOrder: 0 },
          include: ["test/e2e/**/*.e2e.test.ts"],
          testTimeout: 60_000,
          hookTimeout: 120_000,
          globalSetup: ["test/e2e/support/build-page.ts"],
          setupFiles: ["test/e2e/support/patience.ts"],
        },
      },
    ],
  },
});
