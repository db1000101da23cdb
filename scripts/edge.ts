import { unstable_startWorker as startWorker } from "wrangler";

/**
 * The process that holds one edge: wrangler and the workerd that it starts, in a process group of their own, led by
 * this one. `scripts/server.ts` starts it. When its standard input ends, its starter is gone, and so is the group.
 */
export type EdgeOptions = {
  config: string;
  port: number;
  dataDirectory: string;
  /** Left out: `.dev.vars` beside the configuration. */
  variablesFile?: string;
  /** Whether a changed source is served at once. Off where a restart in the middle would spoil what is measured. */
  watch: boolean;
  /** Where a debugger finds the worker, on loopback too. Nowhere if left out. */
  inspectorPort?: number;
};

const { config, port, dataDirectory, variablesFile, watch, inspectorPort } = JSON.parse(
  process.argv[2] ?? "{}",
) as EdgeOptions;

const endGroup = (): void => {
  process.kill(-process.pid, "SIGKILL");
};
process.stdin.on("end", endGroup).on("error", endGroup).resume();

await startWorker({
  config,
  ...(config === "wrangler.toml" ? { entrypoint: "scripts/local-worker.ts" } : {}),
  ...(variablesFile ? { envFiles: [variablesFile] } : {}),
  dev: {
    watch,
    remote: false,
    inspector: inspectorPort === undefined ? false : { hostname: "127.0.0.1", port: inspectorPort },
    server: { hostname: "127.0.0.1", port, secure: false },
    persist: dataDirectory,
  },
});
