import {
  createMcpHandler,
  McpServer,
  type RegisteredTool,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import * as z from "zod";

/**
 * An MCP server, by the protocol's own library, as a function from a request to its answer. It speaks the current
 * revision, or 2025-11-25 with sessions. Its tools may change while it runs.
 */
export type TestTool = {
  name: string;
  description?: string;
  annotations?: { readOnlyHint?: boolean; idempotentHint?: boolean };
  /** Answers a call with `{text?}`; an exception is a tool's error. */
  answer: (input: { text?: string | undefined }, signal: AbortSignal) => string | object | Promise<string | object>;
};

export type TestMcpServer = {
  fetch(request: Request): Promise<Response>;
  /** Every request so far: its JSON-RPC method, or HTTP method, and its headers. */
  requests: { method: string; headers: Headers }[];
  /** Replaces the tools, and tells whoever listens. */
  setTools(tools: TestTool[]): void;
  /** Forgets all sessions, as a restart does. */
  forgetSessions(): void;
};

const info = { name: "test", version: "1" };

const register = (server: McpServer, tools: TestTool[]): RegisteredTool[] =>
  tools.map(({ name, description, annotations, answer }) =>
    server.registerTool(
      name,
      {
        inputSchema: z.object({ text: z.string().optional() }),
        ...(description === undefined ? {} : { description }),
        ...(annotations === undefined ? {} : { annotations }),
      },
      async (input, context) => {
        const said = await answer(input, context.mcpReq.signal);
        if (typeof said === "string") return { content: [{ type: "text", text: said }] };
        return { content: [{ type: "text", text: JSON.stringify(said) }], structuredContent: { ...said } };
      },
    ),
  );

const create = (tools: TestTool[]): { server: McpServer; registered: RegisteredTool[] } => {
  const server = new McpServer(info, { capabilities: { tools: { listChanged: true } } });
  return { server, registered: register(server, tools) };
};

const noting = async (requests: TestMcpServer["requests"], request: Request): Promise<void> => {
  const sent = request.method === "POST" ? await request.clone().text() : "";
  const body = z.looseObject({ method: z.string() }).safeParse(sent === "" ? {} : JSON.parse(sent));
  requests.push({ method: body.success ? body.data.method : request.method, headers: request.headers });
};

const current = (first: TestTool[]): TestMcpServer => {
  let tools = first;
  const requests: TestMcpServer["requests"] = [];
  const handler = createMcpHandler(() => create(tools).server, { legacy: "reject" });
  return {
    requests,
    fetch: async (request) => {
      await noting(requests, request);
      return handler.fetch(request);
    },
    setTools: (next) => {
      tools = next;
      handler.notify.toolsChanged();
    },
    forgetSessions: () => undefined,
  };
};

type Session = { server: McpServer; registered: RegisteredTool[]; transport: WebStandardStreamableHTTPServerTransport };

const withSessions = (first: TestTool[]): TestMcpServer => {
  let tools = first;
  const requests: TestMcpServer["requests"] = [];
  const sessions = new Map<string, Session>();
  const begin = async (): Promise<WebStandardStreamableHTTPServerTransport> => {
    const { server, registered } = create(tools);
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: (id) => void sessions.set(id, { server, registered, transport }),
      onsessionclosed: (id) => void sessions.delete(id),
    });
    await server.connect(transport);
    return transport;
  };
  return {
    requests,
    fetch: async (request) => {
      await noting(requests, request);
      const id = request.headers.get("mcp-session-id");
      if (id === null) return (await begin()).handleRequest(request);
      const session = sessions.get(id);
      return session ? session.transport.handleRequest(request) : new Response("Session not found", { status: 404 });
    },
    setTools: (next) => {
      tools = next;
      for (const session of sessions.values()) {
        for (const old of session.registered) old.remove();
        session.registered = register(session.server, tools);
      }
    },
    forgetSessions: () => sessions.clear(),
  };
};

export const revisions = ["2026-07-28", "2025-11-25"] as const;
export type Revision = (typeof revisions)[number];

export const testMcpServer = (revision: Revision, tools: TestTool[]): TestMcpServer =>
  revision === "2026-07-28" ? current(tools) : withSessions(tools);
