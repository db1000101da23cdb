import type { McpServer } from "../../../protocol/tool.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { loadedOnce } from "../../../shared/loaded-once.ts";
import { settledWithin, unlessAborted } from "../../../shared/timeouts.ts";
import { maxMcpPages, mcpCloseMs, mcpListTimeoutMs, mcpProbeTimeoutMs } from "../../bounds.ts";
import type { McpTool } from "../../records.ts";
import type { outsideOf } from "../configured/configured-tool.ts";
import { createRedactor } from "../configured/redact.ts";
import { failureOf, mayBeDone, statusOf } from "./failure-of.ts";
import { guardedFetch, serverHeaders } from "./guarded-fetch.ts";
import { resultValue } from "./result-value.ts";

/**
 * Connections to MCP servers, in memory alone. Only this file knows the protocol's library. It is evaluated when the first
 * connection of an isolate is opened. The servers' secrets are taken out of all that they say (S3).
 *
 * Invariants
 * 1. The protocol's revision is the newest that both know: 2026-07-28, or what the server's `initialize` answers.
 * 2. Nothing is offered to the server: no elicitation, no sampling, no roots.
 * 3. A connection that broke is of no use any more; a call that waited for it fails at once.
 * 4. A server has one connection. It is opened when it is first needed and shared while it is used. It closes
 *    `mcpIdleMs` after its last call, or at once if only a list was fetched. While it is open, the object cannot sleep.
 * 5. An object that is evicted or crashes loses them, and needs none of them: the next use opens a new one.
 * 6. One whose server was configured anew, or that failed, is used by nobody who comes after.
 */
type McpConnection = Awaited<ReturnType<typeof openConnection>>;

type ConnectInput = ReturnType<typeof outsideOf> & {
  server: McpServer;
  /** The server is known to be older than 2026-07-28: it is not asked for it first. */
  legacy: boolean;
  /** The server's list of tools has changed. */
  listChanged: () => void;
};

/** Values of the input may have to go into headers, as the schema says. */
type McpCall = Pick<McpTool, "tool" | "inputSchema"> & {
  input: Record<string, unknown>;
  signal: AbortSignal;
  /** Sent with this call alone. */
  headers: Record<string, string>;
};

const mcpClient = loadedOnce(() => import("@modelcontextprotocol/client"));

/** The library's validator would run a server's patterns in the native engine. A call names no schema of its answer. */
const noValidator = {
  getValidator: (): never => {
    throw new Error("no answer is validated");
  },
};

/** For the rest of an answer that has arrived to be read, after its connection broke. */
const graceMs = 100;

