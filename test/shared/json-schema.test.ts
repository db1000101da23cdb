import { expect, test } from "vitest";
import { schemaIssues } from "../../src/shared/json-schema.ts";

const order = {
  type: "object",
  properties: {
    sizes: { type: "array", items: { type: "integer" } },
    color: { enum: ["red", "blue"] },
    "a/b": { type: "string" },
  },
  required: ["color"],
  additionalProperties: false,
};

test("a value that fits its schema has no issues", () => {
  expect(schemaIssues(order, { color: "red", sizes: [1, 2] })).toEqual([]);
  expect(schemaIssues({}, null)).toEqual([]);
  expect(schemaIssues(true, [])).toEqual([]);
});

test("[S4] a value that does not fit is reported by the innermost issues with their paths", () => {
  const paths = (value: unknown) => schemaIssues(order, value).map(({ path }) => path);
  expect(paths({})).toEqual([""]);
  expect(schemaIssues(order, {})[0]?.message).toContain('"color"');
  expect(paths({ color: "red", sizes: [1, "two"] })).toEqual(["sizes.1"]);
  expect(paths({ color: "green" })).toEqual(["color"]);
  expect(paths({ color: "red", "a/b": 2 })).toEqual(["a/b"]);
  expect(schemaIssues(order, { color: "red", size: 3 })).toEqual([{ path: "size", message: "is not allowed here" }]);
  expect(paths("red")).toEqual([""]);
});

test("[S4] issues are bounded", () => {
  const value = { color: "red", sizes: Array.from({ length: 500 }, () => "x") };
  expect(schemaIssues(order, value)).toHaveLength(20);
});

test("[S4] a schema that cannot be applied fits nothing, and is never fetched", () => {
  for (const schema of [{ $ref: "https://schemas.example.com/order.json" }, { type: "string", pattern: "(" }]) {
    expect(schemaIssues(schema, "x")).toEqual([{ path: "", message: expect.stringContaining("cannot be checked") }]);
  }
});

test.each(["^a*a*a*a*a*b$", "(a+)+b", "^((?:a|aa))*b$", "^(a*c?){2,9}b$"])(
  "[B3] a pattern that backtracks answers a long text in less than 50 ms: %s",
  (pattern) => {
    const text = "a".repeat(10_000);
    const answeredInMs = (schema: object, value: unknown): number => {
      const from = performance.now();
      expect(schemaIssues(schema, value)).toHaveLength(1);
      return performance.now() - from;
    };
    const least = (schema: object, value: unknown) => Math.min(...[1, 2, 3].map(() => answeredInMs(schema, value)));
    expect(least({ type: "string", pattern }, text)).toBeLessThan(50);
    const names = { patternProperties: { [pattern]: true }, additionalProperties: false };
    expect(least(names, { [text]: 1 })).toBeLessThan(50);
  },
);

test("[B3] a pattern that is too large for its text answers with the bound", () => {
  const schema = { type: "string", pattern: "^(?:[a-z]?c?){900}$" };
  expect(schemaIssues(schema, "abc")).toEqual([]);
  expect(schemaIssues(schema, "x".repeat(20_000))[0]?.message).toContain("maxPatternSteps");
});
