import { setTimeout as wait } from "node:timers/promises";
import type { House, Person as Signed } from "../e2e/support/house.ts";
import { type FakeOpenAi, startFakeOpenAi } from "../support/fake-openai.ts";
import { commandText, type Verb } from "./commands.ts";
import { type Followers, openFollowers } from "./followers.ts";
import { type GuestAgent, startGuest } from "./guest.ts";
import { answerTo, type Reading, readingOf } from "./mind.ts";
import { joinAs, type Person } from "./person.ts";
import { type Random, seededRandom } from "./random.ts";
import { openReceivers } from "./receivers.ts";
import { deskSecret, type RefundDesk, startRefundDesk } from "./refund-desk.ts";

/**
 * Five spaces of three agents and four people each; a third of the agents are timelines. A guest is in each of the first
 * spaces. Each person has a line, and three endpoints hear of all spaces.
 */
export type LoadedAgent = {
  id: string;
  name: string;
  continuity: "consciousness" | "timeline";
  /** It thinks in a program here, which comes this way. */
  guest?: GuestAgent["guest"];
};

export type LoadedSpace = { id: string; name: string; agents: LoadedAgent[]; people: Person[]; visitor: Signed };

export type Load = {
  spaces: LoadedSpace[];
  desk: RefundDesk;
  fake: FakeOpenAi;
  /** What the models were given, newest last. */
  readings: Reading[];
  /** One person says something that one agent of the space is to do. */
  speak(space: LoadedSpace, person: Person): Promise<void>;
  /** Undefined where nobody follows from outside. */
  followers: Followers | undefined;
  close(): Promise<void>;
};

export type LoadOptions = {
  spaces: number;
  agents: number;
  people: number;
  wordDelayMs: number;
  guests: number;
  isFollowed: boolean;
};

export const fullLoad: LoadOptions = {
  ...{ spaces: 5, agents: 3, people: 4, wordDelayMs: 8 },
  ...{ guests: 2, isFollowed: true },
};

/** Nothing here is to end by a bound: what is looked for is what crashes do. */
const limits = {
  maxSteps: 100,
  maxTokensPerRun: 10_000_000,
  maxTokensPerDay: 1_000_000_000,
  maxWakesPerRoot: 100,
  maxRunsPerHour: 100_000,
};
const context = { maxTokens: 24_000 };

/** How many loads this process has opened: agents' names are their workspace's own. */
let loads = 0;

/** Builds the spaces and lets everybody in. The same seed writes the same commands. */
export const openLoad = async (house: House, seed: number, options: LoadOptions): Promise<Load> => {
  loads += 1;
  const random = seededRandom(seed);
  const desk = await startRefundDesk(seededRandom(seed + 1));
  const readings: Reading[] = [];
  const fake = await startFakeOpenAi((request) => {
    const reading = readingOf(request);
    // A redaction of an input since its run began leaves the same messages.
    const isSame = ({ agent, ask, messageIds }: Reading): boolean =>
      agent === reading?.agent &&
      (ask === reading.ask || (messageIds.length > 0 && messageIds.join() === reading.messageIds.join()));
    if (reading && !readings.some(isSame)) {
      readings.push(reading);
    }
    fake.requests.length = 0;
    return answerTo(request, options.wordDelayMs);
  });
  await house.api.put("/v1/workspace/secrets/DESK", { value: deskSecret });
  const receivers = options.isFollowed ? await openReceivers(house, seededRandom(seed + 2)) : [];
  const spaces = await Promise.all(
    Array.from({ length: options.spaces }, (_, index) => openSpace(house, index, options, desk, fake.baseUrl)),
  );
  await Promise.all(spaces.flatMap(({ people }) => people.map(({ ready }) => ready)));
  const people = spaces.flatMap((space) => space.people.map(({ signed }) => ({ signed, space })));
  const followers = options.isFollowed ? openFollowers(house, receivers, people) : undefined;
  const guests = await Promise.all(
    spaces.flatMap(({ agents }) =>
      agents.flatMap((agent) => (agent.guest ? startGuest(house, { ...agent, guest: agent.guest }, readings) : [])),
    ),
  );
  let spoken = 0;
  return {
    spaces,
    desk,
    fake,
    readings,
    speak: (space, person) => {
      spoken += 1;
      const id = `${space.name}-${spoken}`;
      const agent = random.pick(space.agents).name;
      const verb = random.pick<Verb>(["say", "say", "refund", "refund", "credit"]);
      const others = space.people.filter((other) => other !== person);
      const mentioned = random.chance(0.5) ? ` @${random.pick(others).signed.name}` : "";
      return person.say(commandText({ id, verb, agent }) + mentioned, random.pick(["socket", "http"] as const));
    },
    followers,
    close: async () => {
      await Promise.all(guests.map((guest) => guest.close()));
      await followers?.close();
      for (const { people } of spaces) for (const person of people) person.close();
      await Promise.all([desk.stop(), fake.stop()]);
    },
  };
};

const openSpace = async (
  house: House,
  index: number,
  options: LoadOptions,
  desk: RefundDesk,
  baseUrl: string,
): Promise<LoadedSpace> => {
  const name = `s${index}`;
  const agents: LoadedAgent[] = [];
  for (let each = 0; each < options.agents; each += 1) {
    const agent = `${name}a${each}`;
    const continuity = each % 3 === 2 ? "timeline" : "consciousness";
    const model = { provider: "openai-compatible", name: agent, baseUrl };
    const id = await house.addAgent({
      name: `${agent} of ${loads}`,
      continuity,
      model,
      limits,
      context,
      tools: desk.tools,
    });
    agents.push({ id, name: agent, continuity });
  }
  if (index < options.guests) {
    const guest = `${name}g`;
    const [kind, continuity] =
      index % 2 === 0 ? (["http", "consciousness"] as const) : (["socket", "timeline"] as const);
    const id = await house.addAgent({
      ...{ name: `${guest} of ${loads}`, runtime: "guest", continuity, limits, context, tools: desk.tools },
    });
    agents.push({ id, name: guest, continuity, guest: kind });
  }
  const signed = [];
  for (let each = 0; each < options.people; each += 1) signed.push(await house.addPerson(`${name}p${each}`));
  const visitor = await house.addPerson(`${name} visitor`);
  const id = await house.addSpace(
    name,
    [...agents, ...signed, visitor].map((member) => member.id),
  );
  return { id, name, agents, visitor, people: signed.map((person) => joinAs(house.url, id, person)) };
};

/** Everybody speaks `times` times within `windowMs`, each at moments of their own. Resolves when all has been said. */
export const speakAll = async (load: Load, random: Random, times: number, windowMs: number): Promise<void> => {
  const turns = load.spaces.flatMap((space) =>
    space.people.flatMap((person) =>
      Array.from({ length: times }, () => ({ space, person, at: random.between(0, windowMs) })),
    ),
  );
  const begunAt = performance.now();
  const said: Promise<void>[] = [];
  for (const { space, person, at } of turns.toSorted((one, other) => one.at - other.at)) {
    await wait(Math.max(0, begunAt + at - performance.now()));
    said.push(load.speak(space, person));
  }
  await Promise.all(said);
};
