import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type Api, createApi } from "../scripts/api.ts";
import { freePort, type Server, startServer } from "../scripts/server.ts";
import { type House, openHouse } from "../test/e2e/support/house.ts";
import { type Bench, percentile } from "./support/figure.ts";
import { residentMiB } from "./support/resident.ts";
import { postJson } from "./support/servers.ts";

/**
 * What many objects hold that have nothing to do: 5,000 agents and 2,000 spaces, each used once (a message is posted in
 * every space, and delivered to its two or three agents) and then evicted. Memory of workerd after against before, and
 * how long it takes to wake one; beside as many bare objects, each of which did one insert.
 *
 * Before is a process in which as many others were used, and evicted: its allocator has taken by then what it takes, and
 * gives nothing back, whatever the objects are. What those first ones leave taken of a fresh process is held against what
 * as many bare objects leave (docs/decisions/2026-11-22-what-sleepers-leave.md).
 */
const agents = 5000;
const spaces = 2000;
/** A workspace has at most a thousand agents. Divides the numbers of agents and of spaces. */
const workspaces = 5;
const warmUps = 10;
const atOnce = 8;
/** Of before; and of what bare objects leave taken of a fresh process. */
const mostKept = 1.2;
const mostLeft = 1.2;
/** Longer than an object stays in memory with nothing to do. */
const evictedMs = 30_000;
const samples = 5;
const woken = 100;

/** In MiB, of a process: fresh, after as many others were used first, at most meanwhile, and after those that count. */
type Asleep = { fresh: number; before: number; after: number; most: number };

/** Does `act` for each number below `count`, a few at a time. */
const each = async (count: number, act: (index: number) => Promise<unknown>): Promise<void> => {
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < count) {
      next += 1;
      await act(next - 1);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
};

/** Memory once all sleep: the least of some samples, for what is freed is given back bit by bit. */
const memoryAsleep = async (): Promise<number> => {
  await pause(evictedMs);
  const seen: number[] = [];
  for (let sample = 0; sample < samples; sample += 1) {
    seen.push(residentMiB());
    await pause(1000);
  }
  return Math.min(...seen);
};

/** Of a process that has just started, in which `wear` uses others and then `use` awakes what `count` counts. */
const lives = async (
  wear: () => Promise<unknown>,
  count: number,
  use: (index: number) => Promise<unknown>,
): Promise<Asleep> => {
  await each(warmUps, use);
  const fresh = await memoryAsleep();
  await wear();
  const before = await memoryAsleep();
  let most = before;
  await each(count - warmUps, async (index) => {
    await use(index + warmUps);
    if (index % 100 === 0) most = Math.max(most, residentMiB());
  });
  return { fresh, before, after: await memoryAsleep(), most };
};

/** How long each of these takes, one after another. */
const timesOf = async (acts: (() => Promise<unknown>)[]): Promise<number> => {
  const times: number[] = [];
  for (const act of acts) {
    const startedAt = performance.now();
    await act();
    times.push(performance.now() - startedAt);
  }
  return percentile(times, 0.5);
};

/** The first `woken` from the end, asked for while they sleep: none of them was looked at since it was used. */
const wake = (count: number, ask: (index: number) => Promise<unknown>): Promise<number> =>
  timesOf(Array.from({ length: woken }, (_, index) => () => ask(count - 1 - index)));

type Person = { id: string; api: Api };

/** Everything in it is by its number; number `n` is in workspace `n % workspaces`, of which each has its own person. */
type City = { people: Person[]; agentIds: string[]; spaceIds: string[] };

const build = async (house: House): Promise<City> => {
  const city: City = { people: [], agentIds: [], spaceIds: [] };
  const operator = createApi(house.url, house.adminKey);
  for (let index = 0; index < workspaces; index += 1) {
    const { secretKey } = await operator.post<{ secretKey: string }>("/v1/workspaces", { name: `Workspace ${index}` });
    const api = createApi(house.url, secretKey);
    const { entity } = await api.post<{ entity: { id: string } }>("/v1/entities", { type: "human", name: "Husam" });
    city.people.push({ id: entity.id, api });
  }
  await each(agents, async (index) => {
    const config = { name: `Agent ${index}` };
    const { agent } = await personOf(city, index).api.post<{ agent: { id: string } }>("/v1/agents", config);
    city.agentIds[index] = agent.id;
  });
  await each(spaces, async (index) => {
    const { id, api } = personOf(city, index);
    const members = [id, ...city.agentIds.filter((_, agent) => agent % spaces === index)];
    const body = {
      name: `Space ${index}`,
      members: members.map((entityId) => ({ entityId })),
      wakePolicy: "addressed",
    };
    city.spaceIds[index] = (await api.post<{ space: { id: string } }>("/v1/spaces", body)).space.id;
  });
  return city;
};

