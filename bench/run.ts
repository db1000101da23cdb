import { globSync } from "node:fs";
import { join, parse } from "node:path";
import { type Bench, reporter } from "./support/figure.ts";

/** `npm run bench -- NAME`: one JSON line a figure. Fails if a bound that the bench holds us to does not hold. */
const names = globSync("*.bench.ts", { cwd: import.meta.dirname })
  .map((file) => parse(parse(file).name).name)
  .sort();
const [name = ""] = process.argv.slice(2);

if (names.includes(name)) {
  const { bench } = (await import(join(import.meta.dirname, `${name}.bench.ts`))) as { bench: Bench };
  const broken = await bench(reporter(name));
  for (const bound of broken) console.error(`does not hold: ${bound}`);
  process.exit(broken.length > 0 ? 1 : 0);
} else {
  console.error(`npm run bench -- NAME, where NAME is one of: ${names.join(", ")}`);
  process.exit(1);
}
