import { JSONParseError, NoSuchToolError } from "ai";
import { z } from "zod";
import type { CallRequest } from "../../protocol/exported-history.ts";
import { ColloquyError, type Issue } from "../../shared/errors.ts";
import { nearestIssues } from "../../shared/nearest-issues.ts";
import { excerpt } from "../../shared/quote.ts";
import { maxInvalidCharacters } from "../bounds.ts";

/**
 * What is wrong with a tool's input, as the model is told it: the path, the rule with its bound, and what to do. It never
 * repeats a value, which may be as long as what was refused.
 */
const toldIssues = 5;
const ruleCharacters = 200;
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
        .slice(0, toldIssues)
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

const issuesOf = (error: z.core.$ZodError): Issue[] =>
  nearestIssues(error).map((issue) => ({ path: issue.path.map(String).join("."), message: ruleOf(issue) }));

const told = ({ path, message }: Issue): string => {
  const names = path.split(".").map((name) => excerpt(name, nameCharacters));
  return `${names.join(".") || "input"}: ${excerpt(message.replace(/\.$/, ""), ruleCharacters)}`;
};

const again = "and call the tool again";
const remedyOf = (issues: Issue[]): string =>
  issues.some(({ message }) => /at most [\d,]+ (?:bytes|characters)|too long/.test(message))
    ? `shorten it, or split it over several calls, ${again}`
    : `correct it ${again}`;

/** An input that breaks its schema. */
export const invalidInput = (issues: Issue[]): ColloquyError => {
  const lines = issues.slice(0, toldIssues).map(told);
  const more = issues.length > toldIssues ? `; and ${issues.length - toldIssues} more` : "";
  const message = `${lines.join("; ")}${more}. Nothing was done: ${remedyOf(issues)}`;
  return new ColloquyError("tool_input_invalid", message, { issues });
};

/** An input as its schema reads it. Throws `tool_input_invalid`. */
export const parseInput = <Schema extends z.ZodType>(schema: Schema, input: unknown): z.infer<Schema> => {
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  throw invalidInput(issuesOf(parsed.error));
};

const notJson = "is not JSON, or was cut off; send one whole object, with quotes and line ends in its texts escaped";

/** Why the AI SDK refused a call. Its own words repeat the whole input before they come to the reason. */
export const refusedCall = (error: unknown): NonNullable<CallRequest["invalid"]> => {
  if (NoSuchToolError.isInstance(error)) {
    const yours = (error.availableTools ?? []).join(", ");
    const message = excerpt(`there is no tool of that name; yours are: ${yours}`, maxInvalidCharacters);
    return { code: "tool_unknown", message };
  }
  const { message } = invalidInput(issuesBehind(error));
  return { code: "tool_input_invalid", message };
};

/** What an error of the SDK is about, by its causes. */
const issuesBehind = (error: unknown): Issue[] => {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (JSONParseError.isInstance(cause)) return [{ path: "", message: notJson }];
    if (cause instanceof z.core.$ZodError) return issuesOf(cause);
  }
  return [{ path: "", message: "is not as the tool's schema says" }];
};

/** A refusal as the model reads it, with the issues that its message does not tell. */
export const explained = ({ message, issues = [] }: ColloquyError): string => {
  const untold = issues.filter((issue) => !message.includes(told(issue)) && !message.includes(issue.message));
  return untold.length === 0 ? message : `${message}: ${untold.slice(0, toldIssues).map(told).join("; ")}`;
};
