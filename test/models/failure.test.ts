import {
  APICallError,
  InvalidResponseDataError,
  JSONParseError,
  LoadAPIKeyError,
  NoSuchToolError,
  RetryError,
  StreamProviderError,
} from "ai";
import { describe, expect, test } from "vitest";
import { classifyFailure, failureOfFinish } from "../../src/models/failure.ts";
import { ColloquyError } from "../../src/shared/errors.ts";

const now = Date.parse("2026-11-21T12:00:00Z");

const apiError = (
  statusCode: number | undefined,
  message = "no",
  extra: { responseHeaders?: Record<string, string>; responseBody?: string; cause?: unknown } = {},
): APICallError =>
  new APICallError({
    message,
    url: "https://x.test/v1",
    requestBodyValues: {},
    ...(statusCode === undefined ? {} : { statusCode }),
    ...extra,
  });

const parseError = (text: string): JSONParseError => new JSONParseError({ text, cause: new SyntaxError("bad") });

describe("classifyFailure", () => {
  test.each([
    [400, "model_rejected", true],
    [401, "model_rejected", true],
    [402, "model_rejected", true],
    [403, "model_rejected", true],
    [404, "model_rejected", true],
    [413, "context_overflow", true],
    [422, "model_rejected", true],
    [408, "model_unavailable", false],
    [429, "model_unavailable", false],
    [500, "model_unavailable", false],
    [503, "model_unavailable", false],
    [529, "model_unavailable", false],
  ])("[R4] a refusal with HTTP %i is %s", (status, code, terminal) => {
    expect(classifyFailure(apiError(status), now)).toMatchObject({ code, terminal });
  });

  test.each([
    ["This model's maximum context length is 8192 tokens.", 400],
    ["prompt is too long: 210000 tokens > 200000 maximum", 400],
    ["input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000", 400],
    ["The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", 400],
    ["Please reduce the length of the messages or completion.", 400],
    ["Prompt contains 40000 tokens, too large for model with 32768 maximum context length", 400],
    ["the request exceeds the available context size. try increasing the context size", 500],
    ["The decoder prompt (length 9000) is longer than the maximum model length of 8192.", 400],
    [
      "5021: The estimated number of input and maximum output tokens (9000) exceeded this model context window limit (8192).",
      400,
    ],
    ["`inputs` tokens + `max_new_tokens` must be <= 4096", 422],
    ["This model's maximum prompt length is 131072 but the request contains 140000 tokens.", 400],
    ["Input is too long for requested model.", 400],
  ])("[R4] an overflow is known by its words: $0", (message, status) => {
    expect(classifyFailure(apiError(status, message), now).code).toBe("context_overflow");
  });

  test("[R4] an overflow is known by its code in the body", () => {
    const error = apiError(400, "Bad Request", { responseBody: '{"error":{"code":"context_length_exceeded"}}' });
    expect(classifyFailure(error, now).code).toBe("context_overflow");
  });

  test.each([
    [{ "retry-after": "7" }, 7000],
    [{ "Retry-After": "0.5" }, 500],
    [{ "retry-after-ms": "250", "retry-after": "9" }, 250],
    [{ "retry-after": "Sat, 21 Nov 2026 12:00:30 GMT" }, 30_000],
    [{ "retry-after": "Sat, 21 Nov 2026 11:00:00 GMT" }, 0],
    [{ "retry-after": "999999999" }, 86_400_000],
    [{ "retry-after": "soon" }, undefined],
    [{}, undefined],
  ])("[R4] Retry-After is honoured: %o", (responseHeaders, expected) => {
    expect(classifyFailure(apiError(429, "slow down", { responseHeaders }), now).retryAfterMs).toBe(expected);
  });

  test.each([
    ["a refused connection", apiError(undefined, "Cannot connect to API: other side closed")],
    ["a lost one", new Error("Network connection lost.")],
    ["a reset", Object.assign(new Error("read"), { code: "ECONNRESET" })],
    ["a cut stream", apiError(200, "Failed to process successful response", { cause: new TypeError("terminated") })],
    [
      "a stream without its end",
      new InvalidResponseDataError({ data: {}, message: "Response stream ended without a finish reason." }),
    ],
    ["an abort", new DOMException("aborted", "AbortError")],
    ["a retry error's last", new RetryError({ message: "x", reason: "maxRetriesExceeded", errors: [apiError(503)] })],
    ["an error whose message is no text", { message: { toString: 1 } }],
    ["an overload in the stream", new StreamProviderError({ message: "Overloaded", type: "overloaded_error" })],
    ["an error of unknown kind", new Error("hm")],
    ["something thrown", "what"],
    ["nothing thrown", undefined],
  ])("[R4] %s is a passing fault", (_, error) => {
    expect(classifyFailure(error, now)).toMatchObject({ code: "model_unavailable", terminal: false });
  });

  test.each([
    ["the watchdog's error", new DOMException("Chunk timeout of 60000ms exceeded", "TimeoutError")],
    ["an abort part's reason", "TimeoutError: First chunk timeout of 60000ms exceeded"],
    ["a call that it broke off", apiError(200, "Failed", { cause: new DOMException("late", "TimeoutError") })],
  ])("[R4] %s is a stall", (_, error) => {
    expect(classifyFailure(error, now)).toMatchObject({ code: "model_stalled", terminal: false });
  });

  test.each([
    ["JSON that breaks off", parseError('{"a": terminated TimeoutError')],
    ["a body that is not JSON", apiError(200, "Invalid JSON response", { cause: parseError("<html>") })],
    ["a call of an unknown tool", new NoSuchToolError({ toolName: "fetch failed" })],
  ])("[R4] [S4] %s is nonsense", (_, error) => {
    expect(classifyFailure(error, now)).toMatchObject({ code: "model_nonsense", terminal: true });
  });

  test("a missing key and Colloquy's own refusals keep their code and remedy", () => {
    expect(classifyFailure(new LoadAPIKeyError({ message: "none" })).code).toBe("model_misconfigured");
    expect(classifyFailure(new ColloquyError("model_misconfigured", "Set it."))).toEqual({
      code: "model_misconfigured",
      terminal: true,
      message: "Set it.",
    });
  });

  test.each([
    "sk-abcdefghijklmnop",
    "gsk_abcdefghijklmnop",
    "Bearer abc.def-ghi",
    "AIzaSyA1234567890abcdef",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sig",
    "0123456789abcdef0123456789abcdef",
    "https://user:pass@host/v1",
  ])("[S3] what looks like a key is in no message: $0", (key) => {
    for (const status of [400, 401, 404, 429, 500]) {
      const { message } = classifyFailure(apiError(status, `You sent ${key} to us`), now);
      expect(message).not.toContain(key);
    }
  });

  test("the provider's own words are kept, on one line and cut", () => {
    const { message } = classifyFailure(apiError(400, `temperature\nmust be below 2 ${"x ".repeat(400)}`), now);
    expect(message).toContain('It said: "temperature must be below 2');
    expect(message.length).toBeLessThan(450);
  });
});

test.each([
  ["content-filter", "model_rejected"],
  ["interrupted", "model_unavailable"],
  ["error", "model_unavailable"],
  ["stop", undefined],
  ["tool-calls", undefined],
  ["length", undefined],
])("[R4] an answer that ends by %s: %s", (reason, code) => {
  expect(failureOfFinish(reason)?.code).toBe(code);
});

test.each(["-a", "eyJ-", "exceed", "context size ", "//a", " ", "bearer "])(
  "[C13] an error that says a word again and again is read in bounded time: %j",
  (said) => {
    const [refused, streamed] = [16_384, 512 * 1024].map((length) => `${said.repeat(length / said.length)}x`);
    const from = performance.now();
    classifyFailure(apiError(400, "no", { responseBody: refused ?? "" }));
    classifyFailure(new Error(streamed));
    expect(performance.now() - from).toBeLessThan(500);
  },
);

test("[S3] a key that an error is cut in is not shown by half", () => {
  const key = "a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6";
  for (let at = 1950; at <= 2000; at += 1) {
    const { message } = classifyFailure(new Error(`${" ".repeat(at)}${key}`));
    expect(message).not.toMatch(/a1b2/);
  }
});
