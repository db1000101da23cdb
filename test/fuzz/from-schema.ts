import fc from "fast-check";
import * as z from "zod";
import { hostileText, type Json } from "./hostile.ts";
import { named } from "./named.ts";

/**
 * Values that a JSON Schema of the API's own document allows, as far as it says. Where a name says more than its schema
 * (`cron`, `url`), the value is from `named`. Ids are marks such as `@ent0@`, which the stage has values for.
 */
const SchemaObject = z.looseObject({
  $ref: z.string().optional(),
  type: z.union([z.string(), z.array(z.string())]).optional(),
  const: z.json().optional(),
  enum: z.array(z.json()).optional(),
  anyOf: z.array(z.unknown()).optional(),
  oneOf: z.array(z.unknown()).optional(),
  allOf: z.array(z.unknown()).optional(),
  properties: z.record(z.string(), z.unknown()).optional(),
  required: z.array(z.string()).optional(),
  additionalProperties: z.unknown().optional(),
  items: z.unknown().optional(),
  minimum: z.number().optional(),
  maximum: z.number().optional(),
  pattern: z.string().optional(),
});

const plainText = fc.constantFrom("a", "Report", "two words", "x_1", "Grün", "a-name", "42");

const someJson: fc.Arbitrary<Json> = fc.oneof(
  plainText,
  fc.constantFrom<Json>(null, 1, true, [], {}, { a: [1, { b: "c" }] }),
);

const marksOf: Record<string, string[]> = {
  ent: ["@ent0@", "@ent1@", "@ent2@", "@ent3@", "@agent0@", "@agent1@"],
  spc: ["@spc0@", "@spc1@"],
  msg: ["@msg0@", "@msg1@"],
  run: ["@run0@"],
  tc: ["@asked0@", "@approval0@", "@tc0@"],
  evt: ["@evt0@"],
  hook: ["@hook0@"],
  key: ["@key0@"],
};

const ofPattern = (pattern: string): fc.Arbitrary<Json> => {
  const [, prefix = ""] = /^\^([a-z]+)_/.exec(pattern) ?? [];
  const marks = marksOf[prefix];
  return marks ? fc.constantFrom(...marks) : fc.constantFrom("a-name", "x", "b_2");
};

export const fromSchema = (root: unknown, components: Record<string, unknown>): fc.Arbitrary<Json> => {
  const make = (raw: unknown, name: string, depth: number): fc.Arbitrary<Json> => {
    const hint = named[name];
    if (hint) return hint;
    if (typeof raw === "boolean" || depth > 8) return someJson;
    const schema = SchemaObject.parse(raw);
    if (schema.$ref !== undefined) return make(components[schema.$ref.split("/").at(-1) ?? ""], name, depth + 1);
    if (schema.const !== undefined) return fc.constant(schema.const);
    if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
    const forms = schema.anyOf ?? schema.oneOf;
    if (forms) return fc.oneof(...forms.map((form) => make(form, name, depth + 1)));
    if (schema.allOf) return make(schema.allOf[0] ?? true, name, depth + 1);
    const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
    const { minimum = 0, maximum = 1000 } = schema;
    switch (type) {
      case "object": {
        const { properties = {}, required = [] } = schema;
        const fields = Object.fromEntries(
          Object.entries(properties).map(([key, inner]) => [key, make(inner, key, depth + 1)]),
        );
        return Object.keys(fields).length === 0
          ? fc.dictionary(plainText, someJson, { maxKeys: 2 })
          : fc.record(fields, { requiredKeys: required.filter((key) => key in fields), noNullPrototype: true });
      }
      case "array":
        return fc.array(make(schema.items ?? true, "", depth + 1), { maxLength: 3 });
      case "integer":
        return fc.oneof(fc.integer({ min: Math.ceil(minimum), max: Math.min(maximum, 2 ** 31) }), fc.constant(maximum));
      case "number":
        return fc.double({ min: minimum, max: maximum, noNaN: true });
      case "boolean":
        return fc.boolean();
      case "null":
        return fc.constant(null);
      case "string":
        return schema.pattern === undefined ? fc.oneof(plainText, plainText, hostileText) : ofPattern(schema.pattern);
      default:
        return someJson;
    }
  };
  return make(root, "", 0);
};
