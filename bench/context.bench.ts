import type { Counts } from "./edge/counts.ts";
import type { Bench } from "./support/figure.ts";
import { percentile } from "./support/figure.ts";
import { postJson, withRivals } from "./support/servers.ts";

/**
 * The cost of composing an agent's next input, through its actor and its space's. Time and rows that SQLite reads must be
 * nearly the same at 10 messages and at 100,000, and after 10 cycles and after 1,000. Of those, all but the last few were
 * compacted.
 */
type Past = { messages: number; cycles: number };
const histories: Past[] = [10, 1000, 100_000].map((messages) => ({ messages, cycles: 0 }));
const lives: Past[] = [10, 100, 1000].map((cycles) => ({ messages: 10, cycles }));
/** So that the shortest life fills it too. */
const shownCycles = 10;
/** So that the smallest history fills it too: how much is shown is the same for all. */
const shownMessages = 10;
const compared = [
  { continuity: "timeline", grows: "messages", pasts: histories },
  { continuity: "consciousness", grows: "messages", pasts: histories },
  { continuity: "consciousness", grows: "cycles", pasts: lives },
] as const;
const rounds = 60;
const boundRatio = 1.3;

type Taken = { past: Past; agentId: string; times: number[]; rows: number };

export const bench: Bench = (report) =>
  withRivals(async ({ house }) => {
    const broken: string[] = [];
    const [husam, sara] = [await house.addPerson("Husam"), await house.addPerson("Sara")];
    for (const { continuity, grows, pasts } of compared) {
      const all: Taken[] = [];
      for (const past of pasts) {
        const size = `${past[grows]} ${grows}`;
        const agentId = await house.addAgent({
          name: `Reader of ${size}, ${continuity}`,
          continuity,
          context: { historyMessages: shownMessages },
        });
        const name = `History of ${size}`;
        const members = [husam.id, sara.id, agentId].map((entityId) => ({ entityId }));
        const { space } = await house.api.post<{ space: { id: string } }>("/v1/spaces", {
          name,
          members,
          wakePolicy: "addressed",
        });
        await husam.api.post(`/v1/spaces/${space.id}/messages`, { text: "What is the revenue of this region?" });
        await postJson(`${house.url}/bench/fill`, { spaceId: space.id, name, agentIds: [agentId], ...past });
        if (past.cycles > 0) {
          await postJson(`${house.url}/bench/live`, { agentId, cycles: past.cycles, inWindow: shownCycles });
        }
        all.push({ past, agentId, times: [], rows: 0 });
      }
      // In turn, so that whatever else the machine does is the same for each.
      for (let round = -10; round < rounds; round += 1) {
        for (const taken of all) {
          await house.api.get<Counts>("/bench/counts");
          const startedAt = performance.now();
          await house.api.get(`/v1/agents/${taken.agentId}/context`);
          if (round >= 0) taken.times.push(performance.now() - startedAt);
          const { read } = await house.api.get<Counts>("/bench/counts");
          taken.rows = Object.values(read).reduce((sum, by) => sum + by, 0);
        }
      }
      const medians = all.map(({ times }) => percentile(times, 0.5));
      for (const [index, { past, rows }] of all.entries()) {
        const name = `${continuity}, ${past[grows]} ${grows}`;
        report({
          case: name,
          figure: "the next input, p50, lower is better",
          unit: "ms",
          ours: medians[index] ?? Number.NaN,
          baseline: null,
        });
        report({ case: name, figure: "lower is better", unit: "rows read", ours: rows, baseline: null });
      }
      for (const [unit, values] of [
        ["ms", medians],
        ["rows read", all.map(({ rows }) => rows)],
      ] as const) {
        const ratio = Math.max(...values) / (values[0] ?? Number.NaN);
        report({
          case: `${continuity}, by ${grows}`,
          figure: `largest over the shortest history's ${unit}, at most ${boundRatio}`,
          unit: "ratio",
          ours: ratio,
          baseline: null,
        });
        if (!(ratio <= boundRatio)) broken.push(`${continuity}, by ${grows}: ${unit} differ by ${ratio.toFixed(2)}`);
      }
    }
    return broken;
  });
