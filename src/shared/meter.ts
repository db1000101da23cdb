/**
 * This isolate's counts that are not reported yet. An isolate holds many objects, and the worker itself. All of them
 * count here, in memory, and one report a minute tells a shard (`env/report-metrics.ts`).
 *
 * Invariants
 * 1. Labels are of closed sets (routes, statuses, codes, ends): never an id, a name or anything that a caller chose.
 * 2. What is taken is forgotten here, so it is reported at most once. What an isolate has not reported as it ends is lost.
 */
export const families = {
  requests: { type: "counter", help: "Requests by route and status" },
  errors: { type: "counter", help: "Problems that requests were answered with, by code" },
  runs: { type: "counter", help: "Runs of agents by how they ended" },
  tokens: { type: "counter", help: "Tokens that models billed, of agents and of routers" },
  dead_events: { type: "counter", help: "Events of agents that wait for a person, as they came to it" },
  delivery_seconds: { type: "histogram", unit: "seconds", help: "From a message to its agent having it" },
  jobs_waiting: { type: "gauge", help: "Jobs of objects that have failed once or more and are tried again" },
  jobs_due: { type: "gauge", help: "Jobs of objects whose time has come and that are not done" },
  storage_bytes: { type: "gauge", help: "Bytes that agents and spaces store, as they told last" },
  storage_near: { type: "gauge", help: "Agents and spaces that are near the end of their storage, or have come to it" },
  sockets: { type: "gauge", help: "Open sockets of spaces and of blocks" },
} as const satisfies Record<string, { type: "counter" | "gauge" | "histogram"; unit?: string; help: string }>;
export type Family = keyof typeof families;

/** Upper bounds of the histogram's buckets, in seconds. */
export const bucketSeconds = [0.1, 0.5, 1, 5, 30, 300];

const reportEveryMs = 60_000;
/** Objects whose figures wait for the next report. The others tell theirs when they next change. */
const maxGauges = 10_000;

const escaped = (value: string): string =>
  value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");

const seriesOf = (name: string, labels: Record<string, string | number>): string => {
  const pairs = Object.entries(labels).map(([label, value]) => `${label}="${escaped(String(value))}"`);
  return pairs.length === 0 ? name : `${name}{${pairs.join(",")}}`;
};

const createMeter = () => {
  const counts = new Map<string, number>();
  const gauges = new Map<string, [Family, string, number]>();
  let reportedAt: number | undefined;

  const add = (series: string, added: number): void => void counts.set(series, (counts.get(series) ?? 0) + added);

  return {
    count: (family: Family, labels: Record<string, string | number> = {}, added = 1): void =>
      add(seriesOf(`${family}_total`, labels), added),

    observe(family: Family, seconds: number): void {
      const bucket = bucketSeconds.find((bound) => seconds <= bound);
      add(seriesOf(`${family}_bucket`, { le: bucket === undefined ? "+Inf" : bucket.toFixed(1) }), 1);
      add(`${family}_sum`, seconds);
    },

    gauge(family: Family, object: string, value: number): void {
      const place = `${family} ${object}`;
      if (gauges.has(place) || gauges.size < maxGauges) gauges.set(place, [family, object, value]);
    },

    /** Takes what is to be reported: a minute after the last report, or `atOnce`. `now` is in milliseconds. */
    take(now: number, atOnce = false) {
      reportedAt ??= now;
      const isDue = atOnce || now - reportedAt >= reportEveryMs;
      if (!isDue || counts.size + gauges.size === 0) return undefined;
      reportedAt = now;
      const report = { counts: [...counts], gauges: [...gauges.values()] };
      counts.clear();
      gauges.clear();
      return report;
    },
  };
};

export const meter = createMeter();
