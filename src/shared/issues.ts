import type * as z from "zod";
import type { Issue } from "./errors.ts";
import { excerpt } from "./quote.ts";

/** The issues of a schema in words that a person or a model can act on. They never repeat a value. */
const toldNames = 5;
const nameCharacters = 64;

const kinds: Record<string, string> = { int: "a whole number", array: "an array", object: "an object" };
const kindOf = (expected: string): string => kinds[expected] ?? `a ${expected}`;

/** What a bound counts, by the kind of value. */
const counted: Record<string, string> = { string: " characters", array: " items", object: " fields" };

const sizeRule = (issue: z.core.$ZodIssueTooBig | z.core.$ZodIssueTooSmall): string => {
  const [most, bound] = issue.code === "too_big" ? ["most", issue.maximum] : ["least", issue.minimum];
  const what = counted[issue.origin];
  if (what !== undefined) return `must have at ${most} ${bound}${what}`;
  return issue.inclusive === false
    ? `must be ${most === "most" ? "less" : "more"} than ${bound}`
    : `must be at ${most} ${bound}`;
};

/** The rule that a value breaks. A schema's own words are taken as they are; zod's are put as ours. */
const ruleOf = (issue: z.core.$ZodIssue): string => {
  const { message } = issue;
  if (!/^(?:Invalid|Too|Unrecognized)/.test(message)) return message;
  switch (issue.code) {
    case "invalid_type":
      return `${/received undefined$/.test(message) ? "is missing: it " : ""}must be ${kindOf(issue.expected)}`;
    case "too_big":
    case "too_small":
      return sizeRule(issue);
    case "invalid_value":
      return `must be one of ${issue.values.map((value) => JSON.stringify(value)).join(", ")}`;
    case "unrecognized_keys":
      return `has unknown fields, leave them out: ${issue.keys
        .slice(0, toldNames)
        .map((key) => excerpt(key, nameCharacters))
        .join(", ")}`;
    default:
      return message
        .replace(/^Invalid discriminator value\. Expected/, "must be one of")
        .replace(/^Invalid input: expected/, "must be")
        .replace(/^Invalid \w+: must/, "must")
        .replace(/^Invalid (?!input)/, "must be a valid ");
  }
};

const otherKind = 100;

/** The distance of a value from one form of a union. Another kind of value counts more than all wrong fields. */
const distance = (issues: z.core.$ZodIssue[]): number =>
  issues.reduce((sum, { code, path }) => {
    if (code === "invalid_type" && path.length === 0) return sum + otherKind;
    return sum + (code === "invalid_union" ? 1.5 : 1);
  }, 0);

/** The issues of a union's nearest form, where the value fits none. */
const innermost = (issue: z.core.$ZodIssue): z.core.$ZodIssue[] => {
  if (issue.code !== "invalid_union") return [issue];
  const [nearest] = issue.errors.toSorted((one, other) => distance(one) - distance(other));
  if (!nearest) return [issue];
  return nearest.flatMap(innermost).map((inner) => ({ ...inner, path: [...issue.path, ...inner.path] }));
};

/** The issues of a value, of each union those of the form that it is nearest to. */
const nearestIssues = ({ issues }: z.core.$ZodError): z.core.$ZodIssue[] => issues.flatMap(innermost);

/** What is wrong with a value: where, and the rule that it breaks. */
export const issuesOf = (error: z.core.$ZodError): Issue[] =>
  nearestIssues(error).map((issue) => ({ path: issue.path.map(String).join("."), message: ruleOf(issue) }));
