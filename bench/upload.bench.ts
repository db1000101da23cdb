import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Bench } from "./support/figure.ts";
import { percentile } from "./support/figure.ts";

/** The size of the upload and the cost of a start, against the same worker without minification. */
const mostKib = 2000;
const starts = 3;

type Profile = {
  nodes: { id: number; callFrame: { functionName: string } }[];
  samples: number[];
  timeDeltas: number[];
};

const wrangler = (...args: string[]): string =>
  execFileSync("node_modules/.bin/wrangler", args, {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, WRANGLER_SEND_METRICS: "false", WRANGLER_WRITE_LOGS: "false" },
  });

const uploadKib = (folder: string, minify: string): number => {
  const said = wrangler("deploy", "--dry-run", minify, "--outdir", folder);
  return Number(/gzip: ([\d.]+) KiB/.exec(said)?.[1]);
};

/** The processor's time of a start, in milliseconds: all samples but those in which nothing of it ran. */
const startMs = (folder: string, minify: string): number => {
  const times = Array.from({ length: starts }, () => {
    const file = join(folder, "start.cpuprofile");
    wrangler("check", "startup", "--outfile", file, `--args=${minify}`);
    const { nodes, samples, timeDeltas } = JSON.parse(readFileSync(file, "utf8")) as Profile;
    const idle = new Set(
      nodes
        .filter(
          ({ callFrame }) => callFrame.functionName.startsWith("(") && callFrame.functionName !== "(garbage collector)",
        )
        .map(({ id }) => id),
    );
    return samples.reduce((sum, id, index) => sum + (idle.has(id) ? 0 : (timeDeltas[index] ?? 0)), 0) / 1000;
  });
  return percentile(times, 0.5);
};

export const bench: Bench = async (report) => {
  const folder = mkdtempSync(join(tmpdir(), "upload-"));
  try {
    const kib = uploadKib(folder, "--minify=true");
    report({
      case: "the upload, against one that is not minified",
      figure: `gzip, lower is better, at most ${mostKib}`,
      unit: "KiB",
      ours: kib,
      baseline: uploadKib(folder, "--minify=false"),
    });
    report({
      case: "a start of the worker, the same",
      figure: "processor's time, p50, lower is better",
      unit: "ms",
      ours: startMs(folder, "--minify=true"),
      baseline: startMs(folder, "--minify=false"),
    });
    return kib <= mostKib ? [] : [`the upload is ${kib} KiB, more than ${mostKib}`];
  } finally {
    rmSync(folder, { recursive: true });
  }
};
