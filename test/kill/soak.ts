import { setTimeout as wait } from "node:timers/promises";
import { parseArgs } from "node:util";
import { recordMeasured } from "../../scripts/measured.ts";
import { freePort } from "../../scripts/server.ts";
import { openHouse } from "../e2e/support/house.ts";
import { commandsIn } from "./commands.ts";
import { gather } from "./gather.ts";
import { inspectHeap } from "./live-heap.ts";
import { fullLoad, type Load, type LoadedSpace, openLoad } from "./load.ts";
import { type MemorySample, residentMegabytes } from "./memory.ts";
import type { Person } from "./person.ts";
import { becomesQuiet } from "./quiet.ts";
import { seededRandom } from "./random.ts";
import { judgeLatencies, judgeMemory, type Latency, maxGrowth } from "./soak-verdict.ts";
import { timersLeftOver } from "./stored-timers.ts";
import { judge } from "./verdict.ts";
import { watchSockets } from "./wire.ts";

/**
 * `npm run soak -- --minutes N --warm-up M`: the load of the kill test without kills, guests and who follows from outside, for ten minutes. Ten others
 * precede, in which the process takes the memory that it works with. Fails if memory grows, a timer is left over, or it
 * has become slower. `--write` writes the figures into `docs/measured.md`.
 */
const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "10" },
    "warm-up": { type: "string", default: "10" },
    write: { type: "boolean", default: false },
  },
});
const minutes = Number(values.minutes);
const warmUp = Number(values["warm-up"]);
const fewestMinutes = 5;
if (!(minutes >= fewestMinutes && warmUp >= 0)) {
  console.error(`npm run soak -- --minutes N --warm-up M, with N at least ${fewestMinutes}, and M at least 0`);
  process.exit(1);
}

/** The pause between an answer and the next message of each of the twenty people. */
const pauseMs = 4000;
const lookEveryMs = 50;
const sampleEveryMs = 10_000;
const minuteMs = 60_000;

const latenciesOf = (load: Load): Latency[] =>
  load.spaces.flatMap(({ people }) =>
    people.flatMap(({ sent, answeredAt }) =>
      sent.flatMap(({ text, at, acknowledgedAt }) => {
        const answered = commandsIn(text).map(({ id }) => answeredAt.get(id))[0];
        if (acknowledgedAt === undefined || answered === undefined) return [];
        return [{ sentAt: at, acknowledgedMs: acknowledgedAt - at, answeredMs: answered - at }];
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
  const load = await openLoad(house, 1, { ...fullLoad, guests: 0, isFollowed: false });
  const begunAt = performance.now() + warmUp * minuteMs;
  const endsAt = begunAt + minutes * minuteMs;
  const samples: Record<"heap" | "worker" | "front", MemorySample[]> = { heap: [], worker: [], front: [] };
  const heap = await inspectHeap(inspectorPort);
  const sample = async (): Promise<void> => {
    while (performance.now() < endsAt) {
      const minute = (performance.now() - begunAt) / minuteMs;
      // First the heap, which collects all garbage: what is resident after that is kept, or is the allocator's.
      samples.heap.push({ minute, megabytes: await heap.megabytes() });
      const { worker, front } = await residentMegabytes(house.groupId());
      samples.worker.push({ minute, megabytes: worker });
      samples.front.push({ minute, megabytes: front });
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
  const { lost, doubled, stuck } = verdict;
  const judged = [
    judgeMemory("live heap of the worker", samples.heap, maxGrowth.heap),
    judgeMemory("resident memory of the worker", samples.worker, maxGrowth.resident),
    judgeLatencies(latencies, begunAt, endsAt),
  ];
  const lines = [
    `${minutes} minutes after ${warmUp} of warm-up: ${messages} messages, ${events} events, ${runs} runs`,
    ...judged.flatMap((part) => part.lines),
    `timers left over: ${left.length}`,
    `lost / doubled / stuck: ${lost.length} / ${doubled.length} / ${stuck.length}`,
  ];
  for (const line of lines) console.log(line);
  broken.push(...judged.flatMap((part) => part.broken));
  const [first, last] = [samples.front.at(0), samples.front.at(-1)].map((one) => one?.megabytes.toFixed(0));
  console.log(`(wrangler's front, which tells the inspector every line of the log: ${first} MB, then ${last} MB)`);
  for (const { name, object } of left) broken.push(`the timer ${name} is left over in ${object}`);
  broken.push(...lost, ...doubled, ...stuck);
  if (!quiet) broken.push("it did not become quiet");
  if (values.write) {
    const rows = lines.map((line) => {
      const [name = "", ...value] = line.split(": ");
      return { case: name, figure: "", value: value.join(": ") };
    });
    recordMeasured("soak", rows);
  }
} finally {
  await house.close();
}
for (const what of broken.slice(0, 20)) console.error(`does not hold: ${what}`);
process.exit(broken.length > 0 ? 1 : 0);
