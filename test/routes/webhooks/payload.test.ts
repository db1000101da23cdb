import { describe, expect, test } from "vitest";
import { payloadOf } from "../../../src/routes/webhook-payload.ts";

const read = (contentType: string | null, body: string | Uint8Array) =>
  payloadOf(contentType, typeof body === "string" ? new TextEncoder().encode(body) : body);

test.each([
  ["application/json", '{"a":[1,null]}', { a: [1, null] }],
  ["application/json; charset=utf-8", '"ü"', "ü"],
  ["application/cloudevents+json", "7", 7],
  ["application/x-www-form-urlencoded", `payload=${encodeURIComponent('{"zen":"a & b"}')}`, { zen: "a & b" }],
  [
    "application/x-www-form-urlencoded",
    "a=1&b=x+y&a=2&__proto__=z",
    JSON.parse('{"a":["1","2"],"b":"x y","__proto__":"z"}'),
  ],
  ["application/x-www-form-urlencoded", "payload=1&more=2", { payload: "1", more: "2" }],
  ["text/plain", '{"a":1}', '{"a":1}'],
  ["text/plain", "Hello, World!", "Hello, World!"],
  [null, '{"a":1}', { a: 1 }],
  [null, "Hello", "Hello"],
  ["application/octet-stream", "Hello", "Hello"],
  ["application/json", "", null],
  [null, " \n", null],
])("a body of type $0 is read by its type (%#)", (contentType, body, payload) => {
  expect(read(contentType, body)).toEqual(payload);
});

test.each([
  ["application/x-ndjson", '{"level":"info","count":1}\n'.repeat(20_001)],
  ["application/csv", "1,".repeat(40_001)],
  [null, "[info ".repeat(14_000)],
])("[D5] a long body of type $0 that is no JSON is text, whatever its commas and brackets", (contentType, body) => {
  expect(read(contentType, body)).toBe(body);
});

test("[C13] a form of more fields than JSON may have values is refused at once", () => {
  const form = "application/x-www-form-urlencoded";
  expect(() => read(form, "a&".repeat(524_000))).toThrow(/at most 40000 fields/);
  expect(() => read(form, Array.from({ length: 40_001 }, (_, at) => `f${at}=1`).join("&"))).toThrow(/40000 fields/);
  const most = Array.from({ length: 40_000 }, () => "1");
  expect(read(form, most.map((value) => `a=${value}`).join("&"))).toEqual({ a: most });
});

describe("[S4] a body that says nothing sound is refused", () => {
  test.each([
    ["application/json", "{", "invalid_json"],
    ["application/x-www-form-urlencoded", "payload={", "invalid_json"],
    ["application/json", '"\\ud800"', "invalid_request"],
    ["application/json", `${"[".repeat(100_000)}${"]".repeat(100_000)}`, "invalid_request"],
    [null, new Uint8Array([0xff, 0xfe]), "invalid_request"],
    ["text/plain", new Uint8Array([0xc3]), "invalid_request"],
  ])("%s", (contentType, body, code) => {
    expect(() => read(contentType, body)).toThrow(expect.objectContaining({ code }));
  });
});
