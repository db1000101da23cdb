import { type Schema, validate } from "@cfworker/json-schema";
import fc from "fast-check";
import { RE2JS } from "re2js";
import { expect, test } from "vitest";
import { schemaProblems } from "../../src/shared/check-json-schema.ts";
import { schemaIssues } from "../../src/shared/json-schema.ts";
import { patternSize } from "../../src/shared/linear-pattern.ts";

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

/** Milliseconds of the fastest of three: what else the machine does makes none of them faster. */
const leastMs = (work: () => unknown): number =>
  Math.min(
    ...[1, 2, 3].map(() => {
      const from = performance.now();
      work();
      return performance.now() - from;
    }),
  );

/** How long a check of hostile size may block the isolate, on a slow and busy machine. */
const heldUpMs = 1_000;

const twice = (name: string) => ({ allOf: [{ $ref: `#/$defs/${name}` }, { $ref: `#/$defs/${name}` }] });
const doubling = Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`d${at}`, twice(`d${at + 1}`)]));
const tree = { type: "array", items: { $ref: "#/$defs/tree" } };
const nested = (depth: number): unknown => (depth === 0 ? 1 : [nested(depth - 1)]);
const names = (count: number) => Array.from({ length: count }, (_, at) => ({ name: `n${at}` }));
const ones = (count: number) => Array.from({ length: count }, () => 1);
const wide = Object.fromEntries(names(8_000).map(({ name }) => [name, 1]));
/** A schema that is applied 4,096 times to one value. */
const oftenApplied = (schema: object) => ({ $ref: "#/$defs/d48", $defs: { ...doubling, d60: schema } });
/** A schema that is applied at the end of so many others, one within the other. */
const underneath = (levels: number, schema: object) => ({
  ...Object.fromEntries(ones(levels).map((_, at) => [`d${at}`, { allOf: [{ $ref: `#/$defs/d${at + 1}` }] }])),
  [`d${levels}`]: schema,
});

test.each<[string, object, unknown, string]>([
  ["the format url", { format: "url" }, `http://${"a".repeat(40)}!`, ""],
  ["references that double", { $ref: "#/$defs/d0", $defs: { ...doubling, d60: true } }, {}, "maxSchemaSteps"],
  [
    "references that double with depth",
    { $ref: "#/$defs/tree", $defs: { tree: { anyOf: [tree, tree] } } },
    nested(40),
    "maxSchemaSteps",
  ],
  ["unique items", { uniqueItems: true }, names(20_000), "maxSchemaSteps"],
  ["lists gone through often", oftenApplied({ items: true }), ones(30_000), "maxSchemaSteps"],
  ["lists of what nothing allows", { allOf: ones(400).map(() => ({ items: false })) }, ones(9_000), "maxSchemaSteps"],
  ["objects gone through often", oftenApplied({}), wide, "maxSchemaSteps"],
  ["their fields too", oftenApplied({ additionalProperties: true }), wide, "maxSchemaSteps"],
  ["their names too", oftenApplied({ additionalProperties: true }), { ["é".repeat(30_000)]: 1 }, "maxSchemaSteps"],
  ["texts measured often", oftenApplied({ maxLength: 3 }), "x".repeat(61_000), "maxSchemaSteps"],
  ["texts of a form", oftenApplied({ format: "email" }), "x".repeat(61_000), "maxSchemaSteps"],
  [
    "fields noted at many levels",
    { allOf: ones(6).map(() => ({ $ref: "#/$defs/d0" })), $defs: underneath(200, { additionalProperties: true }) },
    wide,
    "maxSchemaSteps",
  ],
  [
    "names that are required",
    { items: { required: Object.keys(wide).slice(0, 2_000) } },
    names(9_000),
    "maxSchemaSteps",
  ],
  ["lists of large values", { items: { enum: ["e".repeat(15_000)] } }, ones(25_000), "maxSchemaSteps"],
  [
    "nested choices",
    { anyOf: ones(20).map(() => ({ items: { anyOf: ones(20).map(() => ({ items: { type: "string" } })) } })) },
    ones(100).map(() => ones(100)),
    "maxSchemaSteps",
  ],
  ["long enums", { items: { enum: names(3_000) } }, names(9_000), "maxSchemaSteps"],
  [
    "many patterns",
    { allOf: names(60).map((_, at) => ({ pattern: `(?:[ab]c?){${at + 300}}a$` })) },
    "ab".repeat(9_000),
    "maxPatternSteps",
  ],
  ["many long items", { items: { pattern: "a.{200}$" } }, names(200).map(() => "ab".repeat(500)), "maxPatternSteps"],
])("[C13] the worst of a schema holds nobody up: %s", (_, schema, value, bound) => {
  let issues: string[] = [];
  expect(
    leastMs(() => (issues = schemaIssues(structuredClone(schema), value).map(({ message }) => message))),
  ).toBeLessThan(heldUpMs);
  expect(issues.join()).toContain(bound);
});

