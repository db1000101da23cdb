import { setTimeout as wait } from "node:timers/promises";
import { parseArgs } from "node:util";
import { percentile } from "../../bench/support/figure.ts";
import { freePort } from "../../scripts/server.ts";
import { openHouse } from "../e2e/support/house.ts";
import { commandsIn } from "./commands.ts";
import { gather } from "./evidence.ts";
import { inspectHeap } from "./live-heap.ts";
import { fullLoad, type Load, type LoadedSpace, openLoad } from "./load.ts";
import { type MemorySample, slope, workerdMegabytes } from "./memory.ts";
import type { Person } from "./person.ts";
import { becomesQuiet } from "./quiet.ts";
import { seededRandom } from "./random.ts";
import { timersLeftOver } from "./stored-timers.ts";
import { judge } from "./verdict.ts";
import { watchSockets } from "./wire.ts";

/**
 * `npm run soak -- --minutes N`: the load of the kill test without kills, for ten minutes if left out. Fails if memory
 * of workerd grows, a timer is left over, or it has become slower.
 */
const { values } = parseArgs({ options: { minutes: { type: "string", default: "10" } } });
const minutes = Number(values.minutes);
if (!(minutes >= 1)) {
  console.error("npm run soak -- --minutes N, with N at least 1");
  process.exit(1);
}

/** The pause between an answer and the next message of each of the twenty people. */
const pauseMs = 4000;
const lookEveryMs = 50;
const sampleEveryMs = 10_000;
/** The bounds: growth in MB a minute in the second half, and the last minute's latencies to the first's. */
const maxHeapSlope = 2;
const maxResidentSlope = 5;
const maxRatio = 1.5;
const minuteMs = 60_000;

type Latency = { at: number; acknowledgedMs: number; answeredMs: number };

const latenciesOf = (load: Load): Latency[] =>
  load.spaces.flatMap(({ people }) =>
    people.flatMap(({ sent, answeredAt }) =>
      sent.flatMap(({ text, at, acknowledgedAt }) => {
        const answered = commandsIn(text).map(({ id }) => answeredAt.get(id))[0];
        if (acknowledgedAt === undefined || answered === undefined) return [];
        return [{ at, acknowledgedMs: acknowledgedAt - at, answeredMs: answered - at }];
      }),
    ),
  );

/** Everybody speaks, waits for the answer, pauses, and speaks again, until the time is up. */
const speakFor = async (load: Load, untilMs: number): Promise<void> => {
  const random = seededRandom(1);
  const talk = async (space: LoadedSpace, person: Person): Promise<void> => {
    await wait(random.between(0, pauseMs));
    while (performance.now() < untilMs) {
      await load.speak(space, person);
      const last = person.sent.at(-1);
      const ids = last ? commandsIn(last.text).map(({ id }) => id) : [];
      while (performance.now() < untilMs && !ids.every((id) => person.answeredAt.has(id))) await wait(lookEveryMs);
      await wait(random.between(0.5 * pauseMs, 1.5 * pauseMs));
    }
  };
  await Promise.all(load.spaces.flatMap((space) => space.people.map((person) => talk(space, person))));
};

watchSockets();
const inspectorPort = await freePort();
const house = await openHouse({ inspectorPort });
const broken: string[] = [];
try {
  const load = await openLoad(house, 1, fullLoad);
  const begunAt = performance.now();
  const endsAt = begunAt + minutes * minuteMs;
  const samples: { heap: MemorySample[]; resident: MemorySample[] } = { heap: [], resident: [] };
  const heap = await inspectHeap(inspectorPort);
  const sample = async (): Promise<void> => {
    while (performance.now() < endsAt) {
      const minute = (performance.now() - begunAt) / minuteMs;
      samples.heap.push({ minute, megabytes: await heap.megabytes() });
      samples.resident.push({ minute, megabytes: await workerdMegabytes(house.groupId()) });
      await wait(sampleEveryMs);
    }
  };
  await Promise.all([speakFor(load, endsAt), sample()]);
  heap.close();
  const quiet = await becomesQuiet(house, load);
  const verdict = judge(await gather(house, load));
  const latencies = latenciesOf(load);
  await load.close();
  await house.kill();
  const left = timersLeftOver(house.dataDirectory);

  const { messages, events, runs } = verdict.counts;
  console.log(`${minutes} minutes: ${messages} messages, ${events} events, ${runs} runs`);
  const growthOf = (name: string, all: MemorySample[]): number => {
    const growth = slope(all.filter(({ minute }) => minute >= minutes / 2));
    const at = (index: number): string => all.at(index)?.megabytes.toFixed(0) ?? "?";
    console.log(`${name}: ${at(0)} MB at first, ${at(-1)} MB at last, ${growth.toFixed(2)} MB/min in the second half`);
    return growth;
  };
  for (const [name, all, most] of [
    ["resident memory of workerd", samples.resident, maxResidentSlope],
    ["live heap of the worker", samples.heap, maxHeapSlope],
  ] as const) {
    const growth = growthOf(name, all);
    if (!(growth <= most)) broken.push(`the ${name} grows by ${growth.toFixed(2)} MB/min, more than ${most}`);
  }

  const first = latencies.filter((one) => one.at < begunAt + minuteMs);
  const last = latencies.filter((one) => one.at >= endsAt - minuteMs);
  for (const [name, pick] of [
    ["acknowledged", (one: Latency) => one.acknowledgedMs],
    ["answered", (one: Latency) => one.answeredMs],
  ] as const) {
    const [before, after] = [first.map(pick), last.map(pick)];
    const ratio = percentile(after, 0.5) / percentile(before, 0.5);
    const shown = [before, after].map(
      (group) => `p50 ${percentile(group, 0.5).toFixed(0)} ms, p95 ${percentile(group, 0.95).toFixed(0)} ms`,
    );
    console.log(`${name}: first minute ${shown[0]}; last minute ${shown[1]}; p50 ratio ${ratio.toFixed(2)}`);
    if (!(ratio <= maxRatio)) broken.push(`${name}: the last minute takes ${ratio.toFixed(2)} × the first`);
  }
  console.log(`timers left over: ${left.length}`);
  for (const { name, object } of left) broken.push(`the timer ${name} is left over in ${object}`);
  const { lost, doubled, stuck } = verdict;
  console.log(`lost / doubled / stuck: ${lost.length} / ${doubled.length} / ${stuck.length}`);
  broken.push(...lost, ...doubled, ...stuck);
  if (!quiet) broken.push("it did not become quiet");
} finally {
  await house.close();
}
for (const what of broken.slice(0, 20)) console.error(`does not hold: ${what}`);
process.exit(broken.length > 0 ? 1 : 0);
