import { ColloquyError } from "../../../shared/errors.ts";
import { checkOutgoing } from "../../../shared/outgoing.ts";
import { maxMcpAnswerBytes } from "../../bounds.ts";

/**
 * The only way out of an MCP connection (S3): to the configured address alone, with its headers, following nothing.
 * An answer is cut off past `maxMcpAnswerBytes`, whether it is one piece or a stream that never ends.
 */
export type Fetch = (request: string | URL, init?: RequestInit) => Promise<Response>;

export type GuardInput = {
  /** The server's configured address. */
  url: string;
  /** With their secrets in them. They win over what the protocol says, except for its own. */
  headers: Record<string, string>;
  allowLoopback: boolean;
  fetch: Fetch;
  /** An answer's body broke off: whoever waits for it waits in vain. */
  broke: (error: ColloquyError) => void;
};

/** The configured address, or `tool_misconfigured` with why it may not be asked. */
export const checkedAddress = (url: string, allowLoopback: boolean): URL => {
  const verdict = checkOutgoing(url, { allowLoopback });
  if (verdict.ok) return verdict.url;
  throw new ColloquyError("tool_misconfigured", `the url may not be asked: ${verdict.reason}`);
};

const refuseRedirect = (response: Response): Response => {
  if (response.status !== 0 && (response.status < 300 || response.status >= 400)) return response;
  throw new ColloquyError(
    "tool_misconfigured",
    "it redirects elsewhere, which is not followed: set url to the final address",
  );
};

/** Statuses whose answers have no body. */
const bodiless = new Set([101, 204, 205, 304]);

const bounded = (response: Response, broke: GuardInput["broke"]): Response => {
  if (!response.body || bodiless.has(response.status)) return response;
  let bytes = 0;
  const counter = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      bytes += chunk.byteLength;
      if (bytes > maxMcpAnswerBytes) {
        throw new ColloquyError("tool_failed", `it answered more than ${maxMcpAnswerBytes} bytes (maxMcpAnswerBytes)`);
      }
      controller.enqueue(chunk);
    },
  });
  response.body.pipeTo(counter.writable).catch((error: unknown) => {
    broke(
      error instanceof ColloquyError
        ? error
        : new ColloquyError("unavailable", "the connection broke before the answer was whole", { cause: error }),
    );
  });
  const { status, statusText, headers } = response;
  return new Response(counter.readable, { status, statusText, headers });
};

export const guardedFetch = (guard: GuardInput): Fetch => {
  const address = checkedAddress(guard.url, guard.allowLoopback).href;
  return async (request, init = {}) => {
    if (new URL(request).href !== address) {
      throw new ColloquyError("tool_failed", "only the configured url is asked");
    }
    const headers = new Headers(guard.headers);
    for (const [name, value] of new Headers(init.headers)) headers.set(name, value);
    const response = await guard.fetch(address, { ...init, headers, redirect: "manual" }).catch((error: unknown) => {
      init.signal?.throwIfAborted();
      throw new ColloquyError("unavailable", "it cannot be reached", { cause: error });
    });
    return bounded(refuseRedirect(response), guard.broke);
  };
};
