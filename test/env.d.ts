/** What `cloudflare:workers` gives the tests: the worker's own bindings and its own exports. */
declare namespace Cloudflare {
  interface Env extends ColloquyEnv {
    /** Refuses after five in a minute. */
    RATE_OF_TESTS: RateLimit;
  }
  interface GlobalProps {
    mainModule: typeof import("../src/worker.ts");
    durableNamespaces: "Workspace" | "Space" | "Agent" | "Endpoint";
  }
}
type ColloquyEnv = import("../src/env/env.ts").Env;

/** Files by pattern, as vite reads them in. */
interface ImportMeta {
  glob<File>(pattern: string, options: { query: "?raw"; import: "default"; eager: true }): Record<string, File>;
}
