import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { JsonItems, type JsonReading } from "../../src/shared/json-items.ts";

/** Opens the document, its `agent`, and the lists in that. */
const reading: JsonReading = {
  isOpened: (path, kind) =>
    path.length === 2 ? kind === "array" : kind === "object" && path.length < 2 && (path[0] ?? "agent") === "agent",
  met: () => undefined,
  room: () => 1000,
};

const read = (pieces: string[], how = reading): [string, unknown][] => {
  const items = new JsonItems(how);
  const found = pieces.flatMap((piece) => [...items.feed(piece)]);
  return [...found, ...items.end()].map(({ path, value }) => [path.join("."), value]);
};

const document = {
  format: 'a "quoted" \\ text with ] } , :',
  none: null,
  agent: { id: -1.5e3, config: { a: [1, { b: "}" }] }, empty: [], runs: [{ n: 1 }, "two", 3, [true]] },
};
const values: [string, unknown][] = [
  ["format", document.format],
  ["none", null],
  ["agent.id", -1500],
  ["agent.config", document.agent.config],
  ["agent.runs.0", { n: 1 }],
  ["agent.runs.1", "two"],
  ["agent.runs.2", 3],
  ["agent.runs.3", [true]],
];

const piecesOf = (text: string, size: number): string[] =>
  Array.from({ length: Math.ceil(text.length / size) }, (_, index) => text.slice(index * size, (index + 1) * size));

describe("a document that is read in pieces", () => {
  test.each([1, 2, 3, 7, 1000])("is handed over value by value, whatever its pieces: %i characters", (size) => {
    for (const blanks of [undefined, 1, "\t"]) {
      expect(read(piecesOf(JSON.stringify(document, null, blanks), size))).toEqual(values);
    }
  });

  test("any list of any JSON comes out as it went in", () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), fc.integer({ min: 1, max: 50 }), (list, size) => {
        const text = JSON.stringify({ agent: { runs: list } });
        expect(read(piecesOf(text, size), { ...reading, room: () => 100_000 })).toEqual(
          (JSON.parse(text) as { agent: { runs: unknown[] } }).agent.runs.map((item, index) => [
            `agent.runs.${index}`,
            item,
          ]),
        );
      }),
    );
  });

  test("[S4] cut anywhere it is refused, and so is what follows its end", () => {
    const text = JSON.stringify(document);
    for (let length = 0; length < text.length; length += 1) {
      expect(() => read([text.slice(0, length)]), String(length)).toThrow("The body is not JSON");
    }
    for (const wrong of [`${text}}`, `${text}x`, `${text}{}`])
      expect(() => read([wrong])).toThrow("The body is not JSON");
    expect(read([`\n${text} \r\n`])).toEqual(values);
  });

  test.each([
    "{,}",
    '{"a" 1}',
    '{"a":1,}',
    '{"a":1 "b":2}',
    "{a:1}",
    '{"agent":{"runs":[1,]}}',
    '{"agent":{"runs":[,1]}}',
    '{"agent":{"runs":[1 2]}}',
    '{"agent":{"runs":[1}}',
    '{"agent":{"runs":[}]}',
    '{"agent":{"runs":["\n"]}}',
    '{"agent":{"runs":[01]}}',
    '{"agent":{"id":nul}}',
    '{"agent":{]}',
  ])("[S4] what is no JSON is refused: %s", (text) => {
    expect(() => read([text])).toThrow("The body is not JSON");
    expect(() => read(piecesOf(text, 1))).toThrow("The body is not JSON");
  });

  test("[B3] what is longer than its room is refused while it is read", () => {
    const items = new JsonItems(reading);
    expect(() => [...items.feed('{"agent":{"runs":["'), ...items.feed("x".repeat(1001))]).toThrow(
      "agent.runs.0 has more than 1000 characters",
    );
    const named = new JsonItems(reading);
    expect(() => [...named.feed('{"'), ...named.feed("x".repeat(2000))]).toThrow(
      "A name has more than 1000 characters",
    );
  });

  test("a document that is no object is handed over as it is", () => {
    expect(read(["7"])).toEqual([["", 7]]);
    expect(read(["[1,", "2]"])).toEqual([["", [1, 2]]]);
  });
});
