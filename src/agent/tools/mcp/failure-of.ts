import { ColloquyError, type ErrorCode } from "../../../shared/errors.ts";

/**
 * What went wrong with a server, in our words: what the library, the network or the server threw, as a typed error
 * without any secret. Whatever is quoted of a server's own words is quoted, and short.
 */
const maxQuotedCharacters = 200;

const quote = (text: string): string => {
  const line = text.toWellFormed().replace(/\s+/g, " ").trim();
  return JSON.stringify(line.length > maxQuotedCharacters ? `${line.slice(0, maxQuotedCharacters)}…` : line);
};

const statusOf = (error: unknown): number | undefined =>
  error instanceof Error && "status" in error && typeof error.status === "number" ? error.status : undefined;

const codeOf = (error: unknown): string | number | undefined =>
  error instanceof Error && "code" in error && (typeof error.code === "string" || typeof error.code === "number")
    ? error.code
    : undefined;

const invalidParams = -32602;
const methodNotFound = -32601;

/** The newest of an error and its causes that is ours. */
const ours = (error: unknown): ColloquyError | undefined => {
  for (let each = error; each instanceof Error; each = each.cause) if (each instanceof ColloquyError) return each;
  return undefined;
};

export const failureOf = (error: unknown): ColloquyError => {
  const known = ours(error);
  if (known) return known;
  const failed = (code: ErrorCode, message: string): ColloquyError =>
    new ColloquyError(code, message, { cause: error });
  const message = error instanceof Error ? error.message : String(error);
  const status = statusOf(error);
  if (status === 401 || status === 403) {
    return failed(
      "tool_misconfigured",
      `it refuses us (${status}): set what it asks for in headers, a token as a secret`,
    );
  }
  if (status !== undefined) {
    const said = `it answers ${status}: ${quote(message)}`;
    return failed(status === 429 || status >= 500 ? "unavailable" : "tool_failed", said);
  }
  switch (codeOf(error)) {
    case "REQUEST_TIMEOUT":
      return failed("tool_timeout", "it did not answer in time");
    case "CONNECTION_CLOSED":
    case "NOT_CONNECTED":
    case "SEND_FAILED":
      return failed("unavailable", "the connection broke before the answer was whole");
    case "INVALID_RESULT":
    case "CLIENT_HTTP_UNEXPECTED_CONTENT":
    case "LIST_PAGINATION_EXCEEDED":
      return failed("tool_failed", "it answers what the protocol does not know");
    case "UNSUPPORTED_RESULT_TYPE":
    case "INPUT_REQUIRED_ROUNDS_EXCEEDED":
    case "CAPABILITY_NOT_SUPPORTED":
      return failed("tool_failed", "it asks for what agents do not answer: elicitation, sampling, roots or tasks");
    case invalidParams:
    case methodNotFound:
      return failed("tool_failed", `it refuses the call: ${quote(message)}`);
    default:
  }
  if (error instanceof SyntaxError || (error instanceof Error && error.name.endsWith("ZodError"))) {
    return failed("tool_failed", "it answers what the protocol does not know");
  }
  if (typeof codeOf(error) === "number") return failed("tool_failed", `it answers an error: ${quote(message)}`);
  return failed("tool_failed", `it failed: ${quote(message)}`);
};

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
