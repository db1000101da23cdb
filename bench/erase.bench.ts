import { setTimeout as pause } from "node:timers/promises";
import { type House, openHouse, type Person } from "../test/e2e/support/house.ts";
import type { Counts } from "./edge/counts.ts";
import { type Bench, percentile } from "./support/figure.ts";
import { now } from "./support/sockets.ts";

/**
 * The time and cost to erase a person who said 10,000 messages in 50 spaces, each with 20 agents that heard them.
 * Meanwhile other people post into the same spaces, as they did before it began: their slowest posts are compared.
 * The worker counts requests to objects and rows written, by kind. The baseline of a kind is what as many posts, with
 * their deliveries, cost before. `SPACES=4 AGENTS=2 npm run bench -- erase` is a small one, with 800 messages.
 */
const spaces = Number(process.env.SPACES ?? 50);
const agents = Number(process.env.AGENTS ?? 20);
const messages = 200 * spaces;
const others = 4;
const postsBefore = 800;
/** Between two posts of one of them. */
const pauseMs = 20;
const mostRatio = 1.5;
const atOnce = 8;
const longestMs = 15 * 60_000;
/** The worker holds a cursor of each statement until its counts are taken. */
const takeEveryMs = 500;

type Erasure = { state: string; objects: number; rows: number; requests: number; left: number };

/** Each another one, as people's are. */
const sentence = (index: number): string =>
  Array.from({ length: 14 }, (_, place) => `w${((index * 31 + place * 17) * 2_654_435_761) % 46_656}`).join(" ");

const addressOf = (spaceId: string): string => `/v1/spaces/${spaceId}/messages`;

/** Posts of one after another until `isOver`, and how long each took. */
const posting = async (person: Person, spaceIds: string[], isOver: (posts: number) => boolean): Promise<number[]> => {
  const took: number[] = [];
  while (!isOver(took.length)) {
    const spaceId = spaceIds[took.length % spaceIds.length] ?? "";
    const from = now();
    await person.api.post(addressOf(spaceId), { text: `What of week ${took.length}?` });
    took.push(now() - from);
    await pause(pauseMs);
  }
  return took;
};

const openFloors = async (house: House) => {
  const mona = await house.addPerson("Mona");
  const people: Person[] = [];
  for (let index = 0; index < others; index += 1) people.push(await house.addPerson(`Person ${index}`));
  const agentIds: string[] = [];
  for (let index = 0; index < agents; index += 1) {
    agentIds.push(await house.addAgent({ name: `Listener ${index}`, model: { provider: "rehearsal" } }));
  }
  const members = [mona.id, ...people.map(({ id }) => id), ...agentIds].map((entityId) => ({ entityId }));
  const spaceIds: string[] = [];
  for (let index = 0; index < spaces; index += 1) {
    const body = { name: `Floor ${index}`, members, wakePolicy: "addressed" };
    spaceIds.push((await house.api.post<{ space: { id: string } }>("/v1/spaces", body)).space.id);
  }
  let said = 0;
  const saying = async (): Promise<void> => {
    while (said < messages) {
      said += 1;
      await mona.api.post(addressOf(spaceIds[said % spaces] ?? ""), { text: sentence(said) });
    }
  };
  await Promise.all(Array.from({ length: atOnce }, saying));
  return { mona, people, spaceIds };
};

const units = { request: "requests", written: "rows written" } as const;
type Counted = Record<keyof typeof units, Map<string, number>>;

/** Takes the worker's counts again and again. Answers a function that hands out those since its last call. */
const counting = (house: House, signal: AbortSignal) => {
  let sums: Counted = { request: new Map(), written: new Map() };
  const take = async (): Promise<void> => {
    const counts = await house.api.get<Counts>("/bench/counts");
    for (const kind of ["request", "written"] as const) {
      for (const [what, by] of Object.entries(counts[kind])) sums[kind].set(what, (sums[kind].get(what) ?? 0) + by);
    }
  };
  const keepTaking = async (): Promise<void> => {
    for (; !signal.aborted; await pause(takeEveryMs)) await take();
  };
  const ended = keepTaking();
  const counted = async (): Promise<Counted> => {
    await take();
    const taken = sums;
    sums = { request: new Map(), written: new Map() };
    return taken;
  };
  return { counted, ended };
};

