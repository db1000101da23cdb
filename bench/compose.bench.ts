import type { Snapshot } from "../src/agent/context/compose.ts";
import { compose } from "../src/agent/context/compose.ts";
import type { Bench } from "./support/figure.ts";
import { percentile } from "./support/figure.ts";
import { coldSnapshots, warmSnapshots } from "./support/snapshots.ts";

/**
 * How many inputs are composed a second, with 50 messages in each, in one thread. Cold: no two inputs share an agent,
 * a space or a message, so nothing that is remembered of one helps another. Warm: each is the one before with one
 * message more, as the inputs of an agent in a conversation are.
 */
const messages = 50;
const inputs = 300;
const repeats = 13;
const warmUps = 3;
/** Cold, an input costs what `tokenx` takes to count all of it; warm, most of it was counted before. */
const leastASecond = { cold: 500, warm: 2000 };

const continuities = ["timeline", "consciousness"] as const;
const snapshots = { cold: coldSnapshots, warm: warmSnapshots };
const kinds = ["cold", "warm"] as const;

const perSecond = (made: Snapshot[]): number => {
  const startedAt = performance.now();
  for (const snapshot of made) compose(snapshot);
  return (made.length * 1000) / (performance.now() - startedAt);
};

export const bench: Bench = (report) => {
  const broken: string[] = [];
  for (const continuity of continuities) {
    for (const kind of kinds) {
      const rates = Array.from({ length: warmUps + repeats }, (_, repeat) =>
        perSecond(snapshots[kind](continuity, inputs, messages, repeat)),
      );
      const rate = percentile(rates.slice(warmUps), 0.5);
      report({
        case: `${continuity}, ${messages} messages, ${kind}`,
        figure: `compositions a second, p50, higher is better, at least ${leastASecond[kind]}`,
        unit: "a second",
        ours: rate,
        baseline: null,
      });
      if (!(rate >= leastASecond[kind]))
        broken.push(`${continuity}, ${kind}: ${Math.round(rate)} compositions a second`);
    }
  }
  return Promise.resolve(broken);
};
