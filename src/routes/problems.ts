import type { Context } from "hono";
import type * as z from "zod";
import { rateWindowSeconds } from "../auth/rates.ts";
import {
  ColloquyError,
  type ErrorCode,
  errorCodes,
  errorKind,
  type Issue,
  isLacking,
  type Problem,
  problem,
} from "../shared/errors.ts";
import { issuesOf } from "../shared/issues.ts";
import { log } from "../shared/log.ts";
import { meter } from "../shared/meter.ts";

/** The one place where refusals and failures become answers: RFC 9457 problem documents. */
export const problemResponse = (document: Problem, headers: Record<string, string> = {}): Response => {
  meter.count("errors", { code: document.code });
  return new Response(JSON.stringify(document), {
    status: document.status,
    headers: {
      "content-type": "application/problem+json",
      ...(document.status === 401 ? { "www-authenticate": 'Bearer realm="colloquy"' } : {}),
      ...headers,
    },
  });
};

const mostIssues = 20;

const issuesUnder = (error: z.ZodError, under: PropertyKey[]): Issue[] =>
  issuesOf(error)
    .slice(0, mostIssues)
    .map(({ path, message }) => ({ path: [...under, ...(path === "" ? [] : [path])].map(String).join("."), message }));

/** A schema's own code for what is wrong (`params: {code}` of a refinement), where it names one. */
const namedCode = ({ issues }: z.ZodError): ErrorCode | undefined => {
  const named = issues.flatMap((issue): unknown[] => (issue.code === "custom" ? [issue.params?.code] : []));
  return errorCodes.find((code) => named.includes(code));
};

/** A schema's issues as the refusal that they stand for. `under` is the path of the value. */
export const misshapen = (error: z.ZodError, where: string, under: PropertyKey[] = []): ColloquyError => {
  const issues = issuesUnder(error, under);
  const [first] = issues;
  const detail = first
    ? `In the ${where}: ${first.path || "it"} ${first.message}.`
    : `The ${where} is not as expected.`;
  return new ColloquyError(namedCode(error) ?? "invalid_request", detail, { issues });
};

/** Whether an actor could not be reached, as the platform marks such rejections. */
const isUnreachable = (error: unknown): boolean =>
  error instanceof Error &&
  (["retryable", "overloaded", "durableObjectReset"] as const).some(
    (mark) => Object.getOwnPropertyDescriptor(error, mark)?.value === true,
  );

const problemOf = (error: unknown, context: Context): Problem => {
  if (error instanceof ColloquyError) return problem(error.code, error.message, error.issues, error.retryAfterMs);
  log.error("request.failed", error, { method: context.req.method, path: context.req.path });
  return isUnreachable(error)
    ? problem("unavailable", "It could not be reached just now: try again.")
    : isLacking(error)
      ? problem("unavailable", "A new release is going out, and this part has not come to it: try again in a minute.")
      : problem("internal", "Something went wrong here. It was logged; trying again may help.");
};

/** When to try again what could not be done just now, in seconds. */
const retrySeconds: Partial<Record<ErrorCode, number>> = {
  rate_limited: rateWindowSeconds,
  idempotency_in_progress: 5,
};
const defaultRetrySeconds = 30;

export const answerError = (error: unknown, context: Context): Response => {
  const document = problemOf(error, context);
  const seconds = document.retryAfter ?? retrySeconds[document.code] ?? defaultRetrySeconds;
  return problemResponse(document, errorKind(document.code).retryable ? { "retry-after": String(seconds) } : {});
};
