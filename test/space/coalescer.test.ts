import fc from "fast-check";
import { expect, test } from "vitest";
import { maxDeltaIntervalMs, minDeltaIntervalMs } from "../../src/space/bounds.ts";
import { Coalescer, Pace } from "../../src/space/streams/coalescer.ts";

const deltaIntervalMs = 33;

/** What a socket would get: frames with their times. */
const play = (deltas: { text: string; pauseMs: number }[]) => {
  const coalescer = new Coalescer();
  const frames: { text: string; at: number }[] = [];
  let now = 0;
  const take = (final = false) => {
    const text = coalescer.take(now, final);
    if (text !== "") frames.push({ text, at: now });
  };
  for (const { text, pauseMs } of deltas) {
    coalescer.push(text);
    const due = coalescer.waitMs(now, deltaIntervalMs);
    if (due === 0) take();
    for (let left = pauseMs; left > 0; left -= 1) {
      now += 1;
      if (coalescer.waitMs(now, deltaIntervalMs) === 0) take();
    }
  }
  const streamed = [...frames];
  take(true);
  return { frames, streamed };
};

test("a stream's first delta goes out at once, the next at most one interval later", () => {
  const { frames } = play([
    { text: "a", pauseMs: 1 },
    { text: "b", pauseMs: 1 },
    { text: "c", pauseMs: 50 },
    { text: "d", pauseMs: 50 },
  ]);
  expect(frames).toEqual([
    { text: "a", at: 0 },
    { text: "bc", at: deltaIntervalMs },
    { text: "d", at: deltaIntervalMs * 2 },
  ]);
});

test("whatever comes when, all text goes out in order, in few frames that break no character", () => {
  const text = fc.string({ unit: "binary", maxLength: 12 });
  const split = text.chain((whole) =>
    fc.array(fc.nat({ max: whole.length }), { maxLength: 4 }).map((cuts) => {
      const places = [0, ...cuts.sort((a, b) => a - b), whole.length];
      return places.slice(1).map((end, index) => whole.slice(places[index], end));
    }),
  );
  const deltas = fc
    .array(split, { maxLength: 12 })
    .map((parts) => parts.flat())
    .chain((texts) =>
      fc
        .array(fc.integer({ min: 0, max: 60 }), { minLength: texts.length, maxLength: texts.length })
        .map((pauses) => texts.map((text, index) => ({ text, pauseMs: pauses[index] ?? 0 }))),
    );
  fc.assert(
    fc.property(deltas, (played) => {
      const { frames, streamed } = play(played);
      expect(frames.map((frame) => frame.text).join("")).toBe(played.map((delta) => delta.text).join(""));
      for (const frame of frames) expect(frame.text.isWellFormed()).toBe(true);
      for (const [index, frame] of streamed.entries()) {
        const earlier = streamed[index - 1];
        if (earlier) expect(frame.at - earlier.at).toBeGreaterThanOrEqual(deltaIntervalMs);
      }
    }),
  );
});

test("half a character that never gets its other half is not lost", () => {
  const { frames, streamed } = play([{ text: "ok \ud83d", pauseMs: 100 }]);
  expect(streamed.map(({ text }) => text)).toEqual(["ok "]);
  expect(frames.map(({ text }) => text).join("")).toBe("ok \ud83d");
});

const paced = (costs: number[]): Pace => {
  const pace = new Pace();
  for (const cost of costs) pace.sent(cost);
  return pace;
};

test("the pace is the shortest while frames cost nothing; else sending takes half of the time", () => {
  expect(paced([]).intervalMs(1)).toBe(minDeltaIntervalMs);
  expect(paced([0, 1, 1, 0]).intervalMs(1)).toBe(minDeltaIntervalMs);
  expect(paced([8, 8, 8]).intervalMs(1)).toBe(14);
  expect(paced([4, 4, 4]).intervalMs(3)).toBe(18);
});

test("the pace never falls behind the longest interval, whatever a frame costs", () => {
  expect(paced([500]).intervalMs(1)).toBe(maxDeltaIntervalMs);
  expect(paced([5]).intervalMs(16)).toBe(maxDeltaIntervalMs);
});

test("the pace follows what frames cost, and one slow frame among quick ones does not slow it", () => {
  const pace = paced([4, 4, 4, 30]);
  expect(pace.intervalMs(1)).toBe(6);
  for (let frames = 0; frames < 9; frames += 1) pace.sent(12);
  expect(pace.intervalMs(1)).toBe(22);
  for (let frames = 0; frames < 9; frames += 1) pace.sent(1);
  expect(pace.intervalMs(1)).toBe(minDeltaIntervalMs);
});
