import { setTimeout as pause } from "node:timers/promises";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { type Jwt, jwtIn, type OwnUsers, verifyJwt } from "../src/auth/own-users.ts";
import { Jwk } from "../src/protocol/own-users.ts";
import type { House } from "../test/e2e/support/house.ts";
import { startTalkativeModel } from "../test/e2e/support/talkative-model.ts";
import type { Counts, Kind } from "./edge/counts.ts";
import { type Bench, percentile, type Report } from "./support/figure.ts";
import { withRivals } from "./support/servers.ts";
import { closeSockets, openSockets, whenAll } from "./support/sockets.ts";

/**
 * The cost of one person's message and one agent's reply of 200 deltas in a space of three. As the platform counts, it
 * is requests to Durable Objects (alarms and socket frames too), and rows that SQLite reads and writes. Then the cost
 * of an edit, against a post in the same run, and of verifying a customer's JWT by a known key.
 */
const cases: { name: string; bounds: Partial<Record<Kind, number>> }[] = [
  {
    name: "the agent's first message here, which takes a step more: it enters the space",
    bounds: { request: 8, written: 40 },
  },
  { name: "a message in a conversation", bounds: { request: 4, written: 30 } },
];
/**
 * Longer than any lease: an alarm that is left over fires within it, and is counted. Two of them are shorter than a minute:
 * the second message comes within the minute in which the first is told as use.
 */
const settleMs = 12_000;
/** Longer than what is told once a minute: what making the house leaves to tell is no message's cost. */
const restMs = 75_000;
const units: Record<Kind, string> = { request: "requests", read: "rows read", written: "rows written" };

const sum = (of: Record<string, number>): number => Object.values(of).reduce((total, by) => total + by, 0);

const settled = (): Promise<void> => pause(settleMs);

const edits = 20;
const timedEdits = 100;
/** Longer than what wakes nobody waits to be carried together. */
const apartMs = 500;
const mostOfPost = 1.5;

type Said = { message: { id: string } };

/** Posts and edits of a person in a space of three, whose agent hears all of it and says nothing. */
const editing = async (house: House, report: Report): Promise<string[]> => {
  const [ann, ben] = [await house.addPerson("Ann"), await house.addPerson("Ben")];
  const agentId = await house.addAgent({ name: "Listener", model: { provider: "rehearsal" } });
  const members = [ann.id, ben.id, agentId].map((entityId) => ({ entityId }));
  const body = { name: "Edits", members, wakePolicy: "addressed" };
  const { space } = await house.api.post<{ space: { id: string } }>("/v1/spaces", body);
  const path = `/v1/spaces/${space.id}/messages`;
  const said: string[] = [];
  const post = async (index: number): Promise<void> => {
    const { message } = await ann.api.post<Said>(path, { text: `The price of plum ${index} is ${index * 7} a crate.` });
    said.push(message.id);
  };
  const edit = (index: number): Promise<unknown> =>
    ann.api.patch(`${path}/${said[index]}`, { text: `The price of plum ${index} is ${index * 9} a box.` });

  const counted = async (act: (index: number) => Promise<unknown>): Promise<Counts> => {
    await settled();
    await house.api.get<Counts>("/bench/counts");
    for (let index = 0; index < edits; index += 1) {
      await act(index);
      await pause(apartMs);
    }
    await settled();
    return house.api.get<Counts>("/bench/counts");
  };
  const [ofPosts, ofEdits] = [await counted(post), await counted(edit)];
  const times: Record<"post" | "edit", number[]> = { post: [], edit: [] };
  for (let index = edits; index < edits + timedEdits; index += 1) {
    for (const [name, act] of [["post", post] as const, ["edit", edit] as const]) {
      const from = performance.now();
      await act(index);
      times[name].push(performance.now() - from);
      await pause(apartMs / 5);
    }
  }
  const each = (counts: Counts, kind: Kind): number => sum(counts[kind]) / edits;
  const figures: [unit: string, ours: number, baseline: number][] = [
    ...(["request", "written"] as const).map((kind): [string, number, number] => [
      units[kind],
      each(ofEdits, kind),
      each(ofPosts, kind),
    ]),
    ["ms", percentile(times.edit, 0.5), percentile(times.post, 0.5)],
  ];
  return figures.flatMap(([unit, ours, baseline]) => {
    const figure = `${unit === "ms" ? "p50" : "of each"}, at most ${mostOfPost} of a post`;
    report({ case: "an edit, against a post, which an agent hears", figure, unit, ours, baseline });
    return ours <= mostOfPost * baseline ? [] : [`an edit: ${ours} ${unit} are more than ${mostOfPost} of ${baseline}`];
  });
};