test("[C13] what a check repeats of a schema, or of a value's names, is bounded", () => {
  const [issue] = schemaIssues({ items: { additionalProperties: { enum: ["e".repeat(15_000)] } } }, [
    { ["k".repeat(900)]: 1 },
  ]);
  expect([issue?.message.length, issue?.path.length]).toEqual([500, 500]);
});

test("a value that is frozen is checked like any other", () => {
  const value = Object.freeze({ list: Object.freeze([Object.freeze({ a: "b" })]) });
  const items = { properties: { a: { type: "number" } } };
  expect(schemaIssues({ properties: { list: { items } } }, value).map(({ path }) => path)).toEqual(["list.0.a"]);
});

test("what a check counts changes nothing of what it finds", () => {
  const leaf = fc.constantFrom<object | boolean>(
    ...[true, false, {}, { type: "string" }, { type: ["number", "null"] }, { const: { a: [1] } }, { enum: [[1], "a"] }],
    ...[{ minLength: 2 }, { pattern: "^a" }, { required: ["a"] }, { uniqueItems: true }, { maxItems: 1 }],
  );
  const { schema } = fc.letrec<{ schema: object | boolean }>((tie) => {
    const keyword = (names: string, held: fc.Arbitrary<unknown>) =>
      fc.tuple(fc.constantFrom(...names.split(" ")), held).map((entry) => Object.fromEntries([entry]));
    const list = fc.array(tie("schema"), { minLength: 1, maxLength: 2 });
    const byName = fc.dictionary(fc.constantFrom("a", "b"), tie("schema"), { maxKeys: 2 });
    const one = fc.oneof(
      keyword("allOf anyOf oneOf prefixItems", list),
      keyword("properties patternProperties dependentSchemas", byName),
      keyword("not if items contains additionalProperties propertyNames", tie("schema")),
      keyword("then else unevaluatedItems unevaluatedProperties", tie("schema")),
    );
    return {
      schema: fc.oneof(
        { maxDepth: 3 },
        leaf,
        fc.tuple(one, one).map((both) => Object.assign({}, ...both)),
      ),
    };
  });
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom<unknown>(null, true, 1, "a", "ab", "b"),
      fc.array(tie("value"), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom("a", "b", "ab"), tie("value"), { maxKeys: 3 }),
    ),
  }));
  fc.assert(
    fc.property(schema, value, (rules, held) => {
      const plain = validate(held, structuredClone(rules) as Schema, "2020-12", undefined, false);
      expect(schemaIssues(rules, held).length === 0).toBe(plain.valid);
    }),
    { numRuns: 3000 },
  );
});

test.each<[string, string, number]>([
  ["classes of Unicode", String.raw`\p{L}{1000}`.repeat(20), 60],
  ["nested repeats", "((a{1,10}){1,10}){1,10}".repeat(10), 60],
  ["any character", ".{999}".repeat(40), 60],
  ["within a class", String.raw`[\p{L}\p{N}_-]{900}`.repeat(12), 60],
])("[C13] a schema's patterns hold nobody up while they are compiled: %s", (_, pattern, count) => {
  const properties = Object.fromEntries(
    Array.from({ length: count }, (_, at) => [`p${at}`, { type: "string", pattern: `${pattern}${at}` }]),
  );
  const checked = () =>
    schemaProblems({ type: "object", properties, title: `${performance.now()}` }, { ofObject: true });
  expect(leastMs(checked)).toBeLessThan(heldUpMs);
  expect(JSON.stringify(checked())).toMatch(/max(?:PatternSizes?|SchemaBytes)/);
});

test("[C13] a pattern's size is known before it is compiled, to within what a repeat adds", () => {
  for (const source of [
    "^[a-z]{3,9}$",
    "(a|bc){2}(?:d(?:e{3}f){4}){5}",
    "a*b+c?",
    "(?<year>[0-9]{4})-x",
    "[^\\]{]{12}",
  ]) {
    const { length } = Array.from({ length: RE2JS.compile(source).programSize() });
    expect(patternSize(source)).toBeGreaterThan(length / 4);
    expect(patternSize(source)).toBeLessThan(length * 4);
  }
});

test("a schema of many rows and ids is still applied", () => {
  const id = { type: "string", pattern: "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{12}$" };
  const rows = Array.from({ length: 2_000 }, (_, at) => ({ id: `0123abcd-00ff-${`${at}`.padStart(12, "0")}`, at }));
  const schema = {
    type: "array",
    items: { type: "object", properties: { id, at: { type: "integer" } }, required: ["id"] },
  };
  expect(schemaIssues(schema, rows)).toEqual([]);
  expect(schemaIssues({ type: "string", format: "url" }, "https://example.com/a?b#c")).toEqual([]);
  expect(schemaIssues({ type: "string", format: "url" }, "example")).toHaveLength(1);
});
