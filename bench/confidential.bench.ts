import { type House, openHouse, type Person } from "../test/e2e/support/house.ts";
import { type FakeStep, startFakeOpenAi } from "../test/support/fake-openai.ts";
import { type Bench, percentile } from "./support/figure.ts";
import { closeSockets, type Listening, now, openSockets, whenAll } from "./support/sockets.ts";

/**
 * The cost of an agent's compartments for its open mind. An agent is in twenty confidential spaces, where as much was
 * said as in its open one. It is held against an agent in none: posting to it, composing its input, and searching in
 * it, by turns in one house. Also the cost of a run in a compartment against an open one: it is fed before it begins.
 */
const compartments = 20;
const saidInEach = 5;
const warmUps = 5;
const rounds = 60;
const mostRatio = 1.15;

type Desk = { agentId: string; spaceId: string; person: Person; sockets: Listening[] };

const isOver = (got: Listening): boolean => got.frames.some(({ data }) => data.includes('"run.completed"'));

const openDesk = async (house: House, baseUrl: string, name: string): Promise<Desk> => {
  const person = await house.addPerson(`Husam ${name}`);
  const agentId = await house.addAgent({
    name,
    continuity: "timeline",
    model: { provider: "openai-compatible", name: "plain", baseUrl },
  });
  const spaceId = await house.addSpace(name, [person.id, agentId]);
  return watched(house, { agentId, spaceId, person, sockets: [] });
};

const watched = async (house: House, desk: Desk): Promise<Desk> => {
  const { spaceId, person } = desk;
  const sockets = await openSockets(`${house.url}/v1/spaces/${spaceId}/stream?token=${person.token}`, 1);
  return { ...desk, sockets };
};

const confidentialDesk = async (house: House, { agentId, person }: Desk, name: string): Promise<Desk> => {
  const members = [person.id, agentId].map((entityId) => ({ entityId }));
  const made = { name, members, confidential: true };
  const { space } = await house.api.post<{ space: { id: string } }>("/v1/spaces", made);
  return watched(house, { agentId, spaceId: space.id, person, sockets: [] });
};

export const bench: Bench = async (report) => {
  let calledAt = Number.NaN;
  const fake = await startFakeOpenAi((): FakeStep => {
    calledAt = now();
    return { text: "So be it." };
  });
  const house = await openHouse();
  try {
    /** Posts, and waits until the run is over. Answers how long until the model was called. */
    const post = async ({ person, spaceId, sockets }: Desk, text: string): Promise<number> => {
      for (const got of sockets) got.frames.length = 0;
      const over = whenAll(sockets, isOver);
      const from = now();
      await person.api.post(`/v1/spaces/${spaceId}/messages`, { text });
      await over;
      return calledAt - from;
    };
    const timed = async (work: () => Promise<unknown>): Promise<number> => {
      const from = now();
      await work();
      return now() - from;
    };

    const [plain, private_] = [
      await openDesk(house, fake.baseUrl, "Plain"),
      await openDesk(house, fake.baseUrl, "Private"),
    ];
    const vaults: Desk[] = [];
    for (let index = 0; index < compartments; index += 1) {
      const vault = await confidentialDesk(house, private_, `Vault ${index}`);
      vaults.push(vault);
      for (let said = 0; said < saidInEach; said += 1) {
        const words = `The report of week ${said} is in drawer ${index}`;
        await post(vault, words);
        for (const desk of [plain, private_]) await post(desk, words);
      }
    }

    const figures: Record<string, (desk: Desk, round: number) => Promise<number>> = {
      "a post to the model being called": (desk, round) => post(desk, `What of week ${round}?`),
      "composing the next input (GET context)": (desk) =>
        timed(() => house.api.get(`/v1/agents/${desk.agentId}/context`)),
      "a search by words": (desk, round) =>
        timed(() => house.api.get(`/v1/agents/${desk.agentId}/search?q=report+of+week+${Math.abs(round) % 5}`)),
    };
    const broken: string[] = [];
    for (const [name, figure] of Object.entries(figures)) {
      const times = { plain: [] as number[], ours: [] as number[] };
      for (let round = -warmUps; round < rounds; round += 1) {
        const [one, other] = [await figure(plain, round), await figure(private_, round)];
        if (round < 0) continue;
        times.plain.push(one);
        times.ours.push(other);
      }
      const [ours, baseline] = [percentile(times.ours, 0.5), percentile(times.plain, 0.5)];
      report({
        case: `${compartments} compartments against none: ${name}`,
        figure: `p50, at most ${mostRatio} of none`,
        unit: "ms",
        ours,
        baseline,
      });
      if (!(ours <= mostRatio * baseline)) broken.push(`${name}: ${ours} ms are more than ${mostRatio} of ${baseline}`);
    }

    const inside: number[] = [];
    const outside: number[] = [];
    for (let round = -warmUps; round < rounds; round += 1) {
      const vault = vaults[Math.abs(round) % compartments];
      const [one, other] = [vault ? await post(vault, `And ${round}?`) : 0, await post(private_, `And ${round}?`)];
      if (round < 0) continue;
      inside.push(one);
      outside.push(other);
    }
    report({
      case: "a post in a confidential space to the model being called, against an open one",
      figure: "p50, lower is better",
      unit: "ms",
      ours: percentile(inside, 0.5),
      baseline: percentile(outside, 0.5),
    });
    for (const { sockets } of [plain, private_, ...vaults]) closeSockets(sockets);
    return broken;
  } finally {
    await house.close();
    await fake.stop();
  }
};
