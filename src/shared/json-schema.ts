import { type OutputUnit, type Schema, Validator } from "@cfworker/json-schema";
import type { Issue } from "./errors.ts";
import { LinearPattern } from "./linear-pattern.ts";

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

/** Runs `work`, which is synchronous, with RE2 in place of `RegExp`: the validator takes no engine of our choice. */
const withLinearPatterns = <T>(work: () => T): T => {
  const native = globalThis.RegExp;
  Object.assign(globalThis, { RegExp: LinearPattern });
  try {
    return work();
  } finally {
    Object.assign(globalThis, { RegExp: native });
  }
};

/**
 * The issues of a value against a JSON Schema 2020-12; empty where it fits. Of nested issues only the innermost are
 * told. No value fits a schema that cannot be applied, such as one with a `$ref` to nothing. Nothing is fetched.
 */
export const schemaIssues = (schema: object | boolean, value: unknown): Issue[] => {
  try {
    const validator = new Validator(schema as Schema, "2020-12", false);
    const errors = withLinearPatterns(() => validator.validate(value)).errors.slice(0, maxComplaints);
    return errors
      .filter((one) => !errors.some((other) => contains(one, other)))
      .slice(0, maxIssues)
      .map((unit) => ({ path: pathOf(unit.instanceLocation), message: messageOf(unit) }));
  } catch (error) {
    const [reason] = (error instanceof Error ? error.message : String(error)).split("\n");
    return [{ path: "", message: `cannot be checked against its schema: ${reason}` }];
  }
};
