import { setTimeout as wait } from "node:timers/promises";
import type { House, Person as Signed } from "../e2e/support/house.ts";
import { type FakeOpenAi, startFakeOpenAi } from "../support/fake-openai.ts";
import { commandText, type Verb } from "./commands.ts";
import { answerTo, type Reading, readingOf } from "./mind.ts";
import { joinAs, type Person } from "./person.ts";
import { type Random, seededRandom } from "./random.ts";
import { deskSecret, type RefundDesk, startRefundDesk } from "./refund-desk.ts";

/** Five spaces of three agents and four people each; a third of the agents are timelines. */
export type LoadedAgent = { id: string; name: string; continuity: "consciousness" | "timeline" };

export type LoadedSpace = { id: string; name: string; agents: LoadedAgent[]; people: Person[]; visitor: Signed };

export type Load = {
  spaces: LoadedSpace[];
  desk: RefundDesk;
  fake: FakeOpenAi;
  /** What the models were given, newest last. */
  readings: Reading[];
  /** One person says something that one agent of the space is to do. */
  speak(space: LoadedSpace, person: Person): Promise<void>;
  close(): Promise<void>;
};

export type LoadOptions = { spaces: number; agents: number; people: number; wordDelayMs: number };

export const fullLoad: LoadOptions = { spaces: 5, agents: 3, people: 4, wordDelayMs: 8 };

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
  const spaces = await Promise.all(
    Array.from({ length: options.spaces }, (_, index) => openSpace(house, `s${index}`, options, desk, fake.baseUrl)),
  );
  await Promise.all(spaces.flatMap(({ people }) => people.map(({ ready }) => ready)));
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
      return person.say(commandText({ id, verb, agent }), random.pick(["socket", "http"] as const));
    },
    close: async () => {
      for (const { people } of spaces) for (const person of people) person.close();
      await Promise.all([desk.stop(), fake.stop()]);
    },
  };
};

const openSpace = async (
  house: House,
  name: string,
  options: LoadOptions,
  desk: RefundDesk,
  baseUrl: string,
): Promise<LoadedSpace> => {
  const agents: LoadedAgent[] = [];
  for (let index = 0; index < options.agents; index += 1) {
    const agent = `${name}a${index}`;
    const continuity = index % 3 === 2 ? "timeline" : "consciousness";
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
  const signed = [];
  for (let index = 0; index < options.people; index += 1) signed.push(await house.addPerson(`${name}p${index}`));
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
