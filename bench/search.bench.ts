import { seededRandom } from "../test/kill/random.ts";
import type { Bench } from "./support/figure.ts";
import { percentile } from "./support/figure.ts";
import { postJson, withRivals } from "./support/servers.ts";

/**
 * How long a search takes, by HTTP, in an agent that has lived: by words among 100,000 passages, by likeness among
 * 5,000 and 50,000. The limits are the same query in plain SQLite and a plain loop over vectors that are all held in
 * memory. Both run in the same object and by HTTP as well.
 */
const cases = [
  { mode: "fts", plain: "words", passages: 100_000, embedder: { provider: "none" } },
  { mode: "vector", plain: "vectors", passages: 5000, embedder: { provider: "feature-hashing" } },
  { mode: "vector", plain: "vectors", passages: 50_000, embedder: { provider: "feature-hashing" } },
] as const;
/** Half of all searches may take so many times as long as the limit. */
const mostTimes = 3;
const rounds = 200;
const warmUps = 10;
const limit = 10;
const words = 20_000;

export const bench: Bench = (report) =>
  withRivals(async ({ house }) => {
    const broken: string[] = [];
    for (const { mode, plain, passages, embedder } of cases) {
      const agentId = await house.addAgent({ name: `${mode} ${passages}`, embedder });
      await postJson(`${house.url}/bench/search`, { agentId, passages });
      const random = seededRandom(passages);
      const word = (): string => `term${Math.floor(words ** random.between(0.2, 1)).toString(36)}`;
      const search = (query: string) =>
        house.api.get<{ partial: boolean }>(
          `/v1/agents/${agentId}/search?mode=${mode}&limit=${limit}&q=${encodeURIComponent(query)}`,
        );
      while ((await search("term1")).partial) await new Promise((soon) => setTimeout(soon, 50));
      const ours: number[] = [];
      const baseline: number[] = [];
      for (let round = -warmUps; round < rounds; round += 1) {
        const query = [word(), word(), word()].join(" ");
        const startedAt = performance.now();
        await search(query);
        const between = performance.now();
        await postJson(`${house.url}/bench/plain`, {
          agentId,
          kind: plain,
          query: query.replaceAll(" ", " OR "),
          limit,
        });
        if (round < 0) continue;
        ours.push(between - startedAt);
        baseline.push(performance.now() - between);
      }
      const name = `${mode}, ${passages} passages`;
      for (const share of [0.5, 0.99]) {
        report({
          case: name,
          figure: `p${share * 100}, by HTTP, lower is better${share === 0.5 ? `, ratio at most ${mostTimes}` : ""}`,
          unit: "ms",
          ours: percentile(ours, share),
          baseline: percentile(baseline, share),
        });
      }
      const times = percentile(ours, 0.5) / percentile(baseline, 0.5);
      if (!(times <= mostTimes)) broken.push(`${name}: ${times.toFixed(1)} times the limit`);
    }
    return broken;
  });
