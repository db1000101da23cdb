import type { McpServer } from "../../../protocol/tool.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { checkOutgoing } from "../../../shared/outgoing.ts";
import { secretNames } from "../../../shared/secret-places.ts";
import { maxMcpAnswerBytes } from "../../bounds.ts";
import { type Part, partsOf, unsealSecrets } from "../configured/request-template.ts";

/**
 * The only way out of an MCP connection (S3): to the configured address alone, with its headers, following nothing.
 * An answer is cut off past `maxMcpAnswerBytes`, whether it is one piece or a stream that never ends.
 */
type Fetch = (request: string | URL, init?: RequestInit) => Promise<Response>;

type GuardInput = {
  /** The server's configured address. */
  url: string;
  /** With their secrets in them. They win over what the protocol says, except for its own. */
  headers: Record<string, string>;
  allowLoopback: boolean;
  fetch: Fetch;
  /** An answer's body broke off: whoever waits for it waits in vain. */
  broke: (error: ColloquyError) => void;
};

const isRedirect = ({ status }: Response): boolean => status === 0 || (status >= 300 && status < 400);

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

/** Throws `tool_misconfigured` where the configured address may not be asked. */
export const guardedFetch = (guard: GuardInput): Fetch => {
  const verdict = checkOutgoing(guard.url, guard);
  if (!verdict.ok) throw new ColloquyError("tool_misconfigured", `the url may not be asked: ${verdict.reason}`);
  const { href } = verdict.url;
  return async (request, init = {}) => {
    if (new URL(request).href !== href) throw new ColloquyError("tool_failed", "only the configured url is asked");
    const headers = new Headers(guard.headers);
    for (const [name, value] of new Headers(init.headers)) headers.set(name, value);
    const response = await guard.fetch(href, { ...init, headers, redirect: "manual" }).catch((error: unknown) => {
      init.signal?.throwIfAborted();
      throw new ColloquyError("unavailable", "it cannot be reached", { cause: error });
    });
    // A call that its own caller ends breaks nobody else's answer.
    const broke: GuardInput["broke"] = (error) => init.signal?.aborted || guard.broke(error);
    if (!isRedirect(response)) return bounded(response, broke);
    const detail = "it redirects elsewhere, which is not followed: set url to the final address";
    throw new ColloquyError("tool_misconfigured", detail);
  };
};

const sendable = /^[\t\x20-\x7e]*$/;

/**
 * A server's headers with its secrets in them, and these: nothing that the server answers may show them. Throws
 * `tool_misconfigured` for what cannot be sent.
 */
export const serverHeaders = async (
  { headers }: Pick<McpServer, "headers">,
  unsealSecret: (name: string) => Promise<string | undefined>,
): Promise<{ headers: Record<string, string>; secrets: string[] }> => {
  const secrets = await unsealSecrets(secretNames(headers), unsealSecret);
  const filled = Object.entries(headers).map(([header, template]) => {
    const misconfigured = (reason: string) => new ColloquyError("tool_misconfigured", `headers.${header} ${reason}`);
    const rendered = (part: Part): string => {
      if (part.kind === "text") return part.text;
      if (part.kind === "slip") throw misconfigured(part.message);
      if (part.kind === "input") throw misconfigured("cannot hold {{input.…}}: it is sent with every request");
      const value = secrets.get(part.name);
      if (value !== undefined) return value;
      const remedy = `set it with PUT /v1/workspace/secrets/${part.name}`;
      throw misconfigured(`names the secret "${part.name}", and the workspace has no such secret: ${remedy}`);
    };
    const value = partsOf(template).map(rendered).join("");
    if (!sendable.test(value)) throw misconfigured("would hold what a header cannot: use printable ASCII");
    return [header, value];
  });
  return { headers: Object.fromEntries(filled), secrets: [...secrets.values()] };
};
