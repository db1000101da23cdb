import { setTimeout as pause } from "node:timers/promises";
import type { House, Person } from "../test/e2e/support/house.ts";
import type { Counts } from "./edge/counts.ts";
import { type Bench, percentile } from "./support/figure.ts";
import { postJson, withRivals } from "./support/servers.ts";
import { closeSockets, openSockets, whenAll } from "./support/sockets.ts";

/**
 * A space's length costs nothing (B4). Three things take the same time and read the same rows at 1,000 messages and at
 * 200,000: posting, opening the space, and composing. To open is a socket to its welcome, and the newest page; to
 * compose is the next input of an agent asked there. Spaces are filled by copies of a message, in SQLite.
 */
const sizes = [1000, 200_000] as const;
const rounds = 40;
const warmUps = 10;
const pageSize = 50;
const boundRatio = 1.3;
/** After a post, until its delivery is made and counted, and the next is not joined with it. */
const settleMs = 120;

type Deed = { name: string; settleMs: number; act: (messages: number) => Promise<unknown> };
type Taken = { times: number[]; rows: number[] };

const openSpace = async (house: House, person: Person, messages: number, agentId: string, waiting: boolean) => {
  const name = `Space of ${agentId}`;
  const members = [person.id, agentId].map((entityId) => ({ entityId }));
  const body = { name, members, wakePolicy: "addressed" };
  const { space } = await house.api.post<{ space: { id: string } }>("/v1/spaces", body);
  // A third member: in a pair, every message would wake the agent.
  const third = await house.addPerson("Sara");
  await house.api.post(`/v1/spaces/${space.id}/members`, { entityId: third.id });
  await person.api.post(`/v1/spaces/${space.id}/messages`, { text: "What is the revenue of this region?" });
  await postJson(`${house.url}/bench/fill`, { spaceId: space.id, name, agentIds: waiting ? [agentId] : [], messages });
  return space.id;
};

const rowsRead = async (house: House): Promise<number> => {
  const { read } = await house.api.get<Counts>("/bench/counts");
  return Object.values(read).reduce((sum, by) => sum + by, 0);
};

/** All that is done, in spaces that were filled for it. */
const deedsIn = async (house: House): Promise<Deed[]> => {
  const person = await house.addPerson("Husam");
  const spaces = new Map<number, string>();
  for (const messages of sizes) {
    const agentId = await house.addAgent({ name: `Member of ${messages}`, continuity: "timeline" });
    spaces.set(messages, await openSpace(house, person, messages, agentId, false));
  }
  const pathOf = (messages: number): string => `/v1/spaces/${spaces.get(messages)}`;
  const post: Deed = {
    name: "post",
    settleMs,
    act: (messages) => person.api.post(`${pathOf(messages)}/messages`, { text: "And of the next?" }),
  };
  const open: Deed = {
    name: "open",
    settleMs: 0,
    async act(messages) {
      const sockets = await openSockets(`${house.url}${pathOf(messages)}/stream?token=${person.token}`, 1);
      await whenAll(sockets, ({ frames }) => frames.length > 0);
      const { items } = await person.api.get<{ items: unknown[] }>(`${pathOf(messages)}/messages?limit=${pageSize}`);
      closeSockets(sockets);
      if (items.length !== pageSize) throw new Error(`the newest page has ${items.length} messages`);
    },
  };
  const deeds = [post, open];
  for (const continuity of ["timeline", "consciousness"] as const) {
    const agents = new Map<number, string>();
    for (const messages of sizes) {
      const agentId = await house.addAgent({ name: `Reader of ${messages}, ${continuity}`, continuity });
      await openSpace(house, person, messages, agentId, true);
      agents.set(messages, agentId);
    }
    const act = (messages: number): Promise<unknown> => house.api.get(`/v1/agents/${agents.get(messages)}/context`);
    deeds.push({ name: `compose, ${continuity}`, settleMs: 0, act });
  }
  return deeds;
};

export const bench: Bench = (report) =>
  withRivals(async ({ house }) => {
    const broken: string[] = [];
    for (const { name, act, settleMs } of await deedsIn(house)) {
      const all = sizes.map((): Taken => ({ times: [], rows: [] }));
      // In turn, so that whatever else the machine does is the same for each.
      for (let round = -warmUps; round < rounds; round += 1) {
        for (const [index, messages] of sizes.entries()) {
          await rowsRead(house);
          const startedAt = performance.now();
          await act(messages);
          const took = performance.now() - startedAt;
          await pause(settleMs);
          const rows = await rowsRead(house);
          if (round < 0) continue;
          all[index]?.times.push(took);
          all[index]?.rows.push(rows);
        }
      }
      for (const [unit, of] of [
        ["ms", ({ times }: Taken) => percentile(times, 0.5)],
        ["rows read", ({ rows }: Taken) => percentile(rows, 0.5)],
      ] as const) {
        const [short = Number.NaN, long = Number.NaN] = all.map(of);
        const figure = `p50 of ${unit} at ${sizes[1]} messages against ${sizes[0]}, at most ${boundRatio}`;
        report({ case: name, figure, unit, ours: long, baseline: short });
        if (!(long <= boundRatio * short)) broken.push(`${name}: ${long} ${unit} against ${short}`);
      }
    }
    return broken;
  });
