import type { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { ColloquyError } from "../../../shared/errors.ts";
import { settledWithin, unlessAborted } from "../../../shared/timeouts.ts";
import { maxMcpPages, mcpCloseMs, mcpListTimeoutMs, mcpProbeTimeoutMs } from "../../bounds.ts";
import { failureOf } from "./failure-of.ts";
import { type GuardInput, guardedFetch } from "./guarded-fetch.ts";

/**
 * One connection to one MCP server: the only place that knows the protocol's library, which is evaluated when the
 * first connection of an isolate is opened. Throws `ColloquyError`s only.
 *
 * Invariants
 * 1. The protocol's revision is the newest that both know: 2026-07-28, or what the server's `initialize` answers.
 * 2. Nothing is offered to the server: no elicitation, no sampling, no roots.
 * 3. A connection that broke is of no use any more; a call that waited for it fails at once.
 */
export type ConnectInput = Omit<GuardInput, "broke"> & {
  /** The server is known to be older than 2026-07-28: it is not asked for it first. */
  legacy: boolean;
  /** The server's list of tools has changed. */
  listChanged: () => void;
};

export type McpCall = {
  tool: string;
  input: Record<string, unknown>;
  /** Values of it may have to go into headers. */
  inputSchema: Record<string, unknown>;
  timeoutMs: number;
  signal: AbortSignal;
};

const ourName = { name: "colloquy", version: "1" };
/** For the rest of an answer that has arrived to be read, after its connection broke. */
const graceMs = 100;

export class McpConnection {
  readonly #client: Client;
  readonly #transport: StreamableHTTPClientTransport;
  readonly #broken: Promise<never>;

  private constructor(client: Client, transport: StreamableHTTPClientTransport, broken: Promise<never>) {
    this.#client = client;
    this.#transport = transport;
    this.#broken = broken;
  }

  static async open(input: ConnectInput): Promise<McpConnection> {
    const broken = Promise.withResolvers<never>();
    broken.promise.catch(() => undefined);
    const guarded = guardedFetch({
      ...input,
      broke: (error) => void setTimeout(() => broken.reject(error), graceMs),
    });
    const library = await import("@modelcontextprotocol/client");
    const client = new library.Client(ourName, {
      capabilities: {},
      versionNegotiation: { mode: input.legacy ? "legacy" : "auto" },
      inputRequired: { autoFulfill: false },
      listMaxPages: maxMcpPages,
      listChanged: { tools: { autoRefresh: false, onChanged: () => input.listChanged() } },
    });
    const transport = new library.StreamableHTTPClientTransport(new URL(input.url), {
      fetch: guarded,
      reconnectionOptions: {
        initialReconnectionDelay: 500,
        maxReconnectionDelay: 2000,
        reconnectionDelayGrowFactor: 2,
        maxRetries: 1,
      },
    });
    const connection = new McpConnection(client, transport, broken.promise);
    // What is wrong with one message is told to who waits for it; the rest is noise.
    client.onerror = () => undefined;
    try {
      await connection.#withTimeout((signal) => client.connect(transport, { timeout: mcpProbeTimeoutMs, signal }));
      return connection;
    } catch (error) {
      await connection.close();
      throw failureOf(error);
    }
  }

  /** The revision of the protocol that is spoken. */
  get protocolVersion(): string | undefined {
    return this.#client.getNegotiatedProtocolVersion();
  }

  get isLegacy(): boolean {
    return this.#client.getProtocolEra() !== "modern";
  }

  get hasSession(): boolean {
    return this.#transport.sessionId !== undefined;
  }

  /** All that the server lists, as it lists it. */
  async listTools(): Promise<unknown[]> {
    try {
      const { tools } = await this.#withTimeout((signal) =>
        this.#client.listTools(undefined, { timeout: mcpListTimeoutMs, signal, cacheMode: "bypass" }),
      );
      return tools;
    } catch (error) {
      throw failureOf(error);
    }
  }

  /** What the server answered the call with, whatever that is. Aborting `signal` tells the server. */
  async call({ tool, input, inputSchema, timeoutMs, signal }: McpCall): Promise<unknown> {
    const definition = { name: tool, inputSchema: { ...inputSchema, type: "object" as const } };
    return this.#unlessBroken(
      this.#client.callTool(
        { name: tool, arguments: input },
        { timeout: timeoutMs, maxTotalTimeout: timeoutMs, signal, toolDefinition: definition },
      ),
    );
  }

  /** Ends it, and the server's session if it gave one, whether or not the server answers to that. Never throws. */
  async close(): Promise<void> {
    if (this.hasSession) await settledWithin(mcpCloseMs, this.#transport.terminateSession());
    await settledWithin(mcpCloseMs, this.#client.close());
  }

  /** All of it within `mcpListTimeoutMs`. Leaves no timer behind: the object could not sleep beside it. */
  async #withTimeout<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const late = new AbortController();
    const tooLate = new ColloquyError("tool_timeout", "it did not answer in time");
    const timer = setTimeout(() => late.abort(tooLate), mcpListTimeoutMs);
    try {
      // Not all that the library asks heeds the signal.
      return await this.#unlessBroken(unlessAborted(late.signal, work(late.signal)));
    } catch (error) {
      throw late.signal.aborted ? tooLate : error;
    } finally {
      clearTimeout(timer);
    }
  }

  #unlessBroken<T>(work: Promise<T>): Promise<T> {
    return Promise.race([work, this.#broken]);
  }
}
