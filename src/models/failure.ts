import {
  APICallError,
  EmptyResponseBodyError,
  InvalidResponseDataError,
  InvalidToolInputError,
  JSONParseError,
  LoadAPIKeyError,
  NoContentGeneratedError,
  NoOutputGeneratedError,
  NoSuchModelError,
  NoSuchToolError,
  RetryError,
  StreamProviderError,
  TypeValidationError,
  UnsupportedFunctionalityError,
} from "ai";
import { ColloquyError, type ErrorCode, errorKind } from "../shared/errors.ts";

/**
 * Why a model's call failed. `terminal`: the same call cannot succeed when repeated (an overflow may, once compacted).
 * `message` is for people: it says what they can do, and holds no key.
 */
export type ModelFailure = {
  code: ErrorCode;
  terminal: boolean;
  retryAfterMs?: number;
  message: string;
};

const failure = (code: ErrorCode, message: string, retryAfter?: number): ModelFailure => ({
  code,
  terminal: errorKind(code).retryable !== true,
  message,
  ...(retryAfter === undefined ? {} : { retryAfterMs: retryAfter }),
});

/** Likely keys and tokens: known prefixes, authorization headers, long runs of mixed letters and digits. */
const keyPatterns = [
  /\b(?:bearer|basic)\s+[\w.~+/=-]{6,}/gi,
  /\b(?:sk|pk|rk|gsk|xai|hf|r8|nvapi|key|api[_-]?key)[-_=:][\w-]{6,}/gi,
  /\bAIza[\w-]{10,}/g,
  /\beyJ[\w-]+\.[\w-]+(?:\.[\w-]+)?/g,
  /\b(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{28,}/g,
  /\/\/[^/\s@]+@/g,
];

const longestQuote = 300;
/** How much of a provider's error is read, and how much is searched for keys: the patterns take quadratic time. */
const longestSaid = 16_384;
const longestLooked = 2000;

/** The beginning of a text, without a word that the cut may have left half of. */
const beginningOf = (text: string): string =>
  text.length <= longestLooked ? text : text.slice(0, Math.max(0, text.slice(0, longestLooked).search(/\S*$/)));

/** Foreign text on one line, cut, without anything that looks like a key. */
const redacted = (text: string): string =>
  keyPatterns
    .reduce((result, pattern) => result.replace(pattern, "[redacted]"), beginningOf(text))
    .replace(/\s+/g, " ")
    .trim()
    .slice(0, longestQuote);

const quoteBegins = " It said: ";
/** The own words of a provider, or of a guest's program, as an addition to a message; empty if it said none. */
export const quoted = (said: string): string => {
  const text = redacted(said);
  return text === "" ? "" : `${quoteBegins}${JSON.stringify(text)}`;
};

/** The message of a failure in our words alone: a provider's may quote what it was asked. */
export const withoutQuote = (message: string): string => message.split(quoteBegins, 1)[0] ?? "";

const longestMs = 24 * 60 * 60 * 1000;

/** The wait that a response asks for, at most a day: `retry-after-ms`, or `Retry-After` in seconds or as a date. */
const retryAfterMs = (responseHeaders: Record<string, string> | undefined, now: number): number | undefined => {
  const headers = new Headers(responseHeaders);
  const exact = Number.parseFloat(headers.get("retry-after-ms") ?? "");
  const asked = headers.get("retry-after") ?? "";
  const inSeconds = /^\d+(?:\.\d+)?$/.test(asked) ? Number(asked) * 1000 : Date.parse(asked) - now;
  const wait = exact >= 0 ? exact : inSeconds;
  return Number.isFinite(wait) ? Math.min(Math.max(0, Math.round(wait)), longestMs) : undefined;
};

/** The words of known providers for an input that is too long for the model. */
const overflowPatterns = [
  /context_length_exceeded|exceed_context_size/i, // OpenAI and those like it; llama.cpp
  /(?:maximum|max) (?:context|prompt|model) length/i, // OpenAI, Mistral, vLLM, xAI, OpenRouter
  /context (?:window|size|limit|length)\b.{0,40}\b(?:exceed|limit|full)|exceed\w{0,10}.{0,60}\bcontext (?:window|size|limit|length)/i, // Workers AI, llama.cpp, Ollama, Anthropic
  /prompt is too long|input is too long/i, // Anthropic, Bedrock
  /input token count.{0,60}exceeds/i, // Gemini
  /reduce the length of the (?:messages|prompt|input)/i, // Groq, OpenAI
  /request too large for model/i, // Groq
  /tokens? \+ .?max_(?:new_)?tokens.? must be <=/i, // Together, TGI
];

/** Statuses that come with it. An error inside a stream has none. */
const overflowStatuses = new Set<number | undefined>([undefined, 200, 400, 413, 422, 500]);

/** True where a provider's refusal means that the input is too long. Status 413 is enough. */
const isContextOverflow = (status: number | undefined, said: string): boolean =>
  status === 413 || (overflowStatuses.has(status) && overflowPatterns.some((pattern) => pattern.test(said)));

const messageOf = (error: unknown): string => {
  if (typeof error === "string") return error.slice(0, longestSaid);
  if (typeof error !== "object" || error === null || !("message" in error)) return "";
  const said = typeof error.message === "string" ? error.message : (JSON.stringify(error.message) ?? "");
  return said.slice(0, longestSaid);
};

/** An error and what caused it, outermost first. */
const causes = (error: unknown): unknown[] => {
  const chain: unknown[] = [];
  for (let each = error; each !== undefined && each !== null && chain.length < 8; ) {
    chain.push(each);
    each = typeof each === "object" && "cause" in each ? each.cause : undefined;
  }
  return chain;
};

const isTimeout = (error: unknown): boolean =>
  (error instanceof Error && error.name === "TimeoutError") ||
  /\bTimeoutError\b|\btimeout of \d+ ?ms exceeded/i.test(messageOf(error));

const isAbort = (error: unknown): boolean =>
  (error instanceof Error && error.name === "AbortError") || /^AbortError\b/.test(messageOf(error));

const isNetworkFault = (error: unknown): boolean => {
  if (typeof error === "object" && error !== null && "code" in error) {
    if (/^(?:ECONN|ENOTFOUND|EAI_|EPIPE|ETIMEDOUT|EHOST|ENET|UND_ERR)/.test(String(error.code))) return true;
  }
  return /fetch failed|failed to fetch|terminated|network connection lost|internal error; reference|socket hang up|other side closed|premature close|connection (?:reset|refused|closed)|cannot connect|without a finish reason/i.test(
    messageOf(error),
  );
};

/** Errors that repeat the model's words in their message. Nothing in that message may be interpreted. */
const unreadable = [JSONParseError, TypeValidationError, InvalidToolInputError, NoSuchToolError];
const senseless = [InvalidResponseDataError, EmptyResponseBodyError, NoContentGeneratedError, NoOutputGeneratedError];

const isUnreadable = (error: unknown): boolean => unreadable.some((kind) => kind.isInstance(error));
const isNonsense = (error: unknown): boolean =>
  isUnreadable(error) || senseless.some((kind) => kind.isInstance(error)) || error instanceof SyntaxError;

const unreachable = (retryAfter?: number): ModelFailure =>
  failure("model_unavailable", "The model's provider could not be reached, or the connection broke.", retryAfter);

const nonsense = (): ModelFailure =>
  failure("model_nonsense", "The model's provider answered what cannot be understood as an answer of a model.");

const stalled = (): ModelFailure => failure("model_stalled", "The model stopped answering in the middle.");

const passingStatuses = [408, 409, 425, 429];

/** Classifies a refusal by its HTTP status. */
const byStatus = (status: number, said: string, retryAfter?: number, body = ""): ModelFailure => {
  const quote = quoted(body === "" || body.startsWith("<") || body.includes(said) ? said : `${said} ${body}`);
  if (isContextOverflow(status, `${said} ${body}`)) {
    return failure("context_overflow", `The input is longer than the model takes (HTTP ${status}).${quote}`);
  }
  if (status === 401 || status === 403) {
    return failure("model_rejected", `The model's provider refused the key (HTTP ${status}): check the model's key.`);
  }
  if (status === 404) {
    return failure("model_rejected", `There is no such model or address (HTTP 404): check name and baseUrl.${quote}`);
  }
  if (status < 500 && !passingStatuses.includes(status)) {
    return failure("model_rejected", `The model's provider refused the request (HTTP ${status}).${quote}`);
  }
  const what = status === 429 ? "is asked too often" : "is not able to answer at the moment";
  return failure("model_unavailable", `The model's provider ${what} (HTTP ${status}).${quote}`, retryAfter);
};

const ofApiCall = (error: APICallError, now: number): ModelFailure => {
  const { statusCode: status } = error;
  const message = messageOf(error);
  const retryAfter = retryAfterMs(error.responseHeaders, now);
  if (status !== undefined && (status < 200 || status >= 300)) {
    return byStatus(status, message, retryAfter, error.responseBody);
  }
  if (isContextOverflow(status, message)) return byStatus(400, message);
  if (causes(error.cause).some(isTimeout)) return stalled();
  if (causes(error).some(isNonsense)) return nonsense();
  const isCut = status === undefined || causes(error.cause).some(isNetworkFault);
  return isCut ? unreachable(retryAfter) : nonsense();
};

/** An error that a provider sent inside its stream; it may carry a status, a type or a code. */
const ofStream = (error: StreamProviderError): ModelFailure => {
  const said = messageOf(error);
  const kind = `${error.type ?? ""} ${error.code ?? ""}`;
  if (isContextOverflow(error.statusCode, `${kind} ${said}`)) return byStatus(400, said, undefined, kind);
  if (error.statusCode !== undefined && error.statusCode >= 400) return byStatus(error.statusCode, said);
  return /invalid|not_found|unsupported|permission|authentication|content_filter/i.test(kind)
    ? failure("model_rejected", `The model's provider refused the request.${quoted(said)}`)
    : failure("model_unavailable", `The model's provider broke off with an error.${quoted(said)}`);
};

/** The provider refused the request before it generated anything, so nothing is billed. */
export const isRefusal = (error: unknown): boolean => APICallError.isInstance(error) && (error.statusCode ?? 0) >= 400;

/**
 * Sorts any end of a model's call: a thrown error, the error of an `error` part, or the reason of an `abort` part. A
 * watchdog's reason is a text that begins with `TimeoutError`. `now` is for Retry-After as a date.
 */
export const classifyFailure = (error: unknown, now: number = Date.now()): ModelFailure => {
  if (RetryError.isInstance(error)) return classifyFailure(error.lastError, now);
  const own = causes(error).find((each) => each instanceof ColloquyError);
  if (own) return failure(own.code, own.message, own.retryAfterMs);
  if (isUnreadable(error)) return nonsense();
  if (isTimeout(error)) return stalled();
  if (APICallError.isInstance(error)) return ofApiCall(error, now);
  if (LoadAPIKeyError.isInstance(error) || NoSuchModelError.isInstance(error)) {
    return failure("model_misconfigured", "The model cannot be set up: check its name and key in the agent's model.");
  }
  if (UnsupportedFunctionalityError.isInstance(error)) {
    const message = "The model's provider does not support what the agent needs: choose another model.";
    return failure("model_rejected", message);
  }
  if (StreamProviderError.isInstance(error)) return ofStream(error);
  if (causes(error).some(isNetworkFault)) return unreachable();
  if (causes(error).some(isNonsense)) return nonsense();
  if (isAbort(error)) return failure("model_unavailable", "The call to the model was broken off.");
  if (isContextOverflow(undefined, messageOf(error))) return byStatus(400, messageOf(error));
  return failure("model_unavailable", `The call to the model failed.${quoted(messageOf(error))}`);
};

/** The failure that an answer's finish reason stands for, if any. */
export const failureOfFinish = (finishReason: string): ModelFailure | undefined => {
  if (finishReason === "content-filter") {
    return failure("model_rejected", "The model's provider stopped the answer by its content filter.");
  }
  if (finishReason === "interrupted") return unreachable();
  if (finishReason !== "error") return undefined;
  return failure("model_unavailable", "The model's provider broke off with an error.");
};

/** A failure of a model's call, to be thrown on. Any other error is not the model's fault. */
export const modelError = (cause: unknown): ColloquyError => {
  const { code, message, retryAfterMs } = classifyFailure(cause);
  return new ColloquyError(code, message, { cause, retryAfterMs });
};
