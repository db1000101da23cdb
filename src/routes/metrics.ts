import * as z from "zod";
import { reportMetrics, shardNames } from "../env/report-metrics.ts";
import { systemClock } from "../shared/clock.ts";
import { unwrap } from "../shared/errors.ts";
import { bucketSeconds, families } from "../shared/meter.ts";
import { Resource } from "./route.ts";

const mediaType = "application/openmetrics-text";
const prefix = "colloquy_";

/** The buckets of a histogram as OpenMetrics has them: each counts what those before it count, too. */
const histogramLines = (name: string, sums: Map<string, number>): string[] => {
  let reached = 0;
  const buckets = [...bucketSeconds.map((bound) => bound.toFixed(1)), "+Inf"].map((bound) => {
    const series = `${name}_bucket{le="${bound}"}`;
    reached += sums.get(series) ?? 0;
    return `${prefix}${series} ${reached}`;
  });
  return [...buckets, `${prefix}${name}_count ${reached}`, `${prefix}${name}_sum ${sums.get(`${name}_sum`) ?? 0}`];
};

/** The text of the figures. A family that has no sample yet is told with its type alone, or with 0. */
const textOf = (sums: Map<string, number>): string => {
  const lines = Object.entries(families).flatMap(([name, family]) => {
    const head = [
      `# TYPE ${prefix}${name} ${family.type}`,
      ...("unit" in family ? [`# UNIT ${prefix}${name} ${family.unit}`] : []),
      `# HELP ${prefix}${name} ${family.help}`,
    ];
    if (family.type === "histogram") return [...head, ...histogramLines(name, sums)];
    if (family.type === "gauge") return [...head, `${prefix}${name} ${sums.get(name) ?? 0}`];
    const isOf = (series: string): boolean => series === `${name}_total` || series.startsWith(`${name}_total{`);
    const samples = [...sums].filter(([series]) => isOf(series)).sort(([one], [other]) => (one < other ? -1 : 1));
    return [...head, ...samples.map(([series, value]) => `${prefix}${series} ${value}`)];
  });
  return `${lines.join("\n")}\n# EOF\n`;
};

export const metrics = new Resource("Deployment");

metrics.route("GET /metrics", {
  summary: "The deployment's figures as OpenMetrics text",
  description:
    "Requests, errors, runs, tokens, dead events, the lag of deliveries, jobs and sockets, summed over the deployment. Nothing in it names a workspace.",
  access: "operator",
  responses: { 200: { description: "The figures", content: { [mediaType]: { schema: z.string() } } } },
  handle: async ({ context: { env } }) => {
    await reportMetrics(env, systemClock.now(), true);
    const sums = new Map<string, number>();
    const shards = await Promise.all(shardNames.map((name) => env.WORKSPACE.getByName(name).reported()));
    for (const [series, value] of shards.flatMap((shard) => Object.entries(unwrap(shard)))) {
      sums.set(series, (sums.get(series) ?? 0) + value);
    }
    return new Response(textOf(sums), { headers: { "content-type": `${mediaType}; version=1.0.0; charset=utf-8` } });
  },
});
