import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type House, openHouse, type Person } from "../test/e2e/support/house.ts";
import type { Counts } from "./edge/counts.ts";
import { type Bench, percentile, type Report } from "./support/figure.ts";
import type { Asked, Heard } from "./support/line-listeners.ts";
import { residentMiB } from "./support/resident.ts";
import { postJson, withServer } from "./support/servers.ts";
import { now } from "./support/sockets.ts";

/**
 * A thousand people have a line open each. They are in fifty spaces, twenty in each, where one of them posts at a pace. Held against
 * one bare object with as many sockets in as many groups, which does one insert and one broadcast to a group. The sockets
 * are a process of their own. Each side is alone on the machine while it is measured.
 */
const spaces = 50;
const peopleEach = 20;
const postsPerSecond = 20;
const posts = 600;
const warmUps = 50;
const mostMs = { p50: 300, p99: 600 };
const madeAtOnce = 10;
/** What is told after the last post. */
const restMs = 3000;
const countedPosts = 20;
const countedEveryMs = 500;
/** Longer than any lease, as in `cost`. */
const settleMs = 12_000;

type Posted = { of: string; seq: number; at: number; group: number };

/** Opens these addresses in another process. */
const openListeners = async (urls: string[]) => {
  const child = fork(join(import.meta.dirname, "support/line-listeners.ts"), { serialization: "advanced" });
  const ask = async (asked: Asked): Promise<unknown> => {
    child.send(asked);
    const [answer] = (await once(child, "message")) as [unknown];
    return answer;
  };
  await ask({ open: urls });
  return { take: async () => (await ask("take")) as Heard[], close: () => void child.kill("SIGKILL") };
};

/** Posts to the groups in turn, at the pace. */
const postAll = async (count: number, post: (index: number) => Promise<Posted>): Promise<Posted[]> => {
  const startedAt = performance.now();
  const all: Promise<Posted>[] = [];
  for (let index = 0; index < count; index += 1) {
    await pause(Math.max(0, startedAt + (index * 1000) / postsPerSecond - performance.now()));
    all.push(post(index));
  }
  return Promise.all(all);
};

/** From each post to when each of its group knew of it. What did not come is `NaN`. */
const delaysOf = (posted: Posted[], heard: Heard[]): number[] =>
  posted.flatMap(({ of, seq, at, group }) =>
    heard.slice(group * peopleEach, (group + 1) * peopleEach).map((each) => {
      const told = each.find((frame) => frame.of === of && frame.seq >= seq && frame.at >= at);
      return (told?.at ?? Number.NaN) - at;
    }),
  );

const measure = async (urls: string[], post: (index: number) => Promise<Posted>) => {
  const emptyMiB = residentMiB();
  const listeners = await openListeners(urls);
  try {
    await postAll(warmUps, post);
    await pause(restMs);
    await listeners.take();
    const posted = await postAll(posts, (index) => post(warmUps + index));
    await pause(restMs);
    return { delays: delaysOf(posted, await listeners.take()), addedMiB: residentMiB() - emptyMiB };
  } finally {
    listeners.close();
  }
};

const bareSide = () =>
  withServer("bench/baseline/wrangler.toml", ({ url }) => {
    const urls = Array.from({ length: spaces * peopleEach }, (_, index) => Math.floor(index / peopleEach));
    return measure(
      urls.map((group) => `${url}/stream?name=lines&group=${group}`),
      async (index) => {
        const [at, group] = [now(), index % spaces];
        const said = { text: `Post ${index}`, group: String(group) };
        return { of: "", seq: await postJson<number>(`${url}/post?name=lines`, said), at, group };
      },
    );
  });

const withHouse = async <T>(config: string, act: (house: House) => Promise<T>): Promise<T> => {
  const house = await openHouse({ config });
  try {
    return await act(house);
  } finally {
    await house.close();
  }
};

