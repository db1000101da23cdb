import { setTimeout as pause } from "node:timers/promises";
import { type Api, createApi } from "../scripts/api.ts";
import { type House, openHouse, type Person } from "../test/e2e/support/house.ts";
import { startTalkativeModel, type TalkativeModel } from "../test/e2e/support/talkative-model.ts";
import type { Counts } from "./edge/counts.ts";
import { type Bench, percentile, type Report } from "./support/figure.ts";
import { closeSockets, type Listening, now, openSockets, whenAll } from "./support/sockets.ts";

/**
 * The way from a person's post to a guest whose program waits with a claim, against the way to the call of a house agent's
 * model, in turn. Then the requests to objects of a guest's reply (a claim, a speech and its end) against those of a house
 * agent's reply of as many words.
 */
const rounds = 200;
const warmUps = 10;
const mostTimes = 2;
const mostMoreRequests = 4;
/** Until a claim waits. */
const claimFirstMs = 30;
/** What a run leaves to do. */
const restMs = 30;
/** Longer than any lease, as in `cost`. */
const settleMs = 12_000;
/** Longer than what is told once a minute. */
const tellMs = 75_000;
const words = Array.from({ length: 20 }, (_, index) => `word${index} `);

type Claimed = { run: { id: string }; lease: string };

/** A person with a house agent in one space and a guest in another, and a socket in each. */
const openBoth = async (house: House, model: TalkativeModel) => {
  const person = await house.addPerson("Husam");
  const [agentId, guestId] = [
    await house.addAgent({ name: "Echo", model: model.config }),
    await house.addAgent({ name: "Courier", runtime: "guest" }),
  ];
  const [houseSpace, guestSpace] = [
    await house.addSpace("House", [person.id, agentId]),
    await house.addSpace("Guest", [person.id, guestId]),
  ];
  const { token } = await house.api.post<{ token: string }>("/v1/tokens", {
    entityId: guestId,
    expiresInSeconds: 3600,
  });
  const sockets: Listening[] = [];
  for (const spaceId of [houseSpace, guestSpace]) {
    sockets.push(...(await openSockets(`${house.url}/v1/spaces/${spaceId}/stream?token=${person.token}`, 1)));
  }
  const program = { api: createApi(house.url, token), token, at: `/v1/agents/${guestId}`, url: house.url };
  return { person, sockets, houseSpace, guestSpace, program };
};
type Both = Awaited<ReturnType<typeof openBoth>>;

const post = (person: Person, spaceId: string): Promise<unknown> =>
  person.api.post(`/v1/spaces/${spaceId}/messages`, { text: "What is new?" });

const ended = (sockets: Listening[]): Promise<void> => {
  for (const got of sockets) got.frames.length = 0;
  return whenAll(sockets, (got) => got.frames.some(({ data }) => data.includes('"run.completed"')));
};

/** A house agent answers. Answers how long it took until its model was called. */
const askHouse = async ({ person, sockets, houseSpace }: Both, model: TalkativeModel): Promise<number> => {
  model.forget();
  const over = ended(sockets.slice(0, 1));
  const postedAt = now();
  await post(person, houseSpace);
  await over;
  return (model.calledAt[0] ?? Number.NaN) - postedAt;
};

/** The program claims, then somebody posts; `act` ends the run. Answers how long it took until the claim was answered. */
const askGuest = async (both: Both, act: (claimed: Claimed) => Promise<unknown>): Promise<number> => {
  const { person, sockets, guestSpace, program } = both;
  const over = ended(sockets.slice(1));
  const claiming = program.api
    .post<Claimed>(`${program.at}/claims`, { waitSeconds: 50 })
    .then((claimed) => ({ claimed, at: now() }));
  await pause(claimFirstMs);
  const postedAt = now();
  await post(person, guestSpace);
  const { claimed, at } = await claiming;
  await act(claimed);
  await over;
  return at - postedAt;
};

const inRun = (api: Api, at: string, { run, lease }: Claimed, act: string, body: object): Promise<unknown> =>
  api.post(`${at}/runs/${run.id}/${act}`, { ...body, lease });

const complete = ({ program: { api, at } }: Both, claimed: Claimed): Promise<unknown> =>
  inRun(api, at, claimed, "complete", {});

