import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { stripVTControlCharacters } from "node:util";

/**
 * The edge on this machine: one `wrangler dev` with its own data, on loopback.
 *
 * Invariants
 * 1. It and all its children (esbuild, workerd) are one process group of their own; `stop` and `kill` end the group.
 * 2. It asks no account, sends no telemetry and shares no registry with other instances on this machine.
 */
export type Server = {
  url: string;
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
  const data = resolve(options.dataDirectory);
  mkdirSync(data, { recursive: true });
  const child = spawn(
    process.execPath,
    [join(root, "node_modules/wrangler/bin/wrangler.js"), ...flags(options, port)],
    {
      cwd: root,
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        ...process.env,
        CI: "true",
        NO_COLOR: "1",
        CLOUDFLARE_CF_FETCH_ENABLED: "false",
        WRANGLER_SEND_METRICS: "false",
        WRANGLER_SEND_ERROR_REPORTS: "false",
        WRANGLER_WRITE_LOGS: "false",
        WRANGLER_HIDE_BANNER: "true",
        WRANGLER_REGISTRY_PATH: join(data, "registry"),
      },
    },
  );
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

const flags = (options: ServerOptions, port: number): string[] => {
  const config = options.config ?? "wrangler.toml";
  const list = ["dev", "--config", config, "--local", "--ip", "127.0.0.1", "--port", String(port)];
  list.push("--inspector-port", "0", "--persist-to", resolve(options.dataDirectory), "--log-level", "warn");
  if (options.variables) {
    const file = join(resolve(options.dataDirectory), "variables.env");
    const lines = Object.entries(options.variables).map(([name, value]) => `${name}='${value}'`);
    writeFileSync(file, `${lines.join("\n")}\n`, { mode: 0o600 });
    list.push("--env-file", file);
  }
  return list;
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
