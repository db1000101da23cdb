import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { stripVTControlCharacters } from "node:util";
import type { EdgeOptions } from "./edge.ts";

/**
 * The edge on this machine: what `wrangler dev` runs, with its own data, on loopback.
 *
 * Invariants
 * 1. It and all its children (esbuild, workerd) are one process group of their own; `stop` and `kill` end the group.
 * 2. It ends with the process that started it, however that one ends.
 * 3. It asks no account, sends no telemetry and shares no registry with other instances on this machine.
 * 4. Wrangler traces nothing of it: a span for each statement of each object would cost more than the objects do.
 */
export type Server = {
  url: string;
  /** The id of its process group. */
  groupId: number;
  /** Asks the group to end and waits; what is left after `graceMs` is killed. */
  stop(graceMs?: number): Promise<void>;
  /** SIGKILL for the whole group, as a power cut would. Resolves when it is gone. */
  kill(): Promise<void>;
  /** Resolves when the server has ended, whoever ended it. */
  ended: Promise<void>;
};

export type ServerOptions = {
  /** Where SQLite files are kept; another server started on it later finds the same data. */
  dataDirectory: string;
  /** Left out: a free port. */
  port?: number;
  /** The worker's variables and secrets. Left out: what `.dev.vars` holds. */
  variables?: Record<string, string>;
  /** Another wrangler configuration than the product's. */
  config?: string;
  /** Serve changed sources at once. Off if left out: a test or a bench wants no restart in its middle. */
  watch?: boolean;
  /** A port of loopback where the worker can be inspected. */
  inspectorPort?: number;
  /** Every line of wrangler's output. */
  onOutput?: (line: string) => void;
  /** Gives up a start that is under way. A server that has started is ended by `stop`. */
  signal?: AbortSignal;
};

const root = resolve(import.meta.dirname, "..");
const readyTimeoutMs = 60_000;

export const isPortFree = (port: number): Promise<boolean> =>
  new Promise((answer) => {
    const probe = createServer();
    probe.once("error", () => answer(false));
    probe.listen(port, "127.0.0.1", () => probe.close(() => answer(true)));
  });

export const freePort = (): Promise<number> =>
  new Promise((answer, fail) => {
    const probe = createServer();
    probe.once("error", fail);
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address();
      if (address === null || typeof address === "string") return fail(new Error("no port"));
      probe.close(() => answer(address.port));
    });
  });

/** Starts the edge and resolves once it answers `/healthz`. */
export const startServer = async (options: ServerOptions): Promise<Server> => {
  const port = options.port ?? (await freePort());
  const url = `http://127.0.0.1:${port}`;
  const { child, ended, lastLines } = launch(options, port);
  const signal = (name: NodeJS.Signals): void => signalGroup(child, name);
  const giveUp = (): void => signal("SIGKILL");
  options.signal?.addEventListener("abort", giveUp);
  try {
    await ready(url, ended);
    options.signal?.removeEventListener("abort", giveUp);
  } catch (error) {
    signal("SIGKILL");
    await ended;
    throw new Error(`the server did not start:\n${lastLines.join("\n")}`, { cause: error });
  }
  return {
    url,
    groupId: child.pid ?? 0,
    ended,
    async stop(graceMs = 5000) {
      signal("SIGTERM");
      const late = setTimeout(() => signal("SIGKILL"), graceMs);
      await ended;
      clearTimeout(late);
      signal("SIGKILL");
    },
    async kill() {
      signal("SIGKILL");
      await ended;
    },
  };
};

const launch = (options: ServerOptions, port: number) => {
  const edge = edgeOptions(options, port);
  // Wrangler starts nothing without it. Whoever wants the page in it has built it by now.
  mkdirSync(join(root, "dist/web"), { recursive: true });
  const child = spawn(process.execPath, [join(root, "scripts/edge.ts"), JSON.stringify(edge)], {
    cwd: root,
    detached: true,
    stdio: "pipe",
    env: {
      ...process.env,
      CI: "true",
      NO_COLOR: "1",
      NODE_NO_WARNINGS: "1",
      CLOUDFLARE_CF_FETCH_ENABLED: "false",
      WRANGLER_LOG: "warn",
      WRANGLER_SEND_METRICS: "false",
      WRANGLER_SEND_ERROR_REPORTS: "false",
      WRANGLER_WRITE_LOGS: "false",
      X_LOCAL_EXPLORER: "false",
      X_LOCAL_OBSERVABILITY: "false",
      WRANGLER_REGISTRY_PATH: join(edge.dataDirectory, "registry"),
    },
  });
  const lastLines: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on("line", (raw) => {
      const line = stripVTControlCharacters(raw);
      lastLines.push(line);
      if (lastLines.length > 40) lastLines.shift();
      options.onOutput?.(line);
    });
  }
  const ended = new Promise<void>((done) => {
    child.once("close", () => done());
    child.once("error", () => done());
  });
  return { child, ended, lastLines };
};

const edgeOptions = (options: ServerOptions, port: number): EdgeOptions => {
  const dataDirectory = resolve(options.dataDirectory);
  mkdirSync(dataDirectory, { recursive: true });
  const { config = "wrangler.toml", watch = false, inspectorPort } = options;
  const inspected = inspectorPort === undefined ? {} : { inspectorPort };
  const edge = { config, port, dataDirectory, watch, ...inspected };
  if (!options.variables) return edge;
  const variablesFile = join(dataDirectory, "variables.env");
  const lines = Object.entries(options.variables).map(([name, value]) => `${name}='${value}'`);
  writeFileSync(variablesFile, `${lines.join("\n")}\n`, { mode: 0o600 });
  return { ...edge, variablesFile };
};

const ready = async (url: string, ended: Promise<void>): Promise<void> => {
  let over = false;
  void ended.then(() => {
    over = true;
  });
  const deadline = Date.now() + readyTimeoutMs;
  while (!over && Date.now() < deadline) {
    const answer = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(2000) }).catch(() => undefined);
    if (answer?.ok) return;
    await new Promise((resume) => setTimeout(resume, 100));
  }
  throw new Error(over ? "wrangler ended" : `no answer within ${readyTimeoutMs / 1000} s`);
};

const signalGroup = (child: ChildProcess, name: NodeJS.Signals): void => {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, name);
  } catch (error) {
    // The group is gone already: that is what was asked for.
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
};
