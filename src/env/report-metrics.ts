import { log } from "../shared/log.ts";
import { meter } from "../shared/meter.ts";
import type { Env } from "./env.ts";

/** Objects of the workspaces' class that are no workspaces: each holds a part of the deployment's figures. */
const shards = 4;
export const shardNames = Array.from({ length: shards }, (_, index) => `meter-${index}`);

/** An object's last word has to replace the one before, which is in the shard of its name. */
const shardOf = (object: string): number => [...object].reduce((sum, each) => sum + each.charCodeAt(0), 0) % shards;
let own: number | undefined;

/** Reports what this isolate has counted, at most once a minute. A report that fails is lost. It never throws. */
export const reportMetrics = async (env: Pick<Env, "WORKSPACE">, now: number, atOnce = false): Promise<void> => {
  const report = meter.take(now, atOnce);
  if (!report) return;
  own ??= Math.floor(Math.random() * shards);
  const reports = shardNames.map((name, index) => ({
    name,
    counts: index === own ? report.counts : [],
    gauges: report.gauges.filter(([, object]) => shardOf(object) === index),
  }));
  const isTold = reports.filter(({ counts, gauges }) => counts.length + gauges.length > 0);
  const telling = isTold.map(({ name, ...part }) => env.WORKSPACE.getByName(name).report(part));
  for (const told of await Promise.allSettled(telling)) {
    if (told.status === "rejected") log.warn("metrics.lost", { reason: String(told.reason) });
  }
};
