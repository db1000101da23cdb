import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import type { House, Person } from "../test/e2e/support/house.ts";
import { type Bench, percentile } from "./support/figure.ts";
import { postJson, withRivals } from "./support/servers.ts";

/**
 * An endpoint sends a space's messages again, one after another, to a server that answers at once. Held against a bare
 * object that posts one of these requests in a loop: it has been signed before. Then messages go to two spaces in turn. Of one space an endpoint is told
 * whose server never answers. It must not delay the other endpoint of that space.
 */
const messages = 500;
const rounds = 7;
const leastRatio = 0.7;
const posts = 300;
const postEveryMs = 60;
const mostDelay = 1.1;
const words = "x".repeat(200);

/** A server that notes when what came. `isSilent`: it answers nothing. */
const openReceiver = async (isSilent = false) => {
  let came: { at: number; body: string; headers: Record<string, string> }[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (chunk) => (body += chunk));
    request.on("end", () => {
      const headers = Object.entries(request.headers).filter(([name]) =>
        /^(?:webhook-|content-type|user-agent)/.test(name),
      );
      came.push({ at: performance.now(), body, headers: Object.fromEntries(headers) as Record<string, string> });
      if (!isSilent) response.end();
    });
  });
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    came: () => came,
    clear(): void {
      came = [];
    },
    async until(count: number): Promise<void> {
      while (came.length < count) await pause(5);
    },
    /** Deliveries a second, from the first to the last. */
    rate: (): number => ((came.length - 1) * 1000) / ((came.at(-1)?.at ?? 0) - (came[0]?.at ?? 0)),
    close(): void {
      server.closeAllConnections();
      server.close();
    },
  };
};

const addEndpoint = (house: House, url: string, more: object): Promise<{ endpoint: { id: string } }> =>
  house.api.post("/v1/workspace/endpoints", { url, types: ["space.message"], ...more });

const rates = async (house: House, baseline: string): Promise<{ ours: number; bare: number }> => {
  const receiver = await openReceiver();
  const ann = await house.addPerson("Ann");
  const { endpoint } = await addEndpoint(house, receiver.url, {});
  const spaceId = await house.addSpace("Replayed", [ann.id]);
  for (let index = 0; index < messages; index += 1) {
    await ann.api.post(`/v1/spaces/${spaceId}/messages`, { text: words });
  }
  await receiver.until(messages);
  const { body: text, headers } = receiver.came()[0] ?? { body: "", headers: {} };
  const [ours, bare]: [number[], number[]] = [[], []];
  // The first round compiles and connects.
  for (let round = -1; round < rounds; round += 1) {
    receiver.clear();
    await postJson(`${baseline}/tell?name=endpoints`, { url: receiver.url, text, headers, times: messages });
    if (round >= 0) bare.push(receiver.rate());
    await pause(500);
    receiver.clear();
    await house.api.post(`/v1/workspace/endpoints/${endpoint.id}/redeliver`, { from: "2026-01-01T00:00:00Z" });
    await receiver.until(messages);
    if (round >= 0) ours.push(receiver.rate());
  }
  receiver.close();
  return { ours: percentile(ours, 0.5), bare: percentile(bare, 0.5) };
};

/** A space with an endpoint, and when each of its messages came there after it was sent. */
const openFollowed = async (house: House, ann: Person, name: string) => {
  const receiver = await openReceiver();
  const spaceId = await house.addSpace(name, [ann.id]);
  await addEndpoint(house, receiver.url, { spaceIds: [spaceId] });
  const sentAt = new Map<string, number>();
  return {
    spaceId,
    receiver,
    async post(key: string): Promise<void> {
      sentAt.set(key, performance.now());
      await ann.api.post(`/v1/spaces/${spaceId}/messages`, { text: key });
    },
    delays: (): number[] =>
      receiver.came().flatMap(({ at, body }) => {
        const key = (JSON.parse(body) as { data: { message: { text: string } } }).data.message.text;
        const sent = sentAt.get(key);
        return sent === undefined || key.startsWith("warm") ? [] : at - sent;
      }),
  };
};

const delays = async (house: House): Promise<{ alone: number; beside: number }> => {
  const ann = await house.addPerson("Ann");
  const dead = await openReceiver(true);
  const [alone, beside] = [await openFollowed(house, ann, "Alone"), await openFollowed(house, ann, "Beside")];
  await addEndpoint(house, dead.url, { spaceIds: [beside.spaceId] });
  // Until all follow.
  for (let index = 0; dead.came().length === 0 || alone.receiver.came().length === 0; index += 1) {
    for (const each of [alone, beside]) await each.post(`warm ${index}`);
    await pause(300);
  }
  for (let index = 0; index < posts; index += 1) {
    for (const each of index % 2 === 0 ? [alone, beside] : [beside, alone]) await each.post(`${index}`);
    await pause(postEveryMs);
  }
  for (const each of [alone, beside]) while (each.delays().length < posts) await pause(20);
  const p99 = ({ delays: all }: typeof alone): number => percentile(all(), 0.99);
  for (const { receiver } of [alone, beside, { receiver: dead }]) receiver.close();
  return { alone: p99(alone), beside: p99(beside) };
};

export const bench: Bench = (report) =>
  withRivals(
    async ({ house, baseline }) => {
      const { ours, bare } = await rates(house, baseline.url);
      const figure = `median of rounds, at least ${leastRatio} of a loop of fetch`;
      report({ case: "one endpoint, one space, sent again", figure, unit: "deliveries/s", ours, baseline: bare });
      const { alone, beside } = await delays(house);
      report({
        case: "from a post to its delivery, beside an endpoint that never answers",
        ...{ figure: `p99, at most ${mostDelay} times that without`, unit: "ms", ours: beside, baseline: alone },
      });
      return [
        ...(ours >= leastRatio * bare ? [] : [`${ours} deliveries/s are less than ${leastRatio} of ${bare}`]),
        ...(beside <= mostDelay * alone ? [] : [`a p99 of ${beside} ms is more than ${mostDelay} times ${alone} ms`]),
      ];
    },
    { config: "bench/house/wrangler.toml" },
  );