const jwts = 500;
const mostVerifyMs = 1;

/** Distinct JWTs of three algorithms, one after another, once the issuer's keys are known. */
const verifying = async (report: Report): Promise<string[]> => {
  const broken: string[] = [];
  const issuer = { issuer: "https://issuer.example", audience: "colloquy" };
  for (const alg of ["RS256", "ES256", "EdDSA"]) {
    const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
    const auth = { id: alg, ...issuer, firstSight: "refused", changedAt: new Date().toISOString() } as const;
    const jwks = { keys: [Jwk.parse({ ...(await exportJWK(publicKey)), kid: alg })] };
    const users: OwnUsers = {
      ...{ now: Date.now, fetch: globalThis.fetch, allowLoopback: false, waitUntil: () => undefined },
      isWorkspace: () => true,
      authOf: () => Promise.resolve({ ...auth, jwks }),
      entityOf: () => Promise.resolve({ entityId: "ent_1", generation: 0 }),
    };
    const made: Jwt[] = [];
    for (let index = 0; index < jwts; index += 1) {
      const signer = new SignJWT({ sub: `user ${index}` }).setProtectedHeader({ alg, kid: alg });
      const claims = signer.setIssuer(issuer.issuer).setAudience(issuer.audience).setIssuedAt().setExpirationTime("1h");
      const jwt = jwtIn(await claims.sign(privateKey));
      if (jwt) made.push(jwt);
    }
    const times: number[] = [];
    for (const jwt of made) {
      const from = performance.now();
      await verifyJwt(jwt, ["wsp_1"], users);
      times.push(performance.now() - from);
    }
    const [ours, name] = [percentile(times, 0.5), `a JWT of ${alg}, its key known`];
    report({ case: name, figure: `p50, at most ${mostVerifyMs}`, unit: "ms", ours, baseline: null });
    if (!(ours <= mostVerifyMs)) broken.push(`${name}: ${ours} ms are more than ${mostVerifyMs}`);
  }
  return broken;
};

export const bench: Bench = (report) =>
  withRivals(async ({ house }) => {
    const model = await startTalkativeModel(Array.from({ length: 200 }, (_, index) => `word${index} `));
    const [husam, sara] = [await house.addPerson("Husam"), await house.addPerson("Sara")];
    const agentId = await house.addAgent({ name: "Echo", model: model.config });
    const spaceId = await house.addSpace("Cost", [husam.id, sara.id, agentId]);
    const stream = (token: string): string => `${house.url}/v1/spaces/${spaceId}/stream?token=${token}`;
    const sockets = [...(await openSockets(stream(husam.token), 1)), ...(await openSockets(stream(sara.token), 1))];
    const takeCounts = (): Promise<Counts> => house.api.get<Counts>("/bench/counts");

    const broken = await verifying(report);
    await pause(restMs);
    for (const { name, bounds } of cases) {
      await settled();
      // Whether a credential holds is asked once a minute, whatever it is used for: that is no message's cost either.
      await husam.api.get(`/v1/spaces/${spaceId}`);
      await takeCounts();
      for (const got of sockets) got.frames.length = 0;
      const ended = whenAll(sockets, (got) => got.frames.some(({ data }) => data.includes('"run.completed"')));
      await husam.api.post(`/v1/spaces/${spaceId}/messages`, { text: "What is new?" });
      await ended;
      await settled();
      const counts = await takeCounts();
      for (const kind of ["request", "written", "read"] as const) {
        for (const [what, by] of Object.entries(counts[kind]).sort()) {
          report({ case: `${name}: ${what}`, figure: "lower is better", unit: units[kind], ours: by, baseline: null });
        }
        const bound = bounds[kind];
        const total = sum(counts[kind]);
        const figure = bound === undefined ? "in all, lower is better" : `in all, lower is better, at most ${bound}`;
        report({ case: name, figure, unit: units[kind], ours: total, baseline: null });
        if (bound !== undefined && total > bound)
          broken.push(`${name}: ${total} ${units[kind]} are more than ${bound}`);
      }
    }
    closeSockets(sockets);
    await model.stop();
    return [...broken, ...(await editing(house, report))];
  });
