import type * as z from "zod";
import { ColloquyError, type ErrorCode, Problem } from "../shared/errors.ts";
import type { Credentials } from "./credentials.ts";

const requestTimeoutMs = 20_000;

type Query = Record<string, string | number | undefined>;

export type HttpRequest<Schema extends z.ZodType> = {
  method?: "GET" | "POST" | "PATCH" | "DELETE";
  path: string;
  query?: Query;
  body?: unknown;
  /** The server does the request once for each key. */
  idempotencyKey?: string;
  answer: Schema;
};

/** A whole response: one that breaks off in its body counts as no response. */
type Answer = { status: number; ok: boolean; text: string };

export type Http = <Schema extends z.ZodType>(request: HttpRequest<Schema>) => Promise<z.infer<Schema>>;

const addressOf = (baseUrl: string, path: string, query: Query = {}): string => {
  const url = new URL(path, baseUrl);
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) url.searchParams.set(name, String(value));
  }
  return url.href;
};

/** The code for a refusal that did not come from Colloquy itself, but from a proxy or a captive portal. */
const codeOfStatus = (status: number): ErrorCode => {
  if (status === 401) return "unauthorized";
  if (status === 403) return "forbidden";
  if (status === 404) return "not_found";
  if (status === 429) return "rate_limited";
  return status >= 500 ? "unavailable" : "invalid_request";
};

const jsonOf = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // an empty body, or one that is not Colloquy's: the schemas refuse it
  }
};

const refusalOf = ({ status, text }: Answer): ColloquyError => {
  const parsed = Problem.safeParse(jsonOf(text));
  if (!parsed.success) return new ColloquyError(codeOfStatus(status), `The server answered ${status}.`);
  const { code, detail, issues } = parsed.data;
  return new ColloquyError(code, detail, issues ? { issues } : {});
};

/** The message of a rejection, for display. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/**
 * Sends requests with the credentials' token, else with the browser's session as `entityId`, and parses each answer with its schema. Throws a refusal as the
 * `ColloquyError` of its problem document, and `unavailable` when the server cannot be reached. An expired token is
 * refreshed once, if possible.
 */
export const createHttp = (baseUrl: string, credentials: Credentials, entityId?: string): Http => {
  const once = async (request: HttpRequest<z.ZodType>, token: string): Promise<Answer> => {
    const headers = new Headers();
    if (token !== "") headers.set("authorization", `Bearer ${token}`);
    // The browser's session may be another person's by now, who signed in in another tab.
    else if (entityId !== undefined) headers.set("x-entity-id", entityId);
    if (request.body !== undefined) headers.set("content-type", "application/json");
    if (request.idempotencyKey) headers.set("idempotency-key", request.idempotencyKey);
    try {
      const response = await fetch(addressOf(baseUrl, request.path, request.query), {
        method: request.method ?? "GET",
        headers,
        signal: AbortSignal.timeout(requestTimeoutMs),
        ...(request.body === undefined ? {} : { body: JSON.stringify(request.body) }),
      });
      return { status: response.status, ok: response.ok, text: await response.text() };
    } catch (cause) {
      throw new ColloquyError("unavailable", "Colloquy cannot be reached. Check the connection and try again.", {
        cause,
      });
    }
  };

  return async (request) => {
    const token = credentials.token();
    let answer = await once(request, token);
    if (answer.status === 401) {
      const fresh = await credentials.refresh(token);
      if (fresh !== null) answer = await once(request, fresh);
    }
    if (!answer.ok) throw refusalOf(answer);
    const parsed = request.answer.safeParse(jsonOf(answer.text));
    if (parsed.success) return parsed.data;
    throw new ColloquyError("internal", `The server's answer to ${request.path} cannot be understood.`, {
      cause: parsed.error,
    });
  };
};
