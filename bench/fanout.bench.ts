import type { Bench } from "./support/figure.ts";
import { percentile } from "./support/figure.ts";
import { postJson, type Rivals, withRivals } from "./support/servers.ts";
import { closeSockets, type Listening, openSockets, whenAll } from "./support/sockets.ts";

/**
 * One agent's message of 200 deltas to many sockets: the real space against an object that sends every delta to every
 * socket. From 100 sockets on, a flooded message must take us at most a third of its time; the text is the same for all.
 * At a pace, half of the deltas must arrive within `boundDelayMs` of their generation.
 * A message that is whole before its first frame is due comes as the message alone: its deltas have nothing left to say.
 */
const deltas = Array.from({ length: 200 }, (_, index) => `word${index} `);
const text = deltas.join("");
const audiences = [1, 10, 100, 500];
const paces = [
  { name: "flooded", perSecond: 0, rounds: 5 },
  { name: "100 a second", perSecond: 100, rounds: 1 },
  { name: "200 a second", perSecond: 200, rounds: 1 },
];
const boundAudience = 100;
const boundRatio = 1 / 3;
/** The longest p50 of a delta's delay, by the audience, where the model speaks at a pace. */
const boundDelayMs: Record<number, number> = { 1: 8, 10: 8, 100: 8, 500: 30 };

type Side = {
  connect(audience: number): Promise<Listening[]>;
  say(perSecond: number): Promise<number[]>;
  isWhole(got: Listening): boolean;
};

type Frame = { type?: string; textDelta?: string; message?: { text?: string } };

const framesOf = (got: Listening): Frame[] => got.frames.map(({ data }) => JSON.parse(data.toString()) as Frame);

/** Deltas, and the message that may overtake the last of them: whoever has the message has the whole text. */
const textsOf = (got: Listening): { told: string; said: string | undefined } => {
  const frames = framesOf(got);
  const said = frames.find((frame) => frame.type === "space.message")?.message?.text;
  return { told: frames.map((frame) => frame.textDelta ?? "").join(""), said };
};

const hasText = (got: Listening): boolean => {
  const { told, said } = textsOf(got);
  return said === undefined ? told === text : said === text && text.startsWith(told);
};

/** For each delta, when its last character arrived. */
const arrivalsOf = (got: Listening): number[] => {
  let length = 0;
  const arrivals = framesOf(got).map((frame, index) => {
    length = frame.type === "space.message" ? text.length : length + (frame.textDelta?.length ?? 0);
    return { length, at: got.frames[index]?.at ?? Number.NaN };
  });
  let end = 0;
  return deltas.map((delta) => {
    end += delta.length;
    return arrivals.find((arrival) => arrival.length >= end)?.at ?? Number.NaN;
  });
};

const measure = async (side: Side, audience: number, perSecond: number, rounds: number) => {
  const sockets = await side.connect(audience);
  const said: { totals: number[]; delays: number[]; frames: number; bytes: number } = {
    totals: [],
    delays: [],
    frames: 0,
    bytes: 0,
  };
  for (let round = 0; round < rounds; round += 1) {
    for (const got of sockets) got.frames.length = 0;
    const whole = whenAll(sockets, (got) => side.isWhole(got));
    const generatedAt = await side.say(perSecond);
    await whole;
    if (!sockets.every(hasText)) throw new Error("a socket got another text");
    const arrivals = sockets.map(arrivalsOf);
    const last = Math.max(...arrivals.map((times) => times.at(-1) ?? Number.NaN));
    said.totals.push(last - (generatedAt[0] ?? Number.NaN));
    said.delays.push(...arrivals.flatMap((times) => times.map((at, index) => at - (generatedAt[index] ?? Number.NaN))));
    said.frames = sockets.reduce((sum, got) => sum + got.frames.length, 0);
    said.bytes = sockets.reduce((sum, got) => sum + got.frames.reduce((bytes, { data }) => bytes + data.length, 0), 0);
  }
  closeSockets(sockets);
  return said;
};

const bareSide = ({ baseline }: Rivals, name: string): Side => ({
  connect: (audience) => openSockets(`${baseline.url}/stream?name=${name}`, audience),
  say: (perSecond) => postJson(`${baseline.url}/speak?name=${name}`, { deltas, perSecond }),
  isWhole: (got) => got.frames.length === deltas.length,
});

const ourSide = async ({ house }: Rivals, name: string): Promise<Side> => {
  const person = await house.addPerson(`Listener ${name}`);
  const agentId = await house.addAgent({ name: `Speaker ${name}` });
  const spaceId = await house.addSpace(name, [person.id, agentId]);
  const url = `${house.url}/v1/spaces/${spaceId}/stream`;
  // One person may not have as many: a secret key may, and acts as them.
  const headers = { authorization: `Bearer ${house.secretKey}`, "x-entity-id": person.id };
  return {
    async connect(audience) {
      const sockets = await openSockets(url, audience, headers);
      await whenAll(sockets, (got) => got.frames.length > 0);
      return sockets;
    },
    say: (perSecond) =>
      postJson(`${house.url}/bench/speak`, { deltas, perSecond, workspaceId: house.workspaceId, spaceId, agentId }),
    isWhole: (got) => got.frames.at(-1)?.data.includes('"space.message"') ?? false,
  };
};

export const bench: Bench = (report) =>
  withRivals(async (rivals) => {
    const broken: string[] = [];
    for (const pace of paces) {
      for (const audience of audiences) {
        const name = `fanout-${pace.perSecond}-${audience}`;
        const bare = await measure(bareSide(rivals, name), audience, pace.perSecond, pace.rounds);
        const ours = await measure(await ourSide(rivals, name), audience, pace.perSecond, pace.rounds);
        const label = `${pace.name}, ${audience} sockets`;
        const [ourTotal, bareTotal] = [percentile(ours.totals, 0.5), percentile(bare.totals, 0.5)];
        report({
          case: label,
          figure: "generation to last arrival, median of rounds, lower is better",
          unit: "ms",
          ours: ourTotal,
          baseline: bareTotal,
        });
        for (const [words, share] of [
          ["p50", 0.5],
          ["p99", 0.99],
        ] as const) {
          const figure = `a delta's generation to its arrival, ${words}, lower is better`;
          report({
            case: label,
            figure,
            unit: "ms",
            ours: percentile(ours.delays, share),
            baseline: percentile(bare.delays, share),
          });
        }
        report({
          case: label,
          figure: "frames to all sockets, lower is better",
          unit: "frames",
          ours: ours.frames,
          baseline: bare.frames,
        });
        report({
          case: label,
          figure: "bytes to all sockets, lower is better",
          unit: "bytes",
          ours: ours.bytes,
          baseline: bare.bytes,
        });
        const [delay, boundMs = Number.POSITIVE_INFINITY] = [percentile(ours.delays, 0.5), boundDelayMs[audience]];
        if (pace.perSecond > 0 && delay > boundMs) {
          broken.push(`${label}: a delta's delay of ${delay.toFixed(1)} ms (p50) is more than ${boundMs} ms`);
        }
        if (pace.perSecond === 0 && audience >= boundAudience && ourTotal > bareTotal * boundRatio) {
          broken.push(`${label}: ${ourTotal.toFixed(1)} ms is more than a third of ${bareTotal.toFixed(1)} ms`);
        }
      }
    }
    return broken;
  });
