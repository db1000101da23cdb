import { JSONParseError, NoSuchToolError } from "ai";
import type * as z from "zod";
import { $ZodError } from "zod/v4/core";
import type { CallRequest } from "../../protocol/exported-history.ts";
import { ColloquyError, type Issue } from "../../shared/errors.ts";
import { issuesOf } from "../../shared/issues.ts";
import { excerpt } from "../../shared/quote.ts";
import { maxInvalidCharacters } from "../bounds.ts";

/**
 * What is wrong with a tool's input, as the model is told it: the path, the rule with its bound, and what to do. It never
 * repeats a value, which may be as long as what was refused.
 */
const toldIssues = 5;
const ruleCharacters = 200;
const nameCharacters = 64;

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

/** The issues behind an error of the SDK, from its causes. */
const issuesBehind = (error: unknown): Issue[] => {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (JSONParseError.isInstance(cause)) return [{ path: "", message: notJson }];
    if (cause instanceof $ZodError) return issuesOf(cause);
  }
  return [{ path: "", message: "is not as the tool's schema says" }];
};

/** A refusal as the model reads it, with the issues that its message does not tell. */
export const explained = ({ message, issues = [] }: ColloquyError): string => {
  const untold = issues.filter((issue) => !message.includes(told(issue)) && !message.includes(issue.message));
  return untold.length === 0 ? message : `${message}: ${untold.slice(0, toldIssues).map(told).join("; ")}`;
};
