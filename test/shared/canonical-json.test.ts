import { expect, it } from "vitest";
import { canonicalJson, jsonHash } from "../../src/shared/canonical-json.ts";

it("writes one JSON value in one form, whatever the order of its keys", () => {
  const one = { b: [1, { d: null, c: "é\u2028" }], a: 1e21, "\u{1F600}": true, "\uFB33": -0, x: undefined };
  expect(canonicalJson(one)).toBe('{"a":1e+21,"b":[1,{"c":"é\u2028","d":null}],"😀":true,"\uFB33":0}');
  expect(canonicalJson(JSON.parse('{"__proto__": {"b": 1, "a": 2}}'))).toBe('{"__proto__":{"a":2,"b":1}}');
  expect(canonicalJson(undefined)).toBe("null");
});

it("has one hash for the same value, and another for any other", () => {
  expect(jsonHash({ a: 1, b: 2 })).toBe(jsonHash({ b: 2, a: 1 }));
  expect(jsonHash({})).toBe("44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
  const others = [{ a: "1" }, { a: [1] }, { "a ": 1 }, { a: 1, b: null }, [{ a: 1 }], { a: 1.5 }];
  expect(new Set([{ a: 1 }, ...others].map(jsonHash)).size).toBe(others.length + 1);
});
