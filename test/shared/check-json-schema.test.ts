import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { schemaProblems } from "../../src/shared/check-json-schema.ts";
import { schemaIssues } from "../../src/shared/json-schema.ts";

const problems = (schema: unknown) => schemaProblems(schema, { ofObject: true });
const object = (properties: object, more: object = {}) => ({ type: "object", properties, ...more });

describe("schemaProblems", () => {
  test.each([
    { type: "object" },
    object({ city: { type: "string", minLength: 1, pattern: "^[a-z]+$", format: "uri" } }, { required: ["city"] }),
    object({ tree: { $ref: "#/$defs/tree" } }, { $defs: { tree: object({ children: { items: { $ref: "#" } } }) } }),
    object({ pair: { prefixItems: [{ type: "string" }, true], items: false } }),
    object(
      { id: { const: { id: 5 } } },
      { if: { required: ["id"] }, else: { minProperties: 2 }, title: "T", "x-own": 1 },
    ),
    { $schema: "https://json-schema.org/draft/2020-12/schema", type: "object", additionalProperties: false },
  ])("[S4] a sound schema can be applied (%#)", (schema) => {
    expect(problems(schema)).toEqual([]);
    expect(schemaIssues(schema, {})).toEqual(schemaIssues(schema, {}));
  });

  test.each<[unknown, string]>([
    [true, "type"],
    [{ type: "object", $schema: { toString: 1 } }, "$schema"],
    ["object", ""],
    [[], ""],
    [{}, "type"],
    [{ type: "string" }, "type"],
    [object({ city: { type: "text" } }), "properties.city.type"],
    [object({ city: { type: [] } }), "properties.city.type"],
    [object({ city: "string" }), "properties.city"],
    [object([{ type: "string" }]), "properties"],
    [object({ city: { enum: [] } }), "properties.city.enum"],
    [object({ city: { pattern: "(" } }), "properties.city.pattern"],
    [object({ city: { pattern: "^(?=a)a" } }), "properties.city.pattern"],
    [object({ city: { pattern: "a".repeat(257) } }), "properties.city.pattern"],
    [object({}, { patternProperties: { "(": true } }), "patternProperties.("],
    [object({}, { patternProperties: { "(a)\\1": true } }), "patternProperties.(a)\\1"],
    [object({ city: { minLength: -1 } }), "properties.city.minLength"],
    [object({ city: { multipleOf: 0 } }), "properties.city.multipleOf"],
    [object({}, { required: "city" }), "required"],
    [object({ list: { items: [{ type: "string" }] } }), "properties.list.items"],
    [object({ any: { anyOf: [] } }), "properties.any.anyOf"],
    [object({ far: { $ref: "https://example.com/schema.json" } }), "properties.far.$ref"],
    [object({ far: { $ref: "other.json" } }), "properties.far.$ref"],
    [object({ gone: { $ref: "#/$defs/gone" } }), ""],
    [object({}, { $ref: "#" }), ""],
    [object({}, { allOf: [{ $ref: "#/$defs/a" }], $defs: { a: { anyOf: [{ $ref: "#/$defs/a" }] } } }), ""],
    [object({}, { $id: "https://example.com/" }), "$id"],
    [object({ a: { $dynamicRef: "#x" } }), "properties.a.$dynamicRef"],
    [object({}, { $schema: "http://json-schema.org/draft-07/schema#" }), "$schema"],
    [object({ long: { description: "x".repeat(20_000) } }), ""],
  ])("[S4] a schema that cannot be applied is refused with the path (%#)", (schema, path) => {
    expect(problems(schema).map((issue) => issue.path)).toContain(path);
  });

  test("[S4] nesting without end is refused, not followed", () => {
    let schema: object = { type: "object" };
    for (let depth = 0; depth < 300; depth += 1) schema = object({ a: schema });
    expect(problems(schema)).toMatchObject([{ message: expect.stringContaining("maxSchemaDepth") }]);
  });

  test("[S4] a schema that passes can be applied to any value; another is refused in words", () => {
    const keyword = fc.constantFrom(..."type properties items anyOf not required pattern $ref enum if".split(" "));
    const leaf = fc.oneof(
      fc.constantFrom("object", "string", "#", "#/$defs/a", "["),
      fc.boolean(),
      fc.integer(),
      fc.constant(null),
    );
    const { schema } = fc.letrec((tie) => ({
      schema: fc.oneof(
        { depthSize: "small" },
        leaf,
        fc.array(tie("schema"), { maxLength: 3 }),
        fc.dictionary(keyword, tie("schema"), { maxKeys: 4 }),
      ),
    }));
    fc.assert(
      fc.property(schema, fc.jsonValue(), (candidate, value) => {
        const found = schemaProblems(candidate, { ofObject: false });
        expect(found.every(({ message }) => message.length > 0)).toBe(true);
        if (found.length > 0 || typeof candidate !== "object" || candidate === null) return;
        const told = schemaIssues(candidate, value).map(({ message }) => message);
        expect(told.join()).not.toContain("cannot be checked");
      }),
      { numRuns: 2000 },
    );
  });
});

test.each([
  ["(?=a)b", "(?="],
  ["(?<!a)b", "(?<"],
  ["(a)\\1", "\\1"],
  ["(?<n>a)\\k<n>", "a backreference"],
  ["(?i:a)", "a group with flags"],
  ["a{1,1001}", "{1,1001}"],
])("[B3] a pattern that RE2 does not have is refused with what it lacks: %s", (pattern, lack) => {
  const message = expect.stringMatching(/^has what RE2 does not: /);
  expect(problems(object({ city: { pattern } }))).toEqual([{ path: "properties.city.pattern", message }]);
  expect(problems(object({ city: { pattern } }))[0]?.message).toContain(lack);
});

test.each([
  "^(cat|dog)$",
  "(a+)+$",
  "^(a|aa)+$",
  "^[+*|]+(ab)+$",
  "^\\(a\\+\\)+$",
  "^\\p{L}+(?:-[0-9]{4})?$",
  "^(?<year>\\d{4})-\\p{Script=Greek}$",
  "^(?:(?:25[0-5]|2[0-4][0-9])[.]){3}(?:25[0-5]|[0-9])$",
])("a pattern that RE2 has is taken: %s", (pattern) => {
  expect(problems(object({ city: { pattern } }))).toEqual([]);
});
