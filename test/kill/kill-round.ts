import { setTimeout as wait } from "node:timers/promises";
import { createApi } from "../../scripts/api.ts";
import { resealAll } from "../../scripts/secrets.ts";
import type { House } from "../e2e/support/house.ts";
import { gather } from "./gather.ts";
import { type Load, type LoadOptions, openLoad, speakAll } from "./load.ts";
import { becomesQuiet } from "./quiet.ts";
import { type Random, seededRandom } from "./random.ts";
import { type Kill, recoveryTimes } from "./recovery.ts";
import { longestPauseMs } from "./refund-desk.ts";
import { insist, visit } from "./taken-away.ts";
import { judge, type Verdict } from "./verdict.ts";

/**
 * One seed. People speak, and the power goes once or twice at moments that the seed says. After the last they speak
 * once more. In one seed of five they say nothing, so that everything has to come back by its own alarms.
 */
export type Round = { verdict: Verdict; kills: number; recoveriesMs: number[]; seconds: number; deleted: string[] };

const wordsEach = 2;
const windowMs = 2000;
/** No part of a round takes longer: one that does is named, and the run fails. */
const longestPartMs = 180_000;
/** The first kill comes within this time: while people speak, or while the agents still answer. */
const killWithinMs = 5000;

const ends = async <T>(what: string, part: Promise<T>): Promise<T> => {
  const late = new AbortController();
  const tooLong = wait(longestPartMs, undefined, { signal: late.signal }).then(() => {
    throw new Error(`${what} did not end within ${longestPartMs / 1000} s`);
  });
  tooLong.catch(() => undefined);
  try {
    return await Promise.race([part, tooLong]);
  } finally {
    late.abort();
  }
};

export const killRound = async (
  house: House,
  seed: number,
  { crashes, load: options }: { crashes: boolean; load: LoadOptions },
): Promise<Round> => {
  const begunAt = performance.now();
  const random = seededRandom(seed * 7919);
  const load = await ends("opening the load", openLoad(house, seed, options));
  try {
    const saying = speakAll(load, seededRandom(seed * 104_729), wordsEach, windowMs);
    const visiting = Promise.all(
      load.spaces.map(({ id, visitor }, index) =>
        visit(house, { spaceId: id, visitor, random: seededRandom(seed * 31 + index), windowMs: 2 * windowMs }),
      ),
    );
    const over = new AbortController();
    const reading = readNowAndThen(load, seededRandom(seed * 13), over.signal);
    reading.catch(() => undefined);
    const kills = crashes ? await ends("the kills", killAtRandom(house, load, random)) : [];
    await ends("speaking", saying);
    const notes = await ends("the visits", visiting);
    over.abort();
    await ends("reading", reading);
    // A rotation is over once all that is sealed is sealed by the new secret.
    const operator = createApi(house.url, house.adminKey);
    const left = crashes
      ? await ends(
          "sealing anew",
          insist(() => resealAll(operator, [house.workspaceId])),
        )
      : [];
    if (!random.chance(0.2)) await ends("the last words", speakLast(load));
    const quiet = await becomesQuiet(house, load);
    const evidence = await ends("gathering", gather(house, load, notes));
    const verdict = judge(evidence);
    if (left.length > 0) verdict.stuck.push("what is sealed by an older secret");
    const guests = new Set(
      load.spaces.flatMap(({ agents }) => agents.filter(({ guest }) => guest)).map(({ name }) => name),
    );
    const recoveriesMs = evidence.spaces.flatMap(({ log }) => recoveryTimes(log, kills, guests));
    if (!quiet && verdict.stuck.length === 0) verdict.stuck.push(`something still moved at the end: ${restless(load)}`);
    const deleted = notes.flat().flatMap(({ text, isDeleted }) => (isDeleted ? text : []));
    return { verdict, kills: kills.length, recoveriesMs, seconds: (performance.now() - begunAt) / 1000, deleted };
  } finally {
    await load.close();
  }
};

/** While others speak and the power goes. */
const readNowAndThen = async ({ followers }: Load, random: Random, signal: AbortSignal): Promise<void> => {
  while (followers && !signal.aborted) {
    await followers.read(random);
    await wait(random.between(0, 500));
  }
};

/** One more word in each space: every agent is woken by it, whatever alarms it has. */
const speakLast = async (load: Load): Promise<void> => {
  for (const space of load.spaces) {
    const [person] = space.people;
    if (person) await load.speak(space, person);
  }
};

/** Once or twice, each time at any moment, or while the refund desk has just been asked. */
const killAtRandom = async (house: House, load: Load, random: Random): Promise<Kill[]> => {
  const kills: Kill[] = [];
  const count = random.chance(0.4) ? 2 : 1;
  for (let kill = 0; kill < count; kill += 1) {
    await wait(kill === 0 ? random.between(300, killWithinMs) : random.between(0, windowMs));
    const aimsAtDesk = random.chance(0.5);
    const mostMs = random.between(0, 2 * longestPauseMs);
    if (aimsAtDesk) await Promise.race([load.desk.next().then(() => wait(mostMs)), wait(killWithinMs)]);
    // While others speak, and their tokens and their tools' secrets are of the secret before.
    if (random.chance(0.5)) house.rotate();
    const at = Date.now();
    await house.crash();
    kills.push({ at, restartedAt: Date.now() });
  }
  return kills;
};

/** What the clients saw moving last. */
const restless = ({ spaces }: Load): string =>
  spaces
    .flatMap(({ name, people }) =>
      people.map(({ state }, index) => {
        const { connection, outgoing, streams, active } = state();
        const moving = outgoing.length + streams.length + active.length;
        return connection.status === "open" && moving === 0
          ? ""
          : `${name}, client ${index}: ${connection.status}, ${streams.length} streams, ${active.length} active`;
      }),
    )
    .filter((line) => line !== "")
    .join("; ");
