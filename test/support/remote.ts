import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { Webhook } from "standardwebhooks";
import type { TestProject } from "vitest/node";
import * as z from "zod";
import { fakeEmbeddings } from "./fake-embeddings.ts";
import { answerPush } from "./push-service.ts";

/**
 * Somebody's server on loopback, for tools to ask: real HTTP, from inside workerd too. Vitest starts it beside the
 * actors' tests and hands its address to them as `inject("remote")`.
 *
 * `/answer?…` answers as its query says (`status`, `type`, `body`, `location`, `after` milliseconds, `chunks` of `body`);
 * `/openai/…/embeddings` answers fake vectors, `/echo` what came; `/huge` sends 50 MiB, `/never` bytes for ever and no end, `/silent` nothing; `/reset` takes
 * a request and cuts the connection, `/refuse` before it has read the body, `/half` in the middle of its answer;
 * `/twice` does so the first time, and answers 409 from then on, `/held` says nothing the first time, and then 409;
 * `/received` is the server of an endpoint: `PUT` sets how it answers and by which secret it verifies, by the public library;
 * `/push/…` is a push service of browsers: `push-service.ts`; `/requests?path=…` tells what came to a path, with what became of it.
 */
declare module "vitest" {
  interface ProvidedContext {
    remote: string;
  }
}

const Seen = z.object({
  method: z.string(),
  url: z.string(),
  headers: z.record(z.string(), z.unknown()),
  body: z.string(),
  /** Bytes that were written before the client hung up, or all. */
  written: z.int(),
  closed: z.boolean(),
  /** Of `/received`: what it answered. */
  status: z.int().optional(),
});
export const SeenRequests = z.array(Seen);
type Seen = z.infer<typeof Seen>;

const hugeBytes = 50 * 1024 * 1024;

const bodyOf = async (request: IncomingMessage): Promise<string> => {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) text += chunk;
  return text;
};

/** Writes `chunk` again and again, as fast as it is read, until `bytes` were written or the client is gone. */
const pour = (response: ServerResponse, chunk: Buffer, bytes: number, seen: Seen): void => {
  const more = (): void => {
    while (!response.destroyed && seen.written < bytes) {
      seen.written += chunk.length;
      if (!response.write(chunk)) return void response.once("drain", more);
    }
    if (!response.destroyed) response.end();
  };
  more();
};

const taken = new Set<string>();

const Receiving = z.object({
  secret: z.string().optional(),
  status: z.int().default(200),
  answer: z.string().default(""),
  delayMs: z.int().default(0),
});
const receiving = new Map<string, z.infer<typeof Receiving>>();

const isVerified = (secret: string, { body, headers }: Seen): boolean => {
  try {
    return new Webhook(secret).verify(body, headers as Record<string, string>) !== undefined;
  } catch {
    return false;
  }
};

const answers: Record<string, (response: ServerResponse, query: URLSearchParams, seen: Seen) => void> = {
  "/answer": (response, query, seen) => {
    const location = query.get("location");
    response.writeHead(Number(query.get("status") ?? 200), {
      ...(query.get("type") === "" ? {} : { "content-type": query.get("type") ?? "application/json" }),
      ...(location === null ? {} : { location }),
    });
    const parts = query.getAll("body");
    const send = (): void => {
      const next = parts.shift();
      if (next === undefined) return void response.end();
      seen.written += next.length;
      response.write(next, () => setImmediate(send));
    };
    send();
  },
  "/echo": (response, _, { method, url, headers, body }) => {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ method, url, headers, body }));
  },
  "/huge": (response, query, seen) => {
    response.writeHead(200, { "content-type": query.get("type") ?? "text/plain" });
    pour(response, Buffer.alloc(64 * 1024, "x"), hugeBytes, seen);
  },
  "/never": (response) => {
    response.writeHead(200, { "content-type": "text/plain" });
    const drip = setInterval(() => response.write("x"), 20);
    response.once("close", () => clearInterval(drip));
  },
  "/openai": (response, _, { body }) => {
    const { status, answer, headers } = fakeEmbeddings(JSON.parse(body));
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(JSON.stringify(answer));
  },
  "/received": (response, _, seen) => {
    if (seen.method === "PUT") receiving.set(seen.url, Receiving.parse(JSON.parse(seen.body)));
    const { secret, status, answer, delayMs } = receiving.get(seen.url) ?? { status: 503, answer: "", delayMs: 0 };
    seen.status = secret === undefined || seen.method === "PUT" || isVerified(secret, seen) ? status : 401;
    const came = seen.status;
    setTimeout(() => response.writeHead(came).end(answer), seen.method === "PUT" ? 0 : delayMs);
  },
  "/silent": () => undefined,
  "/reset": (response) => void response.socket?.resetAndDestroy(),
  "/twice": (response, _, { url }) => {
    if (taken.has(url)) return void response.writeHead(409).end();
    taken.add(url);
    response.socket?.resetAndDestroy();
  },
  "/held": (response, _, { url }) => {
    if (taken.has(url)) return void response.writeHead(409).end();
    taken.add(url);
  },
  "/half": (response) => {
    response.writeHead(200, { "content-type": "application/json", "content-length": "1000" });
    response.write('{"paid":', () => response.socket?.destroy());
  },
};

export const startRemote = async (): Promise<{ url: string; stop(): Promise<void> }> => {
  const requests: Seen[] = [];
  const server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://remote.test");
    if (pathname === "/requests") {
      const wanted = requests.filter(({ url }) => url.startsWith(searchParams.get("path") ?? "/"));
      response.writeHead(200, { "content-type": "application/json" });
      return void response.end(JSON.stringify(wanted));
    }
    if (pathname.startsWith("/push/")) return answerPush(pathname, request, response);
    if (pathname.startsWith("/refuse")) return void request.socket.resetAndDestroy();
    const { method = "GET", url = "/", headers } = request;
    const seen: Seen = { method, url, headers, body: await bodyOf(request), written: 0, closed: false };
    requests.push(seen);
    response.once("close", () => {
      seen.closed = true;
    });
    const [, kind = ""] = /^(\/[a-z]+)/.exec(pathname) ?? [];
    const answer = answers[kind];
    if (answer) return answer(response, searchParams, seen);
    response.writeHead(404).end();
  });
  // A connection that is closed for idleness just as it is used again would be a failure of chance.
  server.keepAliveTimeout = 10 * 60_000;
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  server.unref();
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the remote server has no port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    stop: () =>
      new Promise((stopped) => {
        server.close(() => stopped());
        server.closeAllConnections();
      }),
  };
};

/** Vitest's global setup of the actors' tests. */
export default async ({ provide }: TestProject): Promise<() => Promise<void>> => {
  const remote = await startRemote();
  provide("remote", remote.url);
  return remote.stop;
};
