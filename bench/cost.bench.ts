import { startTalkativeModel } from "../test/e2e/support/talkative-model.ts";
import type { Counts, Kind } from "./edge/counts.ts";
import type { Bench } from "./support/figure.ts";
import { withRivals } from "./support/servers.ts";
import { closeSockets, openSockets, whenAll } from "./support/sockets.ts";

/**
 * The cost of one person's message and one agent's reply of 200 deltas in a space of three, as the platform counts it:
 * requests to Durable Objects (alarms and socket frames included), and rows that SQLite reads and writes.
 */
const cases: { name: string; bounds: Partial<Record<Kind, number>> }[] = [
  {
    name: "the agent's first message here, which takes a step more: it enters the space",
    bounds: { request: 8, written: 40 },
  },
  { name: "a message in a conversation", bounds: { request: 4, written: 30 } },
];
/** Longer than any lease: an alarm that is left over fires within it, and is counted. */
const settleMs = 30_000;
const units: Record<Kind, string> = { request: "requests", read: "rows read", written: "rows written" };

const sum = (of: Record<string, number>): number => Object.values(of).reduce((total, by) => total + by, 0);

export const bench: Bench = (report) =>
  withRivals(async ({ house }) => {
    const model = await startTalkativeModel(Array.from({ length: 200 }, (_, index) => `word${index} `));
    const [husam, sara] = [await house.addPerson("Husam"), await house.addPerson("Sara")];
    const agentId = await house.addAgent({ name: "Echo", model: model.config });
    const spaceId = await house.addSpace("Cost", [husam.id, sara.id, agentId]);
    const stream = (token: string): string => `${house.url}/v1/spaces/${spaceId}/stream?token=${token}`;
    const sockets = [...(await openSockets(stream(husam.token), 1)), ...(await openSockets(stream(sara.token), 1))];
    const takeCounts = (): Promise<Counts> => house.api.get<Counts>("/bench/counts");

    const broken: string[] = [];
    for (const { name, bounds } of cases) {
      await new Promise((settled) => setTimeout(settled, settleMs));
      await takeCounts();
      for (const got of sockets) got.frames.length = 0;
      const ended = whenAll(sockets, (got) => got.frames.some(({ data }) => data.includes('"run.completed"')));
      await husam.api.post(`/v1/spaces/${spaceId}/messages`, { text: "What is new?" });
      await ended;
      await new Promise((settled) => setTimeout(settled, settleMs));
      const counts = await takeCounts();
      for (const kind of ["request", "written", "read"] as const) {
        for (const [what, by] of Object.entries(counts[kind]).sort()) {
          report({ case: `${name}: ${what}`, figure: "lower is better", unit: units[kind], ours: by, baseline: null });
        }
        const bound = bounds[kind];
        const total = sum(counts[kind]);
        const figure = bound === undefined ? "in all, lower is better" : `in all, lower is better, at most ${bound}`;
        report({ case: name, figure, unit: units[kind], ours: total, baseline: null });
        if (bound !== undefined && total > bound)
          broken.push(`${name}: ${total} ${units[kind]} are more than ${bound}`);
      }
    }
    closeSockets(sockets);
    await model.stop();
    return broken;
  });
