import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type Api, createApi } from "../scripts/api.ts";
import { freePort, type Server, startServer } from "../scripts/server.ts";
import { type House, openHouse } from "../test/e2e/support/house.ts";
import { inspectHeap, type LiveHeap } from "../test/kill/live-heap.ts";
import { residentMegabytes } from "../test/kill/memory.ts";
import { type Bench, percentile } from "./support/figure.ts";
import { postJson } from "./support/servers.ts";

/**
 * The memory of objects that have nothing to do: 5,000 agents and 2,000 spaces, each used once and then evicted. Using one
 * is a message in its space, which is delivered to two or three agents. Memory of workerd is compared with that of the
 * same process after a few of them. Then the time to wake one. The baseline is as many bare objects with one insert each.
 *
 * The live heap is held to the live heap before. Resident memory is held to the bare objects': workerd's allocator keeps
 * the memory of all objects that were awake at once (docs/decisions/2026-11-22-what-sleepers-leave.md).
 */
const agents = 5000;
const spaces = 2000;
/** A workspace has at most a thousand agents. Divides the numbers of agents and of spaces. */
const workspaces = 5;
const warmUps = 10;
const atOnce = 8;
/** The bound of the live heap against before, and of the resident memory against the bare objects'. */
const mostKept = 1.2;
const mostLeft = 1.2;
/** How many times as long as waking a bare object waking an agent may take. */
const mostWaking = 1.5;
/** An object that was used wakes within a minute to report it. Then longer than one stays in memory with nothing to do. */
const evictedMs = 90_000;
const samples = 5;
const woken = 200;

/** In MiB, of the worker's process: what lives in its heap, and what is resident. */
type Memory = { heap: number; resident: number };
type Asleep = { before: Memory; after: Memory; most: number };

/** A server, and the heap of its worker: an inspector tells of it only once, so it stays open. */
type Inspected = { groupId: number; heap: LiveHeap };

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

const residentOf = async ({ groupId }: Inspected): Promise<number> => (await residentMegabytes(groupId)).worker;

/** Memory once all sleep: the least of some samples, for what is freed is given back bit by bit. */
const memoryAsleep = async (server: Inspected): Promise<Memory> => {
  await pause(evictedMs);
  const seen: Memory[] = [];
  for (let sample = 0; sample < samples; sample += 1) {
    seen.push({ heap: await server.heap.megabytes(), resident: await residentOf(server) });
    await pause(1000);
  }
  return {
    heap: Math.min(...seen.map((memory) => memory.heap)),
    resident: Math.min(...seen.map(({ resident }) => resident)),
  };
};

/** Memory of a process that has just started, before and after `use` woke `count` objects. */
const lives = async (server: Inspected, count: number, use: (index: number) => Promise<unknown>): Promise<Asleep> => {
  await each(warmUps, use);
  const before = await memoryAsleep(server);
  let most = before.resident;
  await each(count - warmUps, async (index) => {
    await use(index + warmUps);
    if (index % 100 === 0) most = Math.max(most, await residentOf(server));
  });
  return { before, after: await memoryAsleep(server), most };
};

/**
 * How long each kind takes to wake, p50. One of each is woken in turn, so that all have the same machine. They are the
 * last `woken` of them, which were not looked at since they were used.
 */
const wake = async (kinds: { count: number; ask: (index: number) => Promise<unknown> }[]): Promise<number[]> => {
  const times = kinds.map((): number[] => []);
  for (let index = 1; index <= woken; index += 1) {
    for (const [kind, { count, ask }] of kinds.entries()) {
      const startedAt = performance.now();
      await ask(count - index);
      times[kind]?.push(performance.now() - startedAt);
    }
  }
  return times.map((each) => percentile(each, 0.5));
};

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