/** All words, as a program would send them, and the end. */
const speak = async (both: Both, claimed: Claimed): Promise<void> => {
  const { token, at, url } = both.program;
  const lines = [...words.map((delta) => ({ delta })), { done: true }];
  const response = await fetch(`${url}${at}/runs/${claimed.run.id}/speech?key=said&lease=${claimed.lease}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/x-ndjson" },
    body: lines.map((line) => `${JSON.stringify(line)}\n`).join(""),
  });
  if (!response.ok) throw new Error(`a speech was answered ${response.status}: ${await response.text()}`);
  await response.text();
  await complete(both, claimed);
};

const enter = async (both: Both, claimed: Claimed): Promise<void> => {
  const { api, at } = both.program;
  const input = { spaceId: both.guestSpace };
  await inRun(api, at, claimed, "calls", { name: "enter_space", input, key: "enter" });
  await speak(both, claimed);
};

const withBoth = async <T>(config: string, act: (both: Both, model: TalkativeModel, house: House) => Promise<T>) => {
  const model = await startTalkativeModel(words);
  const house = await openHouse({ config });
  try {
    const both = await openBoth(house, model);
    const answer = await act(both, model, house);
    closeSockets(both.sockets);
    return answer;
  } finally {
    await house.close();
    await model.stop();
  }
};

const reportWays = (report: Report): Promise<string[]> =>
  withBoth("bench/house/wrangler.toml", async (both, model) => {
    const times: Record<"guest" | "house", number[]> = { guest: [], house: [] };
    for (let round = -warmUps; round < rounds; round += 1) {
      const toModel = await askHouse(both, model);
      await pause(restMs);
      const toClaim = await askGuest(both, (claimed) => complete(both, claimed));
      await pause(restMs);
      if (round < 0) continue;
      times.house.push(toModel);
      times.guest.push(toClaim);
    }
    const name = "a post to a guest's claim answered, against a house agent's model called";
    for (const [label, share] of [
      ["p50", 0.5],
      ["p99", 0.99],
    ] as const) {
      const [ours, baseline] = [percentile(times.guest, share), percentile(times.house, share)];
      const figure = `${label}, lower is better${share === 0.5 ? `, at most ${mostTimes} times` : ""}`;
      report({ case: name, figure, unit: "ms", ours, baseline });
    }
    const ratio = percentile(times.guest, 0.5) / percentile(times.house, 0.5);
    return ratio <= mostTimes ? [] : [`${name}: ${ratio.toFixed(2)} times, more than ${mostTimes}`];
  });

const reportCost = (report: Report): Promise<string[]> =>
  withBoth("bench/edge/wrangler.toml", async (both, model, house) => {
    const requestsOf = async (act: () => Promise<unknown>): Promise<Record<string, number>> => {
      await pause(settleMs);
      await house.api.get("/bench/counts");
      await act();
      await pause(settleMs);
      return (await house.api.get<Counts>("/bench/counts")).request;
    };
    await askHouse(both, model);
    await askGuest(both, (claimed) => enter(both, claimed));
    await pause(tellMs);
    const ofHouse = await requestsOf(() => askHouse(both, model));
    const ofGuest = await requestsOf(() => askGuest(both, (claimed) => speak(both, claimed)));
    const name = "a guest's reply, against a house agent's";
    for (const what of [...new Set([...Object.keys(ofGuest), ...Object.keys(ofHouse)])].sort()) {
      const [ours, baseline] = [ofGuest[what] ?? 0, ofHouse[what] ?? 0];
      report({ case: `${name}: ${what}`, figure: "lower is better", unit: "requests", ours, baseline });
    }
    const sum = (of: Record<string, number>): number => Object.values(of).reduce((total, count) => total + count, 0);
    const [ours, baseline] = [sum(ofGuest), sum(ofHouse)];
    const figure = `in all, at most ${mostMoreRequests} more`;
    report({ case: name, figure, unit: "requests", ours, baseline });
    return ours <= baseline + mostMoreRequests
      ? []
      : [`${name}: ${ours} requests are more than ${baseline} and ${mostMoreRequests}`];
  });

export const bench: Bench = async (report) => [...(await reportWays(report)), ...(await reportCost(report))];
