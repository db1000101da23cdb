import { setTimeout as pause } from "node:timers/promises";
import type { House, Person } from "../test/e2e/support/house.ts";
import { type Bench, percentile } from "./support/figure.ts";
import { postJson, withRivals } from "./support/servers.ts";
import { closeSockets, type Listening, openSockets, whenAll } from "./support/sockets.ts";

/**
 * Fifty people post at once, each the next when the last is answered. Five agents in the space hear all of it and stay
 * silent. No post fails, `seq` has no gap, and all who listen see one order. Held against a bare object behind the same
 * kind of worker that does one insert for each post and has nobody to tell.
 */
const people = 50;
const agents = 5;
const listeners = 5;
const postsEach = 10;
const rounds = 24;
const warmUps = 2;
const lookEveryMs = 50;
const leastRatio = 0.7;

type Said = { id: string; seq: number };
type Frame = { type: string; cursor?: number; message?: Said };

/** Posts a second while all of them post, each `postsEach` times. */
const rate = async (post: (person: number, index: number) => Promise<unknown>): Promise<number> => {
  const startedAt = performance.now();
  await Promise.all(
    Array.from({ length: people }, async (_, person) => {
      for (let index = 0; index < postsEach; index += 1) await post(person, index);
    }),
  );
  return (people * postsEach * 1000) / (performance.now() - startedAt);
};

const durable = ({ frames }: Listening): Frame[] =>
  frames.map(({ data }) => JSON.parse(data.toString()) as Frame).filter(({ type }) => type === "space.message");

/** The differences between the messages that a listener saw and the answers to the posts. */
const faultsOf = (got: Listening, said: Said[]): string[] => {
  const frames = durable(got);
  const gap = frames.findIndex(({ cursor }, index) => index > 0 && cursor !== (frames[index - 1]?.cursor ?? 0) + 1);
  const idAt = new Map(frames.map(({ message }) => [message?.seq, message?.id]));
  return [
    ...(frames.length === said.length ? [] : [`a listener saw ${frames.length} of ${said.length} messages`]),
    ...(gap < 0 ? [] : [`a listener saw ${frames[gap]?.cursor} after ${frames[gap - 1]?.cursor}`]),
    ...(said.every(({ id, seq }) => idAt.get(seq) === id) ? [] : ["a listener saw another order than the posters"]),
  ];
};

const openFloor = async (house: House) => {
  const all: Person[] = [];
  for (let index = 0; index < people; index += 1) all.push(await house.addPerson(`Person ${index}`));
  const agentIds: string[] = [];
  for (let index = 0; index < agents; index += 1) agentIds.push(await house.addAgent({ name: `Listener ${index}` }));
  const members = [...all.map(({ id }) => id), ...agentIds].map((entityId) => ({ entityId }));
  const body = { name: "Floor", members, wakePolicy: "addressed" };
  const { space } = await house.api.post<{ space: { id: string } }>("/v1/spaces", body);
  const sockets: Listening[] = [];
  for (const { token } of all.slice(0, listeners)) {
    sockets.push(...(await openSockets(`${house.url}/v1/spaces/${space.id}/stream?token=${token}`, 1)));
  }
  return { all, agentIds, sockets, path: `/v1/spaces/${space.id}/messages` };
};

/** Resolves when every agent has the message in its inbox: `cursor` of the page that begins there. */
const heardBy = async (house: House, agentIds: string[], seq: number): Promise<void> => {
  for (const agentId of agentIds) {
    while ((await newestIn(house, agentId)) < seq) await pause(lookEveryMs);
  }
};

type InboxPage = { items: { data: { message?: Said } }[]; nextCursor: string | null };

const newestIn = async (house: House, agentId: string): Promise<number> => {
  let newest = 0;
  let cursor: string | null = "";
  while (cursor !== null) {
    const from: string = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`;
    const page: InboxPage = await house.api.get<InboxPage>(`/v1/agents/${agentId}/inbox?limit=100${from}`);
    newest = page.items.at(-1)?.data.message?.seq ?? newest;
    cursor = page.nextCursor;
  }
  return newest;
};

export const bench: Bench = (report) =>
  withRivals(
    async ({ house, baseline }) => {
      const { all, agentIds, sockets, path } = await openFloor(house);
      const said: Said[] = [];
      const failures: string[] = [];
      const rates = { ours: [] as number[], bare: [] as number[], heard: [] as number[] };
      for (let round = -warmUps; round < rounds; round += 1) {
        const bare = await rate((person, index) =>
          postJson(`${baseline.url}/post?name=posts`, { text: `${person} says ${index} in ${round}` }),
        );
        const startedAt = performance.now();
        const ours = await rate(async (person, index) => {
          const body = { text: `${person} says ${index} in ${round}`, clientKey: `${round}-${index}` };
          const posted = all[person]?.api.post<{ message: Said }>(path, body);
          await posted?.then(
            ({ message }) => said.push(message),
            (error: unknown) => failures.push(String(error)),
          );
        });
        await heardBy(house, agentIds, Math.max(...said.map(({ seq }) => seq)));
        const heard = (people * postsEach * 1000) / (performance.now() - startedAt);
        // The first rounds compile and connect.
        if (round < 0) continue;
        rates.bare.push(bare);
        rates.ours.push(ours);
        rates.heard.push(heard);
      }
      await whenAll(sockets, (got) => durable(got).length >= said.length);
      const [ours, bare] = [percentile(rates.ours, 0.5), percentile(rates.bare, 0.5)];
      const name = `${people} people post at once, ${agents} agents listen`;
      const figure = `median of rounds, at least ${leastRatio} of the bare object's inserts`;
      report({ case: name, figure, unit: "posts/s", ours, baseline: bare });
      report({
        case: `${name}: until each agent has them in its inbox`,
        figure: "median of rounds, higher is better",
        unit: "posts/s",
        ours: percentile(rates.heard, 0.5),
        baseline: null,
      });
      report({ case: name, figure: "posts that failed, of all", unit: "posts", ours: failures.length, baseline: null });
      const faults = sockets.flatMap((got) => faultsOf(got, said));
      closeSockets(sockets);
      return [
        ...failures.slice(0, 3),
        ...new Set(faults),
        ...(ours >= leastRatio * bare ? [] : [`${ours} posts/s are less than ${leastRatio} of ${bare}`]),
      ];
    },
    { config: "bench/house/wrangler.toml" },
  );
