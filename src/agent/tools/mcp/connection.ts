import { ColloquyError } from "../../../shared/errors.ts";
import { settledWithin, unlessAborted } from "../../../shared/timeouts.ts";
import { maxMcpPages, mcpCloseMs, mcpListTimeoutMs, mcpProbeTimeoutMs } from "../../bounds.ts";
import type { McpTool } from "../../records.ts";
import { failureOf, statusOf } from "./failure-of.ts";
import { type GuardInput, guardedFetch } from "./guarded-fetch.ts";

/**
 * One connection to one MCP server: the only place that knows the protocol's library, which is evaluated when the
 * first connection of an isolate is opened. All but `call` throw `ColloquyError`s only.
 *
 * Invariants
 * 1. The protocol's revision is the newest that both know: 2026-07-28, or what the server's `initialize` answers.
 * 2. Nothing is offered to the server: no elicitation, no sampling, no roots.
 * 3. A connection that broke is of no use any more; a call that waited for it fails at once.
 */
export type McpConnection = {
  /** The revision of the protocol that is spoken. */
  protocolVersion: string | null;
  /** All that the server lists, as it lists it. */
  listTools(): Promise<unknown[]>;
  /** What the server answered the call with, whatever that is. Aborting the signal tells the server. */
  call(call: McpCall): Promise<unknown>;
  /** Whether an error of a call says that the server has forgotten the session. */
  hasLostSession(error: unknown): boolean;
  /** Ends it, and the server's session if it gave one, whether or not the server answers to that. Never throws. */
  close(): Promise<void>;
};

type ConnectInput = Omit<GuardInput, "broke"> & {
  /** The server is known to be older than 2026-07-28: it is not asked for it first. */
  legacy: boolean;
  /** The server's list of tools has changed. */
  listChanged: () => void;
};

/** Values of the input may have to go into headers, as the schema says. */
type McpCall = Pick<McpTool, "tool" | "inputSchema"> & {
  input: Record<string, unknown>;
  timeoutMs: number;
  signal: AbortSignal;
};

/** For the rest of an answer that has arrived to be read, after its connection broke. */
const graceMs = 100;

export const openConnection = async (input: ConnectInput): Promise<McpConnection> => {
  const broken = Promise.withResolvers<never>();
  broken.promise.catch(() => undefined);
  const fetch = guardedFetch({ ...input, broke: (error) => void setTimeout(() => broken.reject(error), graceMs) });
  /** All of it within `mcpListTimeoutMs`. Leaves no timer behind: the object could not sleep beside it. */
  const inTime = async <T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> => {
    const late = new AbortController();
    const tooLate = new ColloquyError("tool_timeout", "it did not answer in time");
    const timer = setTimeout(() => late.abort(tooLate), mcpListTimeoutMs);
    try {
      // Not all that the library asks heeds the signal.
      return await Promise.race([unlessAborted(late.signal, work(late.signal)), broken.promise]);
    } catch (error) {
      throw late.signal.aborted ? tooLate : failureOf(error);
    } finally {
      clearTimeout(timer);
    }
  };

  const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  const client = new Client(
    { name: "colloquy", version: "1" },
    {
      capabilities: {},
      versionNegotiation: { mode: input.legacy ? "legacy" : "auto" },
      inputRequired: { autoFulfill: false },
      listMaxPages: maxMcpPages,
      listChanged: { tools: { autoRefresh: false, onChanged: () => input.listChanged() } },
    },
  );
  const transport = new StreamableHTTPClientTransport(new URL(input.url), {
    fetch,
    reconnectionOptions: {
      initialReconnectionDelay: 500,
      maxReconnectionDelay: 2000,
      reconnectionDelayGrowFactor: 2,
      maxRetries: 1,
    },
  });
  // What is wrong with one message is told to who waits for it; the rest is noise.
  client.onerror = () => undefined;
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
    protocolVersion: client.getNegotiatedProtocolVersion() ?? null,
    close,
    listTools: async () => {
      const options = { timeout: mcpListTimeoutMs, cacheMode: "bypass" } as const;
      return (await inTime((signal) => client.listTools(undefined, { ...options, signal }))).tools;
    },
    call: ({ tool, input: values, inputSchema, timeoutMs, signal }) => {
      const toolDefinition = { name: tool, inputSchema: { ...inputSchema, type: "object" as const } };
      const limits = { timeout: timeoutMs, maxTotalTimeout: timeoutMs, signal };
      const answer = client.callTool({ name: tool, arguments: values }, { ...limits, toolDefinition });
      return Promise.race([answer, broken.promise]);
    },
    hasLostSession: (error) => {
      if (transport.sessionId === undefined || !(error instanceof Error)) return false;
      // 404 says so, and many servers say it with 400.
      const status = statusOf(error);
      return status === 404 || (status === 400 && /session/i.test(error.message));
    },
  };
};