const personOf = ({ people }: City, index: number): Person => {
  const person = people[index % workspaces];
  if (!person) throw new Error("no such workspace");
  return person;
};

const ourLives = async () => {
  const house = await openHouse();
  try {
    const city = await build(house);
    const { agentIds, spaceIds } = city;
    await house.crash();
    const memory = await lives(
      () => build(house),
      spaces,
      (index) => {
        const { id, api } = personOf(city, index);
        return api.as(id).post(`/v1/spaces/${spaceIds[index]}/messages`, { text: "What is new?" });
      },
    );
    const told = agents - 1 - woken;
    const inbox = `/v1/agents/${agentIds[told]}/inbox`;
    const { items } = await personOf(city, told).api.get<{ items: unknown[] }>(inbox);
    if (items.length !== 1) throw new Error(`an agent was told of ${items.length} messages, not of one`);
    const agent = await wake(agents, (index) => personOf(city, index).api.get(`/v1/agents/${agentIds[index]}`));
    const space = await wake(spaces, (index) => personOf(city, index).api.get(`/v1/spaces/${spaceIds[index]}`));
    return { memory, agent, space };
  } finally {
    await house.close();
  }
};

const bareLives = async () => {
  const dataDirectory = mkdtempSync(join(tmpdir(), "bench-"));
  const options = { dataDirectory, config: "bench/baseline/wrangler.toml", variables: {}, port: await freePort() };
  let server: Server = await startServer(options);
  try {
    const posting = (kind: string) => (index: number) =>
      postJson(`${server.url}/post?name=${kind}-${index}`, { text: "What is new?" });
    await each(agents + spaces, posting("sleeper"));
    await server.kill();
    server = await startServer(options);
    const wear = () => each(agents + spaces, posting("other"));
    const memory = await lives(wear, agents + spaces, posting("sleeper"));
    const one = await wake(agents + spaces, async (index) => {
      const answer = await fetch(`${server.url}/newest?name=sleeper-${index}`);
      if (!answer.ok) throw new Error(`a bare object answered ${answer.status}`);
      await answer.text();
    });
    return { memory, one };
  } finally {
    await server.stop();
    rmSync(dataDirectory, { recursive: true, force: true });
  }
};

export const bench: Bench = async (report) => {
  const bare = await bareLives();
  const ours = await ourLives();
  const of = `${agents} agents and ${spaces} spaces, used once and evicted`;
  const left = ({ memory }: { memory: Asleep }): number => memory.before - memory.fresh;
  report({
    case: `${of}: memory of workerd, against before, when as many others had been`,
    figure: `at most ${mostKept} of before`,
    unit: "MiB",
    ours: ours.memory.after,
    baseline: ours.memory.before,
  });
  report({
    case: "what the first of them leave taken of a fresh process, against as many bare objects",
    figure: `at most ${mostLeft} of the bare objects'`,
    unit: "MiB",
    ours: left(ours),
    baseline: left(bare),
  });
  report({
    case: "memory of workerd after the first of them, against the fresh process",
    figure: "what its allocator keeps",
    unit: "MiB",
    ours: ours.memory.before,
    baseline: ours.memory.fresh,
  });
  report({
    case: `the same of ${agents + spaces} bare objects`,
    figure: "what its allocator keeps",
    unit: "MiB",
    ours: bare.memory.before,
    baseline: bare.memory.fresh,
  });
  report({
    case: `${agents + spaces} bare objects, used once and evicted: memory of workerd, against before, when as many others had been`,
    figure: "what the platform itself keeps",
    unit: "MiB",
    ours: bare.memory.after,
    baseline: bare.memory.before,
  });
  report({
    case: "memory of workerd at most meanwhile, against as many bare objects'",
    figure: "lower is better",
    unit: "MiB",
    ours: ours.memory.most,
    baseline: bare.memory.most,
  });
  for (const [what, took] of [
    ["an agent", ours.agent],
    ["a space", ours.space],
  ] as const) {
    report({
      case: `waking ${what} by a GET, against a bare object`,
      figure: "p50, lower is better",
      unit: "ms",
      ours: took,
      baseline: bare.one,
    });
  }
  const { before, after } = ours.memory;
  return [
    ...(after <= mostKept * before ? [] : [`memory: ${after} MiB, more than ${mostKept} of the ${before} before`]),
    ...(left(ours) <= mostLeft * left(bare)
      ? []
      : [`memory: ${left(ours)} MiB are left taken, more than ${mostLeft} of ${left(bare)}`]),
  ];
};