const ourLives = async (bare: (index: number) => Promise<unknown>) => {
  const inspectorPort = await freePort();
  const house = await openHouse({ inspectorPort });
  try {
    const city = await build(house);
    const { agentIds, spaceIds } = city;
    await house.crash();
    const heap = await inspectHeap(inspectorPort);
    const memory = await lives({ groupId: house.groupId(), heap }, spaces, (index) => {
      const { id, api } = personOf(city, index);
      return api.as(id).post(`/v1/spaces/${spaceIds[index]}/messages`, { text: "What is new?" });
    });
    heap.close();
    const told = agents - 1 - woken;
    const inbox = `/v1/agents/${agentIds[told]}/inbox`;
    const { items } = await personOf(city, told).api.get<{ items: unknown[] }>(inbox);
    if (items.length !== 1) throw new Error(`an agent was told of ${items.length} messages, not of one`);
    const [one = 0, agent = 0, space = 0] = await wake([
      { count: agents + spaces, ask: bare },
      { count: agents, ask: (index) => personOf(city, index).api.get(`/v1/agents/${agentIds[index]}`) },
      { count: spaces, ask: (index) => personOf(city, index).api.get(`/v1/spaces/${spaceIds[index]}`) },
    ]);
    return { memory, one, agent, space };
  } finally {
    await house.close();
  }
};

/** `beside` runs while the bare objects sleep. It may wake one by its number. */
const bareLives = async <T>(beside: (wakeOne: (index: number) => Promise<unknown>) => Promise<T>) => {
  const dataDirectory = mkdtempSync(join(tmpdir(), "bench-"));
  const inspectorPort = await freePort();
  const config = "bench/baseline/wrangler.toml";
  const options = { dataDirectory, config, variables: {}, port: await freePort(), inspectorPort };
  let server: Server = await startServer(options);
  try {
    const post = (index: number) => postJson(`${server.url}/post?name=sleeper-${index}`, { text: "What is new?" });
    await each(agents + spaces, post);
    await server.kill();
    server = await startServer(options);
    const heap = await inspectHeap(inspectorPort);
    const memory = await lives({ groupId: server.groupId, heap }, agents + spaces, post);
    heap.close();
    const ours = await beside(async (index) => {
      const answer = await fetch(`${server.url}/newest?name=sleeper-${index}`);
      if (!answer.ok) throw new Error(`a bare object answered ${answer.status}`);
      await answer.text();
    });
    return { bare: { memory }, ours };
  } finally {
    await server.stop();
    rmSync(dataDirectory, { recursive: true, force: true });
  }
};

export const bench: Bench = async (report) => {
  const { bare, ours } = await bareLives(ourLives);
  const of = `${agents} agents and ${spaces} spaces, used once and evicted`;
  const left = ({ memory }: { memory: Asleep }): number => memory.after.resident - memory.before.resident;
  const all = [
    { of, memory: ours.memory },
    { of: `${agents + spaces} bare objects, the same`, memory: bare.memory },
  ];
  for (const { of: what, memory } of all) {
    report({
      case: `${what}: what lives in the worker's heap, against before`,
      figure: memory === ours.memory ? `at most ${mostKept} of before` : "what the platform itself keeps",
      unit: "MiB",
      ours: memory.after.heap,
      baseline: memory.before.heap,
    });
  }
  report({
    case: `${of}: resident memory that they leave taken, against as many bare objects`,
    figure: `at most ${mostLeft} of the bare objects'`,
    unit: "MiB",
    ours: left(ours),
    baseline: left(bare),
  });
  for (const { of: what, memory } of all) {
    report({
      case: `${what}: resident memory, against before`,
      figure: "what the allocator keeps",
      unit: "MiB",
      ours: memory.after.resident,
      baseline: memory.before.resident,
    });
  }
  report({
    case: "resident memory at most meanwhile, against as many bare objects'",
    figure: "lower is better",
    unit: "MiB",
    ours: ours.memory.most,
    baseline: bare.memory.most,
  });
  for (const [what, took, bound] of [
    ["an agent", ours.agent, mostWaking],
    ["a space", ours.space, undefined],
  ] as const) {
    report({
      case: `waking ${what} by a GET, against a bare object`,
      figure: `p50, lower is better${bound === undefined ? "" : `, at most ${bound} times`}`,
      unit: "ms",
      ours: took,
      baseline: ours.one,
    });
  }
  const { before, after } = ours.memory;
  return [
    ...(after.heap <= mostKept * before.heap
      ? []
      : [`${after.heap} MiB live in the heap, more than ${mostKept} of ${before.heap}`]),
    ...(left(ours) <= mostLeft * left(bare)
      ? []
      : [`${left(ours)} MiB are left taken, more than ${mostLeft} of ${left(bare)}`]),
    ...(ours.agent <= mostWaking * ours.one
      ? []
      : [`waking an agent takes ${ours.agent} ms, a bare object ${ours.one} ms`]),
  ];
};
