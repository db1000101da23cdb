import { createServer, type IncomingMessage, type Server } from "node:http";
import { Readable } from "node:stream";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import { createServer as createEverything } from "@modelcontextprotocol/server-everything/dist/server/index.js";

/** Something that answers requests, on loopback over real HTTP, which can be killed and started again. */
export type McpListener = {
  url: string;
  /** Every connection is cut, nothing listens any more. */
  kill(): Promise<void>;
  start(): Promise<void>;
};

type Answer = (request: Request) => Promise<Response>;

const requestOf = (incoming: IncomingMessage, url: string, signal: AbortSignal): Request => {
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers)) headers.set(name, String(value));
  const body = incoming.method === "POST" ? { body: Readable.toWeb(incoming) as ReadableStream, duplex: "half" } : {};
  return new Request(new URL(incoming.url ?? "/", url), { method: incoming.method ?? "GET", headers, signal, ...body });
};

export const listenForMcp = async (answer: Answer): Promise<McpListener> => {
  let port = 0;
  let server: Server;
  const listener: McpListener = {
    url: "",
    start: async () => {
      server = createServer(async (incoming, outgoing) => {
        const gone = new AbortController();
        outgoing.on("close", () => gone.abort());
        const { status, headers, body } = await answer(requestOf(incoming, listener.url, gone.signal));
        outgoing.writeHead(status, Object.fromEntries(headers));
        outgoing.flushHeaders();
        if (!body) return outgoing.end();
        const reader = body.getReader();
        gone.signal.addEventListener("abort", () => void reader.cancel().catch(() => undefined));
        for (let part = await reader.read(); !part.done; part = await reader.read()) outgoing.write(part.value);
        return outgoing.end();
      });
      await new Promise<void>((listening) => server.listen(port, "127.0.0.1", listening));
      server.unref();
      const address = server.address();
      if (address === null || typeof address === "string") throw new Error("the MCP server has no port");
      port = address.port;
      listener.url = `http://127.0.0.1:${port}/mcp`;
    },
    kill: () =>
      new Promise((closed) => {
        server.close(() => closed());
        server.closeAllConnections();
      }),
  };
  await listener.start();
  return listener;
};

/** The protocol's reference server, of 2025-11-25, with sessions. */
export const everything = (): { answer: Answer; forgetSessions(): void } => {
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>();
  return {
    forgetSessions: () => sessions.clear(),
    answer: async (request) => {
      const id = request.headers.get("mcp-session-id");
      if (id !== null) {
        const known = sessions.get(id);
        if (known) return known.handleRequest(request);
        return Response.json({ error: "Bad Request: No valid session ID provided" }, { status: 400 });
      }
      const { server, cleanup } = createEverything();
      const transport = new WebStandardStreamableHTTPServerTransport({
        sessionIdGenerator: () => crypto.randomUUID(),
        onsessioninitialized: (started) => void sessions.set(started, transport),
        onsessionclosed: (ended) => {
          sessions.delete(ended);
          cleanup(ended);
        },
      });
      await server.connect(transport);
      return transport.handleRequest(request);
    },
  };
};
