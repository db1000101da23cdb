import { ColloquyError, type ErrorCode } from "../../../shared/errors.ts";
import { createRedactor, type Redactor } from "../configured/redact.ts";

/**
 * Turns what the library, the network or a server threw into a typed error in our words, without any secret. A server's
 * own words are quoted, and short. Secrets are taken out of them before: half of one would not be found.
 */
const maxQuotedCharacters = 200;

const quote = (text: string): string => {
  const line = text.toWellFormed().replace(/\s+/g, " ").trim();
  return JSON.stringify(line.length > maxQuotedCharacters ? `${line.slice(0, maxQuotedCharacters)}…` : line);
};

/** The HTTP status that an error of the library tells of. */
export const statusOf = (error: unknown): number | undefined =>
  error instanceof Error && "status" in error && typeof error.status === "number" ? error.status : undefined;

const codeOf = (error: unknown): unknown => (error instanceof Error && "code" in error ? error.code : undefined);

/** The newest of an error and its causes that is ours. */
const ours = (error: unknown): ColloquyError | undefined => {
  for (let each = error; each instanceof Error; each = each.cause) if (each instanceof ColloquyError) return each;
  return undefined;
};

/** By the codes of the library's errors, and the names of those that have none. */
const failures: [ErrorCode, string, unknown[]][] = [
  ["tool_timeout", "it did not answer in time", ["REQUEST_TIMEOUT"]],
  [
    "unavailable",
    "the connection broke before the answer was whole",
    ["CONNECTION_CLOSED", "NOT_CONNECTED", "SEND_FAILED"],
  ],
  [
    "tool_failed",
    "it answers what the protocol does not know",
    [
      "INVALID_RESULT",
      "CLIENT_HTTP_UNEXPECTED_CONTENT",
      "LIST_PAGINATION_EXCEEDED",
      "SyntaxError",
      "ZodError",
      "$ZodError",
    ],
  ],
  [
    "tool_failed",
    "it asks for what agents do not answer: elicitation, sampling, roots or tasks",
    ["UNSUPPORTED_RESULT_TYPE", "INPUT_REQUIRED_ROUNDS_EXCEEDED", "CAPABILITY_NOT_SUPPORTED"],
  ],
];

/** Invalid parameters, and a method that is not found. */
const refusals: unknown[] = [-32602, -32601];

const told = (error: unknown, redactor: Redactor): [ErrorCode, string] => {
  const message = redactor.text(error instanceof Error ? error.message : String(error));
  const status = statusOf(error);
  if (status === 401 || status === 403) {
    return ["tool_misconfigured", `it refuses us (${status}): set what it asks for in headers, a token as a secret`];
  }
  if (status !== undefined) {
    return [status === 429 || status >= 500 ? "unavailable" : "tool_failed", `it answers ${status}: ${quote(message)}`];
  }
  const code = codeOf(error);
  const known = failures.find(([, , names]) => names.includes(code ?? (error instanceof Error && error.name)));
  if (known) return [known[0], known[1]];
  if (refusals.includes(code)) return ["tool_failed", `it refuses the call: ${quote(message)}`];
  return ["tool_failed", `${typeof code === "number" ? "it answers an error" : "it failed"}: ${quote(message)}`];
};

/** `redactor`: of the secrets that its server was sent; left out where it was sent none. */
export const failureOf = (error: unknown, redactor: Redactor = createRedactor([])): ColloquyError =>
  ours(error) ?? new ColloquyError(...told(error, redactor), { cause: error });

/**
 * Whether a server may have carried out what it was asked, when that is all that came of it. Only what refuses the call
 * says that it was not: a status of 400 to 499, an error of JSON-RPC, a redirect. What asks back, or begins a task, may
 * have done a part.
 */
export const mayBeDone = (error: unknown): boolean => {
  const known = ours(error);
  if (known) return known.code !== "tool_misconfigured";
  const status = statusOf(error);
  if (status !== undefined) return status < 400 || status >= 500;
  return typeof codeOf(error) !== "number";
};
