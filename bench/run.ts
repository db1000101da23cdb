import { globSync, readFileSync } from "node:fs";
import { join, parse } from "node:path";
import { parseArgs } from "node:util";
import { type MeasuredColumn, type MeasuredRow, recordMeasured } from "../scripts/measured.ts";
import { type Bench, type Figure, reporter } from "./support/figure.ts";

/**
 * `npm run bench -- NAME` prints one JSON line a figure. Fails if a bound that the bench holds us to does not hold.
 * `--write` writes the figures into `docs/measured.md` too, and `--all` runs every bench. `--read FILE` takes what a
 * bench printed instead of running it, and `--before` writes it as what an older commit measured.
 */
const names = globSync("*.bench.ts", { cwd: import.meta.dirname })
  .map((file) => parse(parse(file).name).name)
  .sort();
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    all: { type: "boolean", default: false },
    write: { type: "boolean", default: false },
    before: { type: "boolean", default: false },
    read: { type: "string" },
  },
});

const rowOf = ({ case: name, figure, unit, ours, baseline, ratio }: Figure): MeasuredRow => ({
  case: name,
  figure,
  value: inUnit(ours, unit),
  ...(baseline === null ? {} : { baseline: inUnit(baseline, unit) }),
  ...(ratio === null ? {} : { ratio: String(ratio) }),
});

const inUnit = (value: number, unit: string): string =>
  `${value.toLocaleString("en", { maximumSignificantDigits: 4 })} ${unit}`;

const write = (figures: Figure[], column: MeasuredColumn): void => {
  for (const [bench, group] of Map.groupBy(figures, (figure) => figure.bench)) {
    recordMeasured(bench, group.map(rowOf), column);
  }
};

const run = async (name: string): Promise<boolean> => {
  const { bench } = (await import(join(import.meta.dirname, `${name}.bench.ts`))) as { bench: Bench };
  const figures: Figure[] = [];
  const broken = await bench(reporter(name, (figure) => figures.push(figure)));
  if (values.write) write(figures, "now");
  for (const bound of broken) console.error(`does not hold: ${bound}`);
  return broken.length === 0;
};

/** The figures among what a bench printed; its other lines are left out. */
const printed = (file: string): Figure[] =>
  readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line.startsWith('{"bench"'))
    .map((line) => JSON.parse(line) as Figure);

const asked = values.all ? names : positionals;
let failed = false;
if (values.read !== undefined) {
  write(printed(values.read), values.before ? "before" : "now");
} else if (asked.length > 0 && asked.every((name) => names.includes(name))) {
  for (const name of asked) if (!(await run(name))) failed = true;
} else {
  console.error(`npm run bench -- NAME [--write], or --all, where NAME is one of: ${names.join(", ")}`);
  failed = true;
}
process.exit(failed ? 1 : 0);
