import fc from "fast-check";
import { expect, test } from "vitest";
import { TextField } from "../../../src/agent/run/speech.ts";

const cut = (text: string, size: number): string[] => text.match(new RegExp(`[\\s\\S]{1,${size}}`, "g")) ?? [];

const read = (deltas: string[]): string[] => {
  const field = new TextField();
  return deltas.map((delta) => field.push(delta));
};

test("[D4] what is streamed of a message is its text, however the deltas are cut", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: "grapheme" }),
      fc.dictionary(fc.string(), fc.jsonValue()),
      fc.integer({ min: 1, max: 9 }),
      (text, others, size) => {
        const { text: _, ...rest } = others;
        const json = JSON.stringify({ ...rest, text, after: rest });
        expect(read(cut(json, size)).join("")).toBe(text);
      },
    ),
    { numRuns: 1000, seed: 7 },
  );
});

test("no delta ends in half of a character", () => {
  const escaped = '{"text":"a\\ud83d\\ude00b"}';
  for (const deltas of [cut(escaped, 1), cut('{"text":"a\ud83d\ude00b"}', 1)]) {
    const pieces = read(deltas);
    expect(pieces.join("")).toBe("a😀b");
    for (const piece of pieces) expect(piece.isWellFormed()).toBe(true);
  }
});

test("[S4] halves of characters that a model writes alone are no part of what is streamed", () => {
  const lone = '{"text":"a\\ud83db\\ude00c\\ud83d"}';
  for (const deltas of [[lone], cut(lone, 1), ['{"text":"a\ud83d', "b\ude00", 'c\ud83d"}']]) {
    const pieces = read(deltas);
    for (const piece of pieces) expect(piece.isWellFormed()).toBe(true);
    expect(pieces.join("")).toBe("a\ufffdb\ufffdc");
  }
});

test("a mistake in the JSON ends the text, and nothing is thrown", () => {
  for (const json of [
    '{"text":"so far\n"}',
    '{"text":"so far\\q"}',
    '{"text":"so far" oops"text":"no"',
    '"text',
    "}{",
    "",
  ]) {
    const text = read(cut(json, 1)).join("");
    expect(text).toBe(json.startsWith("{") ? "so far" : "");
  }
});

test("an input of any depth and length is read to its text", () => {
  const other = `${"[".repeat(50_000)}${"]".repeat(50_000)}`;
  const text = "word ".repeat(5000);
  expect(read(cut(JSON.stringify({ before: text, text }).replace("{", `{"other":${other},`), 7)).join("")).toBe(text);
});

test("only the top-level field is read, and only once", () => {
  expect(read(['{"other":{"text":"no"},"list":["text"],"text" : "yes","text":"again"}']).join("")).toBe("yes");
  expect(read(['{"text": 5, "other": "text"}']).join("")).toBe("");
});

test("escapes in a key do not hide it", () => {
  expect(read(['{"te\\u0078t":"yes"}']).join("")).toBe("yes");
});
