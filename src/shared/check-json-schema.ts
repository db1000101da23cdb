import { dereference } from "@cfworker/json-schema";
import { inOneBudget, isAffordable } from "./check-budget.ts";
import { ColloquyError, type Issue } from "./errors.ts";
import { LinearPattern, maxPatternSize, patternSize } from "./linear-pattern.ts";

/**
 * Whether somebody's JSON Schema 2020-12 can be applied, told when it is written down and not when it is first used.
 * Every keyword that is applied is checked for its form. `$ref` leads only into the schema itself. Nesting without end,
 * references in a circle and patterns that RE2 does not have are refused.
 */
export const maxSchemaBytes = 16 * 1024;
const maxSchemaDepth = 24;
const maxPatternCharacters = 256;
/** The most instructions of all patterns of a schema: compiling them holds up everybody in this isolate. */
const maxPatternSizes = 2 * maxPatternSize;

const types: unknown[] = ["null", "boolean", "object", "array", "number", "string", "integer"];

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

type Report = (message: string, path?: string) => void;
type Check = (value: unknown, report: Report, walk: (inner: unknown, path: string) => void) => void;

const isStrings = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((each) => typeof each === "string");

/** A check that says what a value must be where it is not. */
const mustBe =
  (what: string, isSo: (value: unknown) => boolean): Check =>
  (value, report) => {
    if (!isSo(value)) report(`must be ${what}`);
  };

const refused =
  (why: string): Check =>
  (_, report) =>
    report(why);

const schema: Check = (value, _, walk) => walk(value, "");
const schemas: Check = (value, report, walk) => {
  if (!Array.isArray(value) || value.length === 0) return report("must be a list of schemas, not empty");
  for (const [index, each] of value.entries()) walk(each, `${index}`);
};
const schemasByName: Check = (value, report, walk) => {
  if (!isRecord(value)) return report("must be an object of schemas");
  for (const [name, each] of Object.entries(value)) walk(each, name);
};

/** The sum over the schema that is being checked. */
let patternSizes = 0;

const pattern: Check = (value, report) => {
  if (typeof value !== "string") return report("must be a regular expression");
  if (value.length > maxPatternCharacters) return report(`must have at most ${maxPatternCharacters} characters`);
  const size = patternSize(value);
  patternSizes += size;
  if (patternSizes > maxPatternSizes) {
    return report(
      `makes the schema's patterns too large: together at most ${maxPatternSizes} characters, counted as often as they repeat (maxPatternSizes)`,
    );
  }
  if (!isAffordable("maxRequestPatternSizes", size)) {
    return report("makes the patterns of all schemas together too large (maxRequestPatternSizes)");
  }
  try {
    new LinearPattern(value, "u").test("");
  } catch (error) {
    report(error instanceof ColloquyError ? error.message : "must be a regular expression");
  }
};

const isDialect = (value: unknown): boolean =>
  typeof value === "string" && /^https?:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/.test(value);
const isType = (value: unknown): boolean => {
  const named = Array.isArray(value) ? value : [value];
  return named.length > 0 && named.every((each) => types.includes(each));
};
const isCount = (value: unknown): boolean => typeof value === "number" && Number.isInteger(value) && value >= 0;

/** Every keyword that is applied, or must not stand in a schema, with its check. */
const keywords = new Map<string, Check>(
  (
    [
      ["additionalProperties unevaluatedProperties propertyNames items unevaluatedItems contains", schema],
      ["not if then else", schema],
      ["prefixItems allOf anyOf oneOf", schemas],
      ["$defs definitions properties dependentSchemas", schemasByName],
      ["pattern", pattern],
      [
        "patternProperties",
        (value, report, walk) => {
          schemasByName(value, report, walk);
          if (!isRecord(value)) return;
          for (const each of Object.keys(value)) pattern(each, (message) => report(message, each), walk);
        },
      ],
      ["$schema", mustBe("https://json-schema.org/draft/2020-12/schema, or left out", isDialect)],
      ["type", mustBe(`of ${types.join(", ")}`, isType)],
      ["enum", mustBe("a list of values, not empty", (value) => Array.isArray(value) && value.length > 0)],
      ["required", mustBe("a list of strings", isStrings)],
      [
        "dependentRequired",
        mustBe("an object of lists of strings", (value) => isRecord(value) && Object.values(value).every(isStrings)),
      ],
      ["format", mustBe("a string", (value) => typeof value === "string")],
      ["uniqueItems", mustBe("true or false", (value) => typeof value === "boolean")],
      [
        "minProperties maxProperties minContains maxContains minItems maxItems minLength maxLength",
        mustBe("a whole number, not negative", isCount),
      ],
      ["minimum maximum exclusiveMinimum exclusiveMaximum", mustBe("a number", (value) => typeof value === "number")],
      ["multipleOf", mustBe("a number above 0", (value) => typeof value === "number" && value > 0)],
      [
        "$ref",
        (value, report) => {
          if (typeof value !== "string" || !value.startsWith("#")) report('must begin with "#": nothing is fetched');
        },
      ],
      ["$id id", refused("must be left out: a schema stands alone")],
      ["$anchor", refused("must be left out: refer to #/$defs/…")],
      ["$dynamicRef", refused("is not supported: use $ref")],
      ["$dynamicAnchor", refused("is not supported: use $defs")],
      ["$recursiveRef", refused("is not of 2020-12: use $ref")],
      ["$recursiveAnchor", refused("is not of 2020-12: use $defs")],
      ["additionalItems", refused("is not of 2020-12: use prefixItems and items")],
      ["dependencies", refused("is not of 2020-12: use dependentRequired or dependentSchemas")],
    ] satisfies [string, Check][]
  ).flatMap(([names, check]): [string, Check][] => names.split(" ").map((name) => [name, check])),
);

