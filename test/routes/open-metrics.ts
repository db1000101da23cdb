/** A strict reader of OpenMetrics text 1.0, of what it says must hold: a fault in the text throws. */
export type Sample = { name: string; labels: Record<string, string>; value: number };

const suffixes: Record<string, string[]> = {
  counter: ["_total", "_created"],
  gauge: [""],
  histogram: ["_bucket", "_count", "_sum", "_created"],
};

const samplePattern = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/;
const labelPattern = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|$)/y;

const labelsIn = (text: string): Record<string, string> => {
  const labels: Record<string, string> = {};
  labelPattern.lastIndex = 0;
  while (labelPattern.lastIndex < text.length) {
    const [, name = "", value = ""] = labelPattern.exec(text) ?? [];
    if (name === "") throw new Error(`malformed labels: ${text}`);
    if (name in labels) throw new Error(`${name} stands twice: ${text}`);
    labels[name] = value;
  }
  return labels;
};

const sampleIn = (line: string): Sample => {
  const [, name = "", labels = "", written = ""] = samplePattern.exec(line) ?? [];
  const value = Number(written);
  if (name === "" || !Number.isFinite(value)) throw new Error(`malformed sample: ${line}`);
  return { name, labels: labelsIn(labels), value };
};

/** Buckets rise, end with +Inf, and agree with the count. */
const checkHistogram = (family: string, samples: Sample[]): void => {
  const buckets = samples.filter(({ name }) => name === `${family}_bucket`);
  const bounds = buckets.map(({ labels: { le } }) => (le === "+Inf" ? Number.POSITIVE_INFINITY : Number(le)));
  const rise = (values: number[]): boolean =>
    values.every((value, index) => index === 0 || value >= (values[index - 1] ?? 0));
  const counted = samples.find(({ name }) => name === `${family}_count`)?.value;
  const isSound = bounds.at(-1) === Number.POSITIVE_INFINITY && rise(bounds) && rise(buckets.map(({ value }) => value));
  if (!isSound || buckets.at(-1)?.value !== counted) throw new Error(`${family} is no sound histogram`);
};

export const parseOpenMetrics = (text: string): Sample[] => {
  if (!text.endsWith("# EOF\n")) throw new Error("the text does not end with # EOF");
  const lines = text.slice(0, -"# EOF\n".length).split("\n");
  if (lines.pop() !== "") throw new Error("a line does not end");
  const types = new Map<string, string>();
  const seen = new Set<string>();
  const samples: Sample[] = [];
  let family = "";
  for (const line of lines) {
    const [, kind, name = "", rest = ""] = /^# (TYPE|UNIT|HELP) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$/.exec(line) ?? [];
    if (kind === "TYPE") {
      if (types.has(name) || !suffixes[rest]) throw new Error(`a second or unknown type: ${line}`);
      types.set(name, rest);
      family = name;
    } else if (kind !== undefined) {
      if (name !== family) throw new Error(`${line} is not beside its type`);
      if (kind === "UNIT" && !name.endsWith(`_${rest}`)) throw new Error(`${name} does not end with its unit`);
    } else {
      const sample = sampleIn(line);
      const allowed = suffixes[types.get(family) ?? ""] ?? [];
      if (!allowed.some((suffix) => sample.name === family + suffix)) throw new Error(`${line} is not of ${family}`);
      const series = line.slice(0, line.lastIndexOf(" "));
      if (seen.has(series)) throw new Error(`${series} stands twice`);
      seen.add(series);
      if (types.get(family) !== "gauge" && sample.value < 0) throw new Error(`${line} is below 0`);
      samples.push(sample);
    }
  }
  for (const [name, type] of types) {
    if (type === "histogram")
      checkHistogram(
        name,
        samples.filter((sample) => sample.name.startsWith(name)),
      );
  }
  return samples;
};
