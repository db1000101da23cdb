import fc from "fast-check";
import { expect, test } from "vitest";
import { deltaIntervalMs } from "../../src/space/bounds.ts";
import { Coalescer } from "../../src/space/streams/coalescer.ts";

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
    const due = coalescer.waitMs(now);
    if (due === 0) take();
    for (let left = pauseMs; left > 0; left -= 1) {
      now += 1;
      if (coalescer.waitMs(now) === 0) take();
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