const joined = (path: string, more: string): string => (path === "" ? more : more === "" ? path : `${path}.${more}`);

/** The keywords whose schemas apply to the same value as the schema around them. */
const inPlace = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"];

export const innerInPlace = (held: object): unknown[] =>
  inPlace.flatMap((keyword) => {
    const value = Object.getOwnPropertyDescriptor(held, keyword)?.value;
    if (Array.isArray(value)) return value;
    return keyword === "dependentSchemas" && isRecord(value) ? Object.values(value) : [value];
  });

/** References that lead nowhere, or lead back to themselves without going into the value. */
const referenceProblem = (root: Record<string, unknown>): string | undefined => {
  const copy: unknown = structuredClone(root);
  if (!isRecord(copy)) return undefined;
  const lookup: Record<string, unknown> = dereference(copy);
  const under = new Set<unknown>();
  const done = new Set<unknown>();
  const follow = (held: unknown): string | undefined => {
    if (!isRecord(held) || done.has(held)) return undefined;
    if (under.has(held)) return "must not refer to itself in a circle";
    under.add(held);
    const { $ref, __absolute_ref__: address } = held;
    const target = typeof address === "string" ? lookup[address] : undefined;
    if ($ref !== undefined && target === undefined) return `has a $ref that leads nowhere: ${JSON.stringify($ref)}`;
    for (const next of [target, ...innerInPlace(held)]) {
      const problem = follow(next);
      if (problem !== undefined) return problem;
    }
    under.delete(held);
    done.add(held);
    return undefined;
  };
  for (const each of Object.values(lookup)) {
    const problem = follow(each);
    if (problem !== undefined) return problem;
  }
  return undefined;
};

/** The issues of a schema; empty where it can be applied. `ofObject`: its type must be `object`, as for inputs. */
export const schemaProblems = (root: unknown, { ofObject }: { ofObject: boolean }): Issue[] =>
  inOneBudget(() => problemsOf(root, ofObject));

const problemsOf = (root: unknown, ofObject: boolean): Issue[] => {
  const issues: Issue[] = [];
  const walk = (held: unknown, path: string, depth: number): void => {
    if (typeof held === "boolean") return;
    if (!isRecord(held)) return void issues.push({ path, message: "must be a schema: an object, true or false" });
    if (depth > maxSchemaDepth) {
      return void issues.push({
        path,
        message: `must not nest deeper than ${maxSchemaDepth} schemas (maxSchemaDepth)`,
      });
    }
    for (const [keyword, value] of Object.entries(held)) {
      const here = joined(path, keyword);
      keywords.get(keyword)?.(
        value,
        (message, at = "") => void issues.push({ path: joined(here, at), message }),
        (inner, at) => walk(inner, joined(here, at), depth + 1),
      );
    }
  };
  if (new TextEncoder().encode(JSON.stringify(root)).length > maxSchemaBytes) {
    return [{ path: "", message: `must be at most ${maxSchemaBytes} bytes (maxSchemaBytes)` }];
  }
  patternSizes = 0;
  walk(root, "", 0);
  if (ofObject && (!isRecord(root) || root.type !== "object")) {
    issues.push({ path: "type", message: 'must be "object": an input is one' });
  }
  if (issues.length > 0 || !isRecord(root)) return issues;
  const problem = referenceProblem(root);
  return problem === undefined ? [] : [{ path: "", message: problem }];
};
