import { dereference, format, type OutputUnit, type Schema, validate } from "@cfworker/json-schema";
import { inOneBudget, isAffordable } from "./check-budget.ts";
import { innerInPlace } from "./check-json-schema.ts";
import { ColloquyError, type Issue } from "./errors.ts";
import { withLinearPatterns } from "./linear-pattern.ts";
import { oncePerObject } from "./once-per-object.ts";

const maxIssues = 20;
/** An issue repeats names and lists of the schema, and its place names of the value. Those may be long. */
const maxIssueCharacters = 500;

/** `#/a/0` as `a.0`, the way that all other issues name their place. */
const pathOf = (location: string): string =>
  location
    .split("/")
    .slice(1)
    .map((part) => decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~"))
    .join(".");

/** Keywords whose complaint comes before those that it comes from. */
const outer = new Set(
  (
    "$ref allOf anyOf dependentSchemas properties patternProperties additionalProperties unevaluatedProperties " +
    "propertyNames prefixItems items unevaluatedItems"
  ).split(" "),
);

/** Whether somebody complains only because of what they complain about next. Of `oneOf` too many may have matched. */
const isOuter = ({ keyword, error }: OutputUnit): boolean =>
  outer.has(keyword) || (keyword === "oneOf" && error.endsWith("(0 matches)."));

/** These begin with the value, which nobody is told again. */
const aboutNumbers = new Set(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]);

const messageOf = ({ keyword, error }: OutputUnit): string => {
  if (keyword === "false") return "is not allowed here";
  return aboutNumbers.has(keyword) ? error.slice(error.indexOf("is ")) : error;
};

/** The steps of applying a schema: about a microsecond. */
const applicationSteps = 16;
/** The steps of going through an entry, with its name and its place in complaints. */
const entrySteps = 8;
/** The steps of asking for a missing name, and of complaining of it. */
const missingSteps = 4;
/** How many characters are gone through in a step, of a name and of a text. */
const stepCharacters = 8;
const stepTextCharacters = 32;

const spend = (steps: number): void => {
  if (isAffordable("maxSchemaSteps", steps)) return;
  const detail = "it takes too many steps: simplify the schema, or shorten the value (maxSchemaSteps)";
  throw new ColloquyError("invalid_request", detail);
};

// The library's own pattern for this one takes exponential time; RFC 3986 has no such thing as a `url` beside `uri`.
format.url = (text: string) => URL.canParse(text);
for (const [name, isFormat] of Object.entries(format)) {
  format[name] = (text: string) => {
    spend(text.length / stepCharacters);
    return isFormat(text);
  };
}

const lengthOf = (held: unknown): number => (typeof held === "object" && held !== null ? Object.keys(held).length : 0);

/** The characters of the longest text of a value. */
const longestText = (value: unknown): number => {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 0;
  return Object.values(value).reduce<number>((most, held) => Math.max(most, longestText(held)), 0);
};

/** Both are of the value that is being checked. */
let textSteps = 0;
let levels = 0;

/** How often a schema's words lead to another that applies to the same value, at most. */
const levelsOf = (schemas: Record<string, unknown>): number => {
  const known = new Map<unknown, number>();
  const below = (held: unknown): number => {
    if (typeof held !== "object" || held === null) return 0;
    const before = known.get(held);
    if (before !== undefined) return before;
    known.set(held, 0);
    const { __absolute_ref__: address } = held as { __absolute_ref__?: unknown };
    const inner = [...innerInPlace(held), typeof address === "string" ? schemas[address] : undefined];
    const most = inner.reduce<number>((deepest, each) => Math.max(deepest, 1 + below(each)), 0);
    known.set(held, most);
    return most;
  };
  return Object.values(schemas).reduce<number>((deepest, each) => Math.max(deepest, below(each)), 0);
};

/**
 * A copy of a schema that counts how often it is applied: references may lead to one schema exponentially often. The
 * validator reads `$recursiveRef`, which no schema of 2020-12 has, of each schema that it applies.
 */
const counting = oncePerObject((given: object) => {
  const schema: Schema = structuredClone(given);
  const schemas = dereference(schema);
  for (const each of new Set<Schema | boolean>(Object.values(schemas))) {
    if (typeof each !== "object") continue;
    const listed = Object.values(each).reduce<number>((sum, held) => sum + lengthOf(held), 0);
    const compared = JSON.stringify([each.enum, each.const]).length / stepCharacters;
    const measures = Number(each.minLength !== undefined || each.maxLength !== undefined);
    const spendOne = () => spend(applicationSteps + listed + compared + measures * textSteps);
    Object.defineProperty(each, "$recursiveRef", { get: spendOne });
  }
  return { schema, schemas, levels: levelsOf(schemas) };
});

/**
 * The value, which counts what is read of it. Who goes through a list asks for its length first, and through an object
 * for its keys. What was gone through is noted at every level, in time that grows with the levels' square.
 */
const counted = (value: unknown): unknown => {
  const known = new Map<object, object>();
  const through = (count: number): void => spend(count * (entrySteps + levels ** 2 / 16));
  const wrapped = (held: unknown): unknown => {
    if (typeof held !== "object" || held === null) return held;
    const before = known.get(held);
    if (before) return before;
    // A copy: a proxy may not answer with another for what its object holds frozen.
    const proxy = new Proxy(Array.isArray(held) ? [...held] : { ...held }, {
      get(target, key) {
        if (Array.isArray(target) && key === "length") through(target.length);
        else spend(1 + (Array.isArray(target) ? 0 : entrySteps + String(key).length / stepCharacters));
        return wrapped(Reflect.get(target, key));
      },
      ownKeys(target) {
        const keys = Reflect.ownKeys(target);
        through(keys.length);
        return keys;
      },
      getOwnPropertyDescriptor(target, key) {
        const found = Reflect.getOwnPropertyDescriptor(target, key);
        spend((found ? 1 : missingSteps) + String(key).length / stepCharacters);
        return found;
      },
    });
    known.set(held, proxy);
    return proxy;
  };
  return wrapped(value);
};

const errorsOf = (given: object | boolean, value: unknown): OutputUnit[] => {
  if (typeof given === "boolean") return validate(value, given).errors;
  const { schema, schemas, ...known } = counting(given);
  textSteps = longestText(value) / stepTextCharacters;
  levels = known.levels;
  return withLinearPatterns(() => validate(counted(value), schema, "2020-12", schemas, false)).errors;
};

/**
 * The issues of a value against a JSON Schema 2020-12; empty where it fits. Of nested issues only the innermost are
 * told. No value fits a schema that cannot be applied, such as one with a `$ref` to nothing. Nothing is fetched.
 */
export const schemaIssues = (schema: object | boolean, value: unknown): Issue[] => {
  try {
    return inOneBudget(() => errorsOf(schema, value))
      .filter((unit) => !isOuter(unit))
      .slice(0, maxIssues)
      .map((unit) => ({
        path: pathOf(unit.instanceLocation).slice(0, maxIssueCharacters),
        message: messageOf(unit).slice(0, maxIssueCharacters),
      }));
  } catch (error) {
    const [reason] = (error instanceof Error ? error.message : String(error)).split("\n");
    return [{ path: "", message: `cannot be checked against its schema: ${reason}` }];
  }
};
