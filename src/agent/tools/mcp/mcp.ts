import type { McpServer, McpStatus } from "../../../protocol/tool.ts";
import { backoff } from "../../../shared/backoff.ts";
import { type Clock, isoTime } from "../../../shared/clock.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { log } from "../../../shared/log.ts";
import type { Timers } from "../../../timers/timers.ts";
import { mcpFirstRetryMs, mcpFreshMs, mcpIdleMs, mcpLeaseMs, mcpLongestRetryMs, mcpStaleMs } from "../../bounds.ts";
import type { McpTool } from "../../records.ts";
import { createRedactor, type Redactor } from "../configured/redact.ts";
import { unknownOutcome } from "../outcome.ts";
import type { Tool } from "../tool.ts";
import { type McpConnection, openConnection } from "./connection.ts";
import { failureOf, mayBeDone } from "./failure-of.ts";
import { type Fetch, serverHeaders } from "./guarded-fetch.ts";
import type { McpRow, McpStore } from "./mcp-store.ts";
import { resultValue } from "./result-value.ts";
import { addressOf, McpSessions } from "./sessions.ts";
import { acceptTools, mcpTool } from "./tool-list.ts";

/**
 * An agent's MCP servers: which tools they bring, how they are, and the calls to them.
 *
 * Invariants
 * 1. Servers are asked for their lists in the background, by the timer `mcp`: no request and no run waits for one.
 * 2. While a server's list is wanted, the timer is due no later than its `nextAt`; a fetch that was cut is begun again.
 * 3. A server that fails is asked again, each time later. Its tools stay declared, and answer errors that say why.
 * 4. Only what the config names now is called, whatever a list says.
 */
export const mcpTimer = "mcp";

/** The first revision without sessions. */
const firstStateless = "2026-07-28";
/** A list is not fetched more often than this, however often its server says that it has changed. */
const minListPauseMs = 1000;

type McpDeps = {
  store: McpStore;
  clock: Clock;
  timers: Timers;
  /** The servers of the agent's config, in order. */
  servers: () => McpServer[];
  /** Lists that runs under way have. */
  listsInUse: () => number[];
  openSecret: (name: string) => Promise<string | undefined>;
  allowLoopback: boolean;
  fetch: Fetch;
  transaction<T>(work: () => T): T;
};

const isAllowed = ({ allowedTools }: McpServer, tool: string): boolean =>
  allowedTools === undefined || allowedTools.includes(tool);

export class Mcp {
  readonly #deps: McpDeps;
  readonly #sessions: McpSessions;
  #stopped = false;
  /** What lists say never changes. */
  readonly #lists = new Map<number, Tool[]>();

  constructor(deps: McpDeps) {
    this.#deps = deps;
    this.#sessions = new McpSessions((server) => this.#connect(server));
  }

  /** The config was set. In the transaction that stores it. */
  configured(): void {
    const { store, clock, servers } = this.#deps;
    const now = clock.now();
    const rows = new Map(store.rows().map((row) => [row.name, row]));
    if (rows.size === 0 && servers().length === 0) return;
    for (const server of servers()) {
      const { name } = server;
      if (rows.get(name)?.address === addressOf(server)) store.update(name, { nextAt: now });
      else store.begin(name, addressOf(server), now);
      rows.delete(name);
    }
    for (const name of rows.keys()) {
      store.forget(name);
      this.#sessions.drop(name);
    }
    this.#relist();
    this.#arm();
  }

