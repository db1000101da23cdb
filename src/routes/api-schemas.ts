import { z } from "zod";

/**
 * zod schemas as the JSON Schemas (2020-12) of an OpenAPI 3.1 document. A schema with `.meta({id})` becomes a
 * component; where what is accepted and what is answered differ (defaults), the answered one is `<id>Output`.
 */
export type Json = z.infer<ReturnType<typeof z.json>>;
export type JsonObject = { [key: string]: Json };
type Direction = "input" | "output";

const JsonObjectSchema = z.record(z.string(), z.json());
const Definitions = z.record(z.string(), JsonObjectSchema);

const definitionPath = "#/$defs/";
const componentPath = "#/components/schemas/";
/** zod's name for a schema that refers to itself and has no id: here that is any JSON value. */
const selfReferring = /^__schema\d+$/;

const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Every `$ref` of a schema, rewritten. */
const withReferences = (value: Json, rename: (name: string) => string): Json => {
  if (Array.isArray(value)) return value.map((item) => withReferences(item, rename));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, held]) =>
      key === "$ref" && typeof held === "string"
        ? [key, componentPath + rename(held.slice(definitionPath.length))]
        : [key, withReferences(held, rename)],
    ),
  );
};

const toJsonSchema = (schema: z.ZodType, direction: Direction): JsonObject => {
  const json = z.toJSONSchema(schema, {
    io: direction,
    unrepresentable: "any",
    override: ({ jsonSchema }) => {
      // Readable over exhaustive: format and bounds say it all. And what we answer may gain fields.
      if (jsonSchema.format === "date-time" || jsonSchema.type === "integer") delete jsonSchema.pattern;
      if (direction === "output" && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
    },
  });
  return JsonObjectSchema.parse(JSON.parse(JSON.stringify(json)));
};

export class ApiSchemas {
  readonly #definitions: Record<Direction, Map<string, JsonObject>> = { input: new Map(), output: new Map() };

  /** A schema in place; its components are kept. References are final only after `finish`. */
  add(schema: z.ZodType, direction: Direction): { schema: JsonObject; direction: Direction } {
    const { $schema: _dialect, $defs, ...rest } = toJsonSchema(schema, direction);
    for (const [name, definition] of Object.entries(Definitions.parse($defs ?? {}))) {
      this.#definitions[direction].set(name, definition);
    }
    return { schema: rest, direction };
  }

  /** A schema that `add` answered, with references into the document's components. */
  finish(added: { schema: JsonObject; direction: Direction }): Json {
    return withReferences(added.schema, (name) => this.#componentName(name, added.direction));
  }

  /** All components, by name. */
  components(): JsonObject {
    const all: JsonObject = {};
    for (const direction of ["input", "output"] as const) {
      for (const [name, definition] of this.#definitions[direction]) {
        const { id: _id, ...schema } = definition;
        all[this.#componentName(name, direction)] = withReferences(schema, (other) =>
          this.#componentName(other, direction),
        );
      }
    }
    return Object.fromEntries(Object.entries(all).sort(([one], [other]) => one.localeCompare(other)));
  }

  #componentName(name: string, direction: Direction): string {
    if (selfReferring.test(name)) return "JsonValue";
    const input = this.#definitions.input.get(name);
    const output = this.#definitions.output.get(name);
    const differs = input && output && withoutStrictness(input) !== withoutStrictness(output);
    return direction === "output" && differs ? `${name}Output` : name;
  }
}

const withoutStrictness = (schema: JsonObject): string =>
  JSON.stringify(schema, (key, value: unknown) =>
    key === "additionalProperties" && value === false ? undefined : value,
  );
