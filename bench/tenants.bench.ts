import { setTimeout as pause } from "node:timers/promises";
import { type House, openHouse } from "../test/e2e/support/house.ts";
import { type Bench, percentile } from "./support/figure.ts";
import { closeSockets, now, openSockets, whenAll } from "./support/sockets.ts";
import { type Input, openWorstTenant } from "./support/worst-inputs.ts";

/**
 * How much one tenant's worst inputs cost another tenant. One posts at a steady pace, alone and while the other sends
 * an input of one kind each second. Each kind is compared with the posts alone just before and after it. Here one thread
 * serves all tenants, so this is how long an input holds it. Who sends as fast as the rates allow uses up such a thread.
 * `KINDS=imports,exports npm run bench -- tenants` measures the kinds whose names hold these words.
 */
const mostRatio = 2;
const everyMs = 40;
const aloneMs = 5000;
const besideMs = 10_000;
const sentEveryMs = 1000;
/** After a phase what it left to be done is done: posts are as fast as at first, or so many seconds are over. */
const restMs = 1000;
const mostRests = 60;
const warmUpMs = 4000;
const kinds = process.env.KINDS?.split(",");

type Took = { answer: number[]; socket: number[] };

/** Posts of a person at a steady pace, however late the answers are, and how long answers and frames took. */
const openPosting = async (house: House) => {
  const [ann, ben] = [await house.addPerson("Ann"), await house.addPerson("Ben")];
  const spaceId = await house.addSpace("Steady", [ann.id, ben.id]);
  const sockets = await openSockets(`${house.url}/v1/spaces/${spaceId}/stream?token=${ben.token}`, 1);
  let posts = 0;
  const postFor = async (forMs: number): Promise<Took> => {
    const took: Took = { answer: [], socket: [] };
    const begun = new Map<string, number>();
    const under: Promise<void>[] = [];
    const start = now();
    for (let due = start; due < start + forMs; due += everyMs) {
      await pause(Math.max(0, due - now()));
      posts += 1;
      const text = `post ${posts} of many`;
      begun.set(text, due);
      const post = ann.api.post(`/v1/spaces/${spaceId}/messages`, { text });
      under.push(post.then(() => void took.answer.push(now() - due)));
    }
    await Promise.all(under);
    const textIn = ({ data }: { data: Buffer }): string => /post \d+ of many/.exec(data.toString())?.[0] ?? "";
    await whenAll(sockets, ({ frames }) => frames.filter((frame) => begun.has(textIn(frame))).length === begun.size);
    for (const frame of sockets.flatMap(({ frames }) => frames.splice(0))) {
      const from = begun.get(textIn(frame));
      if (from !== undefined) took.socket.push(frame.at - from);
    }
    return took;
  };
  return { postFor, close: () => closeSockets(sockets) };
};

/** Sends an input each second until the signal. Answers how long each took. */
const sendUntil = async ({ send }: Input, signal: AbortSignal): Promise<number[]> => {
  const took: number[] = [];
  for (let index = 0; !signal.aborted; index += 1) {
    const from = now();
    // A refusal is an answer too.
    await send(index).catch(() => undefined);
    took.push(now() - from);
    await pause(Math.max(0, sentEveryMs - (now() - from)));
  }
  return took;
};

export const bench: Bench = async (report) => {
  const house = await openHouse({ config: "bench/house/wrangler.toml" });
  const { inputs, close } = await openWorstTenant(house.url);
  const posting = await openPosting(house);
  const broken: string[] = [];
  try {
    await posting.postFor(warmUpMs);
    let before = await posting.postFor(aloneMs);
    const usual = percentile(before.answer, 0.9);
    const rest = async (): Promise<void> => {
      for (let rests = 0; rests < mostRests; rests += 1) {
        if (percentile((await posting.postFor(restMs)).answer, 0.9) < 1.5 * usual) return;
      }
    };
    for (const input of inputs) {
      const { name } = input;
      if (kinds && !kinds.some((word) => name.includes(word))) continue;
      const over = new AbortController();
      const sending = sendUntil(input, over.signal);
      const beside = await posting.postFor(besideMs);
      over.abort();
      const sent = await sending;
      await rest();
      const after = await posting.postFor(aloneMs);
      for (const way of ["answer", "socket"] as const) {
        const [ours, baseline] = [percentile(beside[way], 0.99), percentile([...before[way], ...after[way]], 0.99)];
        const figure = `p99 of another tenant's post to its ${way}, less than ${mostRatio} of alone`;
        report({ case: name, figure, unit: "ms", ours, baseline });
        if (!(ours < mostRatio * baseline)) broken.push(`${name}, ${way}: ${ours} ms, and ${baseline} ms alone`);
      }
      const figure = { case: name, figure: "one takes itself, p50", unit: "ms", baseline: null };
      report({ ...figure, ours: percentile(sent, 0.5) });
      report({ ...figure, figure: "were sent", unit: "inputs", ours: sent.length });
      before = after;
    }
    return broken;
  } finally {
    posting.close();
    await close();
    await house.close();
  }
};