export const bench: Bench = async (report) => {
  const house = await openHouse({ config: "bench/edge/wrangler.toml" });
  const over = new AbortController();
  const { counted, ended } = counting(house, over.signal);
  try {
    const { mona, people, spaceIds } = await openFloors(house);
    const parts = people.map((_, index) => spaceIds.filter((_, place) => place % others === index));
    const postAll = async (isOver: (posts: number) => boolean): Promise<number[]> => {
      const each = people.map((person, index) => posting(person, parts[index] ?? spaceIds, isOver));
      return (await Promise.all(each)).flat();
    };
    // Until each space has told its agents of what was said, and code is compiled.
    await postAll((posts) => posts >= postsBefore / others / 2);
    await pause(5000);
    await counted();
    const before = await postAll((posts) => posts >= postsBefore / others);
    const countsBefore = await counted();
    let isDone = false;
    const from = now();
    const meanwhile = postAll(() => isDone);
    await house.api.post("/v1/erasures", { kind: "person", id: mona.id });
    let erasure: Erasure | undefined;
    while (erasure?.state !== "done" && now() - from < longestMs) {
      await pause(500);
      ({ erasure } = await house.api.get<{ erasure: Erasure }>(`/v1/erasures/${mona.id}`));
    }
    const took = now() - from;
    const counts = await counted();
    isDone = true;
    const during = await meanwhile;
    const name = `a person with ${messages.toLocaleString("en")} messages in ${spaces} spaces with ${agents} agents is erased`;
    const [ours, baseline] = [percentile(during, 0.99), percentile(before, 0.99)];
    const figure = (what: string, unit: string, value: number) =>
      report({ case: name, figure: what, unit, ours: value, baseline: null });
    figure("until all have let it go, lower is better", "s", took / 1000);
    figure("objects that were visited", "objects", erasure?.objects ?? 0);
    figure("requests of the workspace to them, lower is better", "requests", erasure?.requests ?? 0);
    figure("rows that were changed", "rows", erasure?.rows ?? 0);
    for (const kind of ["request", "written"] as const) {
      // This bench itself asks how far the erasure is.
      counts[kind].delete("workspace.erasure");
      let [all, usually] = [0, 0];
      const row = { figure: "against what so many posts cost before", unit: units[kind] };
      for (const [what, by] of [...counts[kind]].sort()) {
        const usual = (countsBefore[kind].get(what) ?? 0) * (during.length / before.length);
        [all, usually] = [all + by, usually + usual];
        report({ case: `${name}: ${what}`, ...row, ours: by, baseline: usual || null });
      }
      report({ case: `${name}: in all`, ...row, ours: all, baseline: usually });
    }
    figure("posts of others meanwhile", "posts", during.length);
    const p99 = `p99, at most ${mostRatio} of before`;
    report({ case: `${name}: a post of somebody else meanwhile`, figure: p99, unit: "ms", ours, baseline });
    const [median, usual] = [percentile(during, 0.5), percentile(before, 0.5)];
    report({
      case: `${name}: a post of somebody else meanwhile`,
      ...{ figure: "p50, lower is better", unit: "ms", ours: median, baseline: usual },
    });
    const left = await house.api.get<{ items: { text?: string; sender: { id: string } }[] }>(
      `${addressOf(spaceIds[1] ?? "")}?limit=200`,
    );
    const words = left.items.filter(({ sender, text }) => sender.id === mona.id && text !== undefined);
    return [
      ...(erasure?.state === "done" ? [] : [`it is not done after ${longestMs} ms: ${erasure?.left} are left`]),
      ...(words.length === 0 ? [] : [`${words.length} messages have their words`]),
      ...(ours <= mostRatio * baseline ? [] : [`${ours} ms are more than ${mostRatio} of ${baseline} ms`]),
    ];
  } finally {
    over.abort();
    await ended;
    await house.close();
  }
};
