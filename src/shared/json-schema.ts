import { dereference, format, type OutputUnit, type Schema, validate } from "@cfworker/json-schema";
import { ColloquyError, type Issue } from "./errors.ts";
import { withLinearPatterns } from "./linear-pattern.ts";

const maxIssues = 20;
/** Complaints that are looked at: a long list may break its schema once for each item. */
const maxComplaints = 500;

/** `#/a/0` as `a.0`, the way that all other issues name their place. */
const pathOf = (location: string): string =>
  location
    .split("/")
    .slice(1)
    .map((part) => decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~"))
    .join(".");

/** Whether `outer` complains only because of what `inner` complains about. */
const contains = (outer: OutputUnit, inner: OutputUnit): boolean =>
  inner.keywordLocation.startsWith(`${outer.keywordLocation}/`) ||
  (outer.keyword === "additionalProperties" && inner.instanceLocation.startsWith(`${outer.instanceLocation}/`));

/** These begin with the value, which nobody is told again. */
const aboutNumbers = new Set(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]);

const messageOf = ({ keyword, error }: OutputUnit): string => {
  if (keyword === "false") return "is not allowed here";
  return aboutNumbers.has(keyword) ? error.slice(error.indexOf("is ")) : error;
};

// The library's own pattern for this one takes exponential time; RFC 3986 has no such thing as a `url` beside `uri`.
format.url = (text: string) => URL.canParse(text);

/** The most that one check may cost: each time that a schema is applied, with what it lists, and pairs of items. */
const maxSchemaSteps = 500_000;
/** What applying a schema costs, against one entry of its lists. */
const applicationSteps = 16;

const lengthOf = (held: unknown): number => (typeof held === "object" && held !== null ? Object.keys(held).length : 0);

/** The most items of any list in a value: `uniqueItems` compares each with each. */
const longestList = (value: unknown): number => {
  if (typeof value !== "object" || value === null) return 0;
  const within = Object.values(value).map(longestList);
  return within.reduce((most, length) => Math.max(most, length), Array.isArray(value) ? value.length : 0);
};

/**
 * What is wrong with a value, counted as it is found out: references may lead to one schema exponentially often. The
 * validator reads `$recursiveRef`, which no schema of 2020-12 has, of each schema that it applies.
 */
const errorsOf = (schema: Schema | boolean, value: unknown): OutputUnit[] => {
  const schemas = dereference(schema);
  const pairs = longestList(value) ** 2;
  let spent = 0;
  for (const each of new Set<unknown>(Object.values(schemas))) {
    if (typeof each !== "object" || each === null) continue;
    const listed = Object.values(each).reduce<number>((sum, held) => sum + lengthOf(held), 0);
    const steps = applicationSteps + listed + ("uniqueItems" in each ? pairs : 0);
    const spend = (): void => {
      spent += steps;
      if (spent <= maxSchemaSteps) return;
      throw new ColloquyError("invalid_request", "it takes too many steps: simplify the schema (maxSchemaSteps)");
    };
    Object.defineProperty(each, "$recursiveRef", { get: spend, configurable: true });
  }
  return withLinearPatterns(() => validate(value, schema, "2020-12", schemas, false)).errors;
};

/**
 * The issues of a value against a JSON Schema 2020-12; empty where it fits. Of nested issues only the innermost are
 * told. No value fits a schema that cannot be applied, such as one with a `$ref` to nothing. Nothing is fetched.
 */
export const schemaIssues = (schema: object | boolean, value: unknown): Issue[] => {
  try {
    const errors = errorsOf(schema as Schema, value).slice(0, maxComplaints);
    return errors
      .filter((one) => !errors.some((other) => contains(one, other)))
      .slice(0, maxIssues)
      .map((unit) => ({ path: pathOf(unit.instanceLocation), message: messageOf(unit) }));
  } catch (error) {
    const [reason] = (error instanceof Error ? error.message : String(error)).split("\n");
    return [{ path: "", message: `cannot be checked against its schema: ${reason}` }];
  }
};