  /** A secret was set: what failed may work now. */
  reconsider(): void {
    for (const row of this.#deps.store.rows()) if (row.failingSince !== null) this.#want(row);
    this.#sessions.dropAll();
  }

  /** A run begins: lists that are old are fetched again, for the runs after it. */
  runBegins(): void {
    const { servers, store, clock } = this.#deps;
    if (servers().length === 0) return;
    const staleAt = clock.now() - mcpStaleMs;
    for (const row of store.rows()) if (row.fetchedAt !== null && row.fetchedAt < staleAt) this.#want(row);
  }

  /** The timer fired. Answers the work, which goes on beside its caller. */
  fetchDue(): Promise<unknown> {
    const { store, clock } = this.#deps;
    const now = clock.now();
    const due = store.rows().filter(({ nextAt }) => nextAt !== null && nextAt <= now);
    for (const { name } of due) store.update(name, { nextAt: now + mcpLeaseMs });
    this.#arm();
    return Promise.all(due.map(({ name }) => this.#fetchList(name)));
  }

  /** The list that a run which began now would have; null without any, or without servers. */
  newestList(): number | null {
    return this.#deps.servers().length === 0 ? null : this.#deps.store.newestList();
  }

  /** The tools of a list, ready to be declared and called. */
  tools(listId: number | null): Tool[] {
    if (listId === null) return [];
    const known = this.#lists.get(listId);
    if (known) return known;
    const tools = this.#deps.store.list(listId).map((tool) => mcpTool(tool, this));
    this.#lists.set(listId, tools);
    return tools;
  }

  status(): McpStatus[] {
    const rows = new Map(this.#deps.store.rows().map((row) => [row.name, row]));
    return this.#deps.servers().map(({ name }) => statusOf(name, rows.get(name)));
  }

  /** Calls a tool. Throws `ColloquyError`s that the model can read. */
  async call(tool: McpTool, input: Record<string, unknown>, signal: AbortSignal): Promise<unknown> {
    const server = this.#server(tool.server);
    if (!server || !isAllowed(server, tool.tool)) {
      throw new ColloquyError("tool_unknown", `there is no tool named ${tool.name} any more`);
    }
    const redactor = await this.#redactor(server);
    try {
      const answer = resultValue(await this.#attempt(server, tool, input, signal));
      this.#answered(server);
      if ("nonsense" in answer)
        throw tool.idempotent ? new ColloquyError("tool_failed", answer.nonsense) : unknownOutcome(answer.nonsense);
      if ("error" in answer) throw new ColloquyError("tool_failed", `the server says: ${answer.error}`);
      return redactor.json(answer.value);
    } catch (error) {
      signal.throwIfAborted();
      const { code, message } = failureOf(error);
      throw new ColloquyError(code, redactor.text(`MCP server "${server.name}": ${message}`), { cause: error });
    }
  }

  /** The agent is being deleted: nothing is stored any more. */
  stop(): void {
    this.#stopped = true;
    this.#sessions.dropAll();
  }

  async #attempt(
    server: McpServer,
    tool: McpTool,
    input: Record<string, unknown>,
    signal: AbortSignal,
    isFirst = true,
  ): Promise<unknown> {
    const used: { connection?: McpConnection } = {};
    try {
      return await this.#sessions.use(server, mcpIdleMs, (connection) => {
        used.connection = connection;
        return connection.call({ ...tool, input, timeoutMs: server.timeoutMs, signal });
      });
    } catch (error) {
      signal.throwIfAborted();
      const failure = failureOf(error);
      const { connection } = used;
      const isLost = connection?.hasLostSession(error) === true;
      if (isLost || failure.code === "unavailable") this.#sessions.drop(server.name);
      // The server knows the session no more, so it did nothing with the call.
      if (isLost && isFirst) return this.#attempt(server, tool, input, signal, false);
      if (!connection || failure.code === "unavailable") {
        this.#noteFailure(server, failure, await this.#redactor(server));
      } else if (failure.code === "tool_failed") this.#wantSoon(server);
      if (!connection || tool.idempotent || !mayBeDone(error)) throw failure;
      throw unknownOutcome(failure.message, error);
    }
  }

  async #connect(server: McpServer): Promise<McpConnection> {
    const { store, openSecret, allowLoopback, fetch } = this.#deps;
    const { headers } = await serverHeaders(server, openSecret);
    const version = store.row(server.name)?.protocolVersion;
    return openConnection({
      ...{ url: server.url, headers, allowLoopback, fetch },
      legacy: version != null && version < firstStateless,
      listChanged: () => this.#wantSoon(server),
    });
  }

  async #fetchList(name: string): Promise<void> {
    const { store, clock, transaction } = this.#deps;
    const server = this.#server(name);
    if (!server) return;
    const redactor = await this.#redactor(server);
    try {
      const { listed, protocolVersion } = await this.#sessions.use(server, 0, async (connection) => ({
        listed: await connection.listTools(),
        protocolVersion: connection.protocolVersion,
      }));
      transaction(() => {
        if (!this.#row(server)) return;
        const good = { failingSince: null, lastError: null, failures: 0, nextAt: null };
        const list = acceptTools(server, listed.map(redactor.json));
        store.update(name, { ...list, ...good, protocolVersion, fetchedAt: clock.now() });
        this.#relist();
        this.#arm();
      });
    } catch (error) {
      const failure = failureOf(error);
      this.#sessions.drop(name);
      log.warn("mcp.failed", { server: name, code: failure.code });
      transaction(() => this.#noteFailure(server, failure, redactor));
    }
  }

  /** What the servers have now, as the agent's newest list: in the config's order, one of each name. */
  #relist(): void {
    const { store, servers, clock, listsInUse } = this.#deps;
    const rows = new Map(store.rows().map((row) => [row.name, row]));
    const named = new Map<string, McpTool>();
    for (const server of servers()) {
      for (const tool of rows.get(server.name)?.tools ?? []) {
        if (isAllowed(server, tool.tool) && !named.has(tool.name)) named.set(tool.name, tool);
      }
    }
    store.relist([...named.values()], clock.now(), listsInUse);
    this.#lists.clear();
  }

  #server(name: string): McpServer | undefined {
    return this.#deps.servers().find((server) => server.name === name);
  }

  /** The row of a server that still has its address; undefined once the agent is being deleted. */
  #row(server: McpServer): McpRow | undefined {
    const row = this.#stopped ? undefined : this.#deps.store.row(server.name);
    return row?.address === addressOf(server) ? row : undefined;
  }

  /** Takes the secrets that the server was given out of what it says. */
  async #redactor(server: McpServer): Promise<Redactor> {
    const opened = await serverHeaders(server, this.#deps.openSecret).catch(() => ({ secrets: [] }));
    return createRedactor(opened.secrets);
  }

  #noteFailure(server: McpServer, { code, message }: ColloquyError, redactor: Redactor): void {
    const row = this.#row(server);
    if (!row) return;
    const now = this.#deps.clock.now();
    const failing = { failingSince: row.failingSince ?? now, lastError: { code, message: redactor.text(message) } };
    const nextAt = now + backoff(row.failures, { firstMs: mcpFirstRetryMs, longestMs: mcpLongestRetryMs });
    // What was agreed on before may be what fails now.
    this.#deps.store.update(row.name, { ...failing, failures: row.failures + 1, nextAt, protocolVersion: null });
    this.#arm();
  }

  /** The server has answered: what it was thought to be may be over, and its list may be another. */
  #answered(server: McpServer): void {
    const row = this.#row(server);
    const isOld = (row?.fetchedAt ?? 0) < this.#deps.clock.now() - mcpFreshMs;
    if (row && (row.failingSince !== null || isOld)) this.#want(row);
  }

  #wantSoon(server: McpServer): void {
    const row = this.#row(server);
    this.#want(row, Math.max(this.#deps.clock.now(), (row?.fetchedAt ?? 0) + minListPauseMs));
  }

  #want(row: McpRow | undefined, nextAt = this.#deps.clock.now()): void {
    if (!row || (row.nextAt !== null && row.nextAt <= nextAt)) return;
    this.#deps.store.update(row.name, { nextAt });
    this.#arm();
  }

  #arm(): void {
    const { store, timers } = this.#deps;
    const times = store.rows().flatMap(({ nextAt }) => nextAt ?? []);
    if (times.length === 0) timers.clear(mcpTimer);
    else if (timers.dueAt(mcpTimer) !== Math.min(...times)) timers.set(mcpTimer, Math.min(...times));
  }
}

const statusOf = (name: string, row: McpRow | undefined): McpStatus => ({
  name,
  state: row && row.failingSince !== null ? "failing" : row && row.fetchedAt !== null ? "ok" : "pending",
  tools: row?.tools.map((tool) => tool.name) ?? [],
  leftOut: row?.leftOut ?? [],
  ...(row?.protocolVersion == null ? {} : { protocolVersion: row.protocolVersion }),
  ...(row?.fetchedAt == null ? {} : { fetchedAt: isoTime(row.fetchedAt) }),
  ...(row?.failingSince == null ? {} : { failingSince: isoTime(row.failingSince) }),
  ...(row?.failingSince == null || row.nextAt === null ? {} : { nextTryAt: isoTime(row.nextAt) }),
  ...(row?.lastError == null ? {} : { lastError: row.lastError }),
});
