import fc from "fast-check";
import { expect, test } from "vitest";
import { LineDecoder } from "../../src/shared/line-decoder.ts";

test("lines come out whole, however their bytes are cut", () => {
  const lines = fc.array(fc.string({ unit: "grapheme", minLength: 1 }), { maxLength: 10 });
  fc.assert(
    fc.property(lines, fc.integer({ min: 1, max: 9 }), (texts, size) => {
      const sent = texts.map((text) => JSON.stringify({ text }));
      const bytes = new TextEncoder().encode(sent.map((line) => `${line}\n`).join(""));
      const decoder = new LineDecoder(1000);
      const got: string[] = [];
      for (let at = 0; at < bytes.length; at += size) got.push(...decoder.push(bytes.subarray(at, at + size)));
      expect(got).toEqual(sent);
    }),
  );
});

test("[B3] a line that never ends is refused", () => {
  const decoder = new LineDecoder(8);
  expect(decoder.push(new TextEncoder().encode("12345678"))).toEqual([]);
  expect(() => decoder.push(new TextEncoder().encode("9"))).toThrow(RangeError);
});

test("[S4] bytes that are no UTF-8 are refused", () => {
  expect(() => new LineDecoder(8).push(new Uint8Array([0xff, 0x0a]))).toThrow(TypeError);
});