/** Throws `ColloquyError`s only, as `listTools` does. */
const openConnection = async ({ server, unsealSecret, legacy, listChanged, ...network }: ConnectInput) => {
  const use = { kind: "mcp", name: server.name, url: server.url } as const;
  const { headers, secrets } = await serverHeaders(server, (name) => unsealSecret(name, use));
  const redactor = createRedactor(secrets);
  const told = (error: unknown): ColloquyError => {
    const { code, message } = failureOf(error, redactor);
    return new ColloquyError(code, redactor.text(message), { cause: error });
  };
  const broken = Promise.withResolvers<never>();
  broken.promise.catch(() => undefined);
  const broke = (error: ColloquyError): void => void setTimeout(() => broken.reject(error), graceMs);
  const fetch = guardedFetch({ ...network, url: server.url, headers, broke });
  /** All of it within `mcpListTimeoutMs`. Leaves no timer behind: the object could not sleep beside it. */
  const inTime = async <T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> => {
    const late = new AbortController();
    const tooLate = new ColloquyError("tool_timeout", "it did not answer in time");
    const timer = setTimeout(() => late.abort(tooLate), mcpListTimeoutMs);
    try {
      // Not all that the library asks heeds the signal.
      return await Promise.race([unlessAborted(late.signal, work(late.signal)), broken.promise]);
    } catch (error) {
      throw late.signal.aborted ? tooLate : told(error);
    } finally {
      clearTimeout(timer);
    }
  };

  const { Client, StreamableHTTPClientTransport } = await mcpClient();
  const client = new Client(
    { name: "colloquy", version: "1" },
    {
      capabilities: {},
      versionNegotiation: { mode: legacy ? "legacy" : "auto" },
      inputRequired: { autoFulfill: false },
      listMaxPages: maxMcpPages,
      jsonSchemaValidator: noValidator,
      listChanged: { tools: { autoRefresh: false, onChanged: listChanged } },
    },
  );
  const transport = new StreamableHTTPClientTransport(new URL(server.url), {
    fetch,
    reconnectionOptions: {
      initialReconnectionDelay: 500,
      maxReconnectionDelay: 2000,
      reconnectionDelayGrowFactor: 2,
      maxRetries: 1,
    },
  });
  // The fault of one message is told to the call that waits for it. Other faults are noise.
  client.onerror = () => undefined;
  /** Ends it, and the server's session if it gave one, whether or not the server answers to that. Never throws. */
  const close = async (): Promise<void> => {
    if (transport.sessionId !== undefined) await settledWithin(mcpCloseMs, transport.terminateSession());
    await settledWithin(mcpCloseMs, client.close());
  };
  try {
    await inTime((signal) => client.connect(transport, { timeout: mcpProbeTimeoutMs, signal }));
  } catch (error) {
    await close();
    throw error;
  }
  return {
    /** The revision of the protocol that is spoken. */
    protocolVersion: client.getNegotiatedProtocolVersion() ?? null,
    close,

    /** All that the server lists, as it lists it. */
    listTools: async (): Promise<unknown[]> => {
      const options = { timeout: mcpListTimeoutMs, cacheMode: "bypass" } as const;
      const { tools } = await inTime((signal) => client.listTools(undefined, { ...options, signal }));
      const told = redactor.json(tools);
      if (Array.isArray(told)) return told;
      throw new ColloquyError("tool_failed", "its list of tools is too long to be looked through (maxRedactionSteps)");
    },

    /** The server's answer, or why there is none. Aborting the signal tells the server. */
    call: async ({ tool, input, inputSchema, signal, headers: own }: McpCall) => {
      const toolDefinition = { name: tool, inputSchema: { ...inputSchema, type: "object" as const } };
      const limits = { timeout: server.timeoutMs, maxTotalTimeout: server.timeoutMs, signal };
      try {
        const answer = client.callTool({ name: tool, arguments: input }, { ...limits, toolDefinition, headers: own });
        return { answer: resultValue(await Promise.race([answer, broken.promise]), redactor) };
      } catch (error) {
        const failure = told(error);
        const status = transport.sessionId === undefined ? undefined : statusOf(error);
        // 404 says that the server has forgotten the session, and many servers say it with 400.
        const isLost = status === 404 || (status === 400 && error instanceof Error && /session/i.test(error.message));
        return { failure, mayBeDone: mayBeDone(error), isLost };
      }
    },
  };
};

type Session = {
  name: string;
  address: string;
  connection: Promise<McpConnection>;
  users: number;
  keepMs: number;
  idle?: ReturnType<typeof setTimeout>;
};

/** Another address or other headers are another server. */
export const addressOf = ({ url, headers }: McpServer): string => JSON.stringify([url, headers]);

/** `connecting`: how a server is reached. */
export const createSessions = (connecting: (server: McpServer) => ConnectInput) => {
  const open = new Map<string, Session>();

  /** Nobody uses it from now on; it is closed when those who do are done. */
  const retire = (session: Session): void => {
    if (open.get(session.name) === session) open.delete(session.name);
    clearTimeout(session.idle);
    if (session.users > 0) return;
    session.connection.then(
      (opened) => opened.close(),
      () => undefined,
    );
  };

  const sessionOf = (server: McpServer): Session => {
    const { name } = server;
    const address = addressOf(server);
    const known = open.get(name);
    if (known?.address === address) return known;
    if (known) retire(known);
    const session: Session = { name, address, connection: openConnection(connecting(server)), users: 0, keepMs: 0 };
    session.connection.catch(() => retire(session));
    open.set(name, session);
    return session;
  };

  return {
    /**
     * Hands `work` the server's connection, which is kept for `keepMs` after that. What `work` throws is thrown on, and
     * so is why a connection cannot be opened.
     */
    async use<T>(server: McpServer, keepMs: number, work: (connection: McpConnection) => Promise<T>): Promise<T> {
      const session = sessionOf(server);
      session.users += 1;
      session.keepMs = Math.max(session.keepMs, keepMs);
      clearTimeout(session.idle);
      try {
        return await work(await session.connection);
      } finally {
        session.users -= 1;
        const isKept = session.keepMs > 0 && open.get(server.name) === session;
        if (session.users === 0 && isKept) session.idle = setTimeout(() => retire(session), session.keepMs);
        else if (session.users === 0) retire(session);
      }
    },

    /** Drops the session with this server, or all. */
    drop(name?: string): void {
      for (const session of [...open.values()]) if (session.name === (name ?? session.name)) retire(session);
    },
  };
};