const addPeople = async (house: House, count: number): Promise<Person[]> => {
  const all: Person[] = [];
  while (all.length < count) {
    const some = Array.from({ length: Math.min(madeAtOnce, count - all.length) }, (_, beside) =>
      house.addPerson(`Person ${all.length + beside}`),
    );
    all.push(...(await Promise.all(some)));
  }
  return all;
};

const lineOf = (house: House, { token }: Person): string => `${house.url}/v1/stream?token=${token}`;

/** One of the space's people says something. */
const say = async (spaceId: string, person: Person | undefined, index: number): Promise<number> => {
  const body = { text: `Post ${index}` };
  const posted = await person?.api.post<{ message: { seq: number } }>(`/v1/spaces/${spaceId}/messages`, body);
  return posted?.message.seq ?? Number.NaN;
};

const ourSide = () =>
  withHouse("bench/house/wrangler.toml", async (house) => {
    const people = await addPeople(house, spaces * peopleEach);
    const spaceIds: string[] = [];
    for (let group = 0; group < spaces; group += 1) {
      const members = people.slice(group * peopleEach, (group + 1) * peopleEach);
      const ids = members.map(({ id }) => id);
      spaceIds.push(await house.addSpace(`Space ${group}`, ids));
    }
    return measure(
      people.map((person) => lineOf(house, person)),
      async (index) => {
        const [at, group] = [now(), index % spaces];
        const of = spaceIds[group] ?? "";
        const person = people[group * peopleEach + (Math.floor(index / spaces) % peopleEach)];
        return { of, seq: await say(of, person, index), at, group };
      },
    );
  });

/** The requests to objects that one post makes in a space where all look. */
const requestsOfPost = () =>
  withHouse("bench/edge/wrangler.toml", async (house) => {
    const people = await addPeople(house, peopleEach);
    const ids = people.map(({ id }) => id);
    const spaceId = await house.addSpace("Counted", ids);
    const listeners = await openListeners(people.map((person) => lineOf(house, person)));
    await say(spaceId, people[0], 0);
    await pause(settleMs);
    await house.api.get("/bench/counts");
    for (let index = 0; index < countedPosts; index += 1) {
      await say(spaceId, people[index % peopleEach], index);
      await pause(countedEveryMs);
    }
    await pause(settleMs);
    const { request } = await house.api.get<Counts>("/bench/counts");
    listeners.close();
    return request;
  });

const reportRequests = async (report: Report): Promise<void> => {
  const request = await requestsOfPost();
  const name = `a post where ${peopleEach} people look`;
  for (const [what, count] of Object.entries(request).sort()) {
    const ours = count / countedPosts;
    report({ case: `${name}: ${what}`, figure: "lower is better", unit: "requests", ours, baseline: null });
  }
  const ours = Object.values(request).reduce((sum, count) => sum + count, 0) / countedPosts;
  report({ case: name, figure: "in all, lower is better", unit: "requests", ours, baseline: null });
};

export const bench: Bench = async (report) => {
  const bare = await bareSide();
  const ours = await ourSide();
  const broken: string[] = [];
  const name = `${spaces * peopleEach} people look, ${spaces} spaces, ${postsPerSecond} posts a second`;
  for (const [words, share] of [
    ["p50", 0.5],
    ["p99", 0.99],
  ] as const) {
    const [delay, baseline, most] = [percentile(ours.delays, share), percentile(bare.delays, share), mostMs[words]];
    const figure = `from a post to a summary, ${words}, at most ${most}`;
    report({ case: name, figure, unit: "ms", ours: delay, baseline });
    if (!(delay <= most)) broken.push(`${name}: ${delay} ms (${words}) are more than ${most}`);
  }
  for (const [whose, delays] of [
    ["ours", ours.delays],
    ["of the baseline", bare.delays],
  ] as const) {
    const lost = delays.filter(Number.isNaN).length;
    if (lost > 0) broken.push(`${lost} of ${delays.length} summaries did not come (${whose})`);
  }
  const added = { ours: ours.addedMiB, baseline: bare.addedMiB };
  report({ case: name, figure: "resident memory that lines add, lower is better", unit: "MiB", ...added });
  await reportRequests(report);
  return broken;
};
