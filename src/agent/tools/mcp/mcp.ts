import type { McpServer, McpStatus } from "../../../protocol/tool.ts";
import { backoff } from "../../../shared/backoff.ts";
import { type Clock, isoTime } from "../../../shared/clock.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { log } from "../../../shared/log.ts";
import type { Timers } from "../../../timers/timers.ts";
import { mcpFirstRetryMs, mcpFreshMs, mcpIdleMs, mcpLeaseMs, mcpLongestRetryMs, mcpStaleMs } from "../../bounds.ts";
import type { McpTool } from "../../records.ts";
import { createRedactor, type Redactor } from "../configured/redact.ts";
import type { Tool } from "../tool.ts";
import { unknownOutcome } from "../unknown-outcome.ts";
import { McpConnection } from "./connection.ts";
import { failureOf, mayBeDone } from "./failure-of.ts";
import type { Fetch } from "./guarded-fetch.ts";
import type { McpRow, McpStore } from "./mcp-store.ts";
import { mcpTool } from "./mcp-tool.ts";
import { resultValue } from "./result-value.ts";
import { serverHeaders } from "./server-headers.ts";
import { McpSessions } from "./sessions.ts";
import { acceptTools } from "./tool-list.ts";

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

export type McpDeps = {
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

const addressOf = ({ url, headers }: McpServer): string => JSON.stringify([url, headers]);

const isAllowed = ({ allowedTools }: McpServer, tool: string): boolean =>
  allowedTools === undefined || allowedTools.includes(tool);

export class Mcp {
  readonly #deps: McpDeps;
  readonly #sessions: McpSessions;
  readonly #fetching = new Set<string>();
  #stopped = false;
  /** What lists say never changes. */
  readonly #lists = new Map<number, Tool[]>();

  constructor(deps: McpDeps) {
    this.#deps = deps;
    this.#sessions = new McpSessions((server) => this.#connect(server));
  }

  /** The config was set. In the transaction that stores it. */
  configured(): void {
    const { store, clock, timers, servers } = this.#deps;
    const now = clock.now();
    const rows = new Map(store.rows().map((row) => [row.name, row]));
    if (rows.size === 0 && servers().length === 0) return;
    for (const server of servers()) {
      const row = rows.get(server.name);
      rows.delete(server.name);
      if (row?.address === addressOf(server)) store.update(server.name, { nextAt: now });
      else store.begin(server, addressOf(server), now);
    }
    for (const name of rows.keys()) {
      store.forget(name);
      this.#sessions.drop(name);
    }
    this.#relist();
    if (servers().length > 0) timers.set(mcpTimer, now);
    else timers.clear(mcpTimer);
  }

  /** A secret was set: what failed may work now. */
  reconsider(): void {
    const now = this.#deps.clock.now();
    for (const row of this.#deps.store.rows()) if (row.failingSince !== null) this.#want(row, now);
    this.#sessions.dropAll();
  }

  /** A run begins: lists that are old are fetched again, for the runs after it. */
  runBegins(): void {
    const { servers, store, clock } = this.#deps;
    if (servers().length === 0) return;
    const now = clock.now();
    for (const row of store.rows())
      if (row.fetchedAt !== null && row.fetchedAt < now - mcpStaleMs) this.#want(row, now);
  }

  /** The timer fired. Answers the work, which goes on beside its caller. */
  fetchDue(): Promise<void> {
    const { store, clock, timers } = this.#deps;
    const now = clock.now();
    const due = store.due(now);
    for (const { name } of due) store.update(name, { nextAt: now + mcpLeaseMs });
    const next = store.nextAt();
    if (next !== undefined) timers.set(mcpTimer, next);
    return Promise.all(due.map((row) => this.#fetch(row))).then(() => undefined);
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
    return this.#deps.servers().map((server) => statusOf(server, rows.get(server.name)));
  }

  /** Calls a tool. Throws `ColloquyError`s that the model can read. */
  async call(tool: McpTool, input: Record<string, unknown>, signal: AbortSignal): Promise<unknown> {
    const server = this.#deps.servers().find(({ name }) => name === tool.server);
    if (!server || !isAllowed(server, tool.tool)) {
      throw new ColloquyError("tool_unknown", `there is no tool named ${tool.name} any more`);
    }
    const redactor = await this.#redactor(server);
    try {
      const result = await this.#attempt(server, tool, input, signal, true);
      const answer = resultValue(result);
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
    again: boolean,
  ): Promise<unknown> {
    let sent = false;
    let lost = false;
    try {
      return await this.#sessions.use(server, mcpIdleMs, async (connection) => {
        sent = true;
        try {
          return await connection.call({ ...tool, input, timeoutMs: server.timeoutMs, signal });
        } catch (error) {
          lost = connection.hasSession && isSessionLost(error);
          throw error;
        }
      });
    } catch (error) {
      signal.throwIfAborted();
      const failure = failureOf(error);
      if (lost || failure.code === "unavailable") this.#sessions.drop(server.name);
      // The server knows the session no more, so it did nothing with the call.
      if (lost && again) return this.#attempt(server, tool, input, signal, false);
      if (!sent || failure.code === "unavailable") this.#noteFailure(server, failure, await this.#redactor(server));
      else if (failure.code === "tool_failed") this.#wantSoon(server.name);
      if (!sent || tool.idempotent || !mayBeDone(error)) throw failure;
      throw unknownOutcome(failure.message, error);
    }
  }

  async #connect(server: McpServer): Promise<McpConnection> {
    const { store, openSecret, allowLoopback, fetch } = this.#deps;
    const { headers } = await serverHeaders(server, openSecret);
    const version = store.row(server.name)?.protocolVersion ?? undefined;
    return McpConnection.open({
      url: server.url,
      headers,
      allowLoopback,
      fetch,
      legacy: version !== undefined && version < firstStateless,
      listChanged: () => this.#wantSoon(server.name),
    });
  }

  async #fetch(row: McpRow): Promise<void> {
    const { store, clock, servers, transaction } = this.#deps;
    const server = servers().find(({ name }) => name === row.name);
    if (!server || this.#fetching.has(row.name)) return;
    this.#fetching.add(row.name);
    const redactor = await this.#redactor(server);
    const isStillIt = (): boolean => !this.#stopped && store.row(row.name)?.address === row.address;
    try {
      const { listed, version } = await this.#sessions.use(server, 0, async (connection) => ({
        listed: await connection.listTools(),
        version: connection.protocolVersion ?? null,
      }));
      transaction(() => {
        if (!isStillIt()) return;
        store.listed(row.name, clock.now(), acceptTools(server, listed.map(redactor.json)), version);
        this.#relist();
        this.#arm();
      });
    } catch (error) {
      const failure = failureOf(error);
      this.#sessions.drop(server.name);
      log.warn("mcp.failed", { server: server.name, code: failure.code });
      transaction(() => {
        if (isStillIt()) this.#noteFailure(server, failure, redactor);
      });
    } finally {
      this.#fetching.delete(row.name);
    }
  }

  /** What the servers have now, as the agent's newest list: in the config's order, one of each name. */
  #relist(): void {
    const { store, servers, clock, listsInUse } = this.#deps;
    const rows = new Map(store.rows().map((row) => [row.name, row]));
    const names = new Set<string>();
    const tools = servers().flatMap((server) =>
      (rows.get(server.name)?.tools ?? []).filter(({ tool, name }) => {
        const isFirst = !names.has(name);
        names.add(name);
        return isFirst && isAllowed(server, tool);
      }),
    );
    store.relist(tools, clock.now(), listsInUse);
    this.#lists.clear();
  }

  /** Takes the secrets that the server was given out of what it says. */
  async #redactor(server: McpServer): Promise<Redactor> {
    const opened = await serverHeaders(server, this.#deps.openSecret).catch(() => ({ secrets: [] }));
    return createRedactor(opened.secrets);
  }

  #noteFailure(server: McpServer, { code, message }: ColloquyError, redactor: Redactor): void {
    const { store, clock } = this.#deps;
    const row = store.row(server.name);
    if (!row || row.address !== addressOf(server)) return;
    const now = clock.now();
    const pause = backoff(row.failures, { firstMs: mcpFirstRetryMs, longestMs: mcpLongestRetryMs });
    // What was agreed on before may be what fails now.
    store.update(row.name, { protocolVersion: null });
    store.failed(row, now, { code, message: redactor.text(message) }, now + pause);
    this.#arm();
  }

  /** The server has answered: what it was thought to be may be over, and its list may be another. */
  #answered(server: McpServer): void {
    const now = this.#deps.clock.now();
    const row = this.#deps.store.row(server.name);
    if (row && (row.failingSince !== null || (row.fetchedAt ?? 0) < now - mcpFreshMs)) this.#want(row, now);
  }

  #wantSoon(name: string): void {
    if (this.#stopped) return;
    const row = this.#deps.store.row(name);
    // However often a server says so.
    if (row) this.#want(row, Math.max(this.#deps.clock.now(), (row.fetchedAt ?? 0) + minListPauseMs));
  }

  #want(row: McpRow, at: number): void {
    if (row.nextAt !== null && row.nextAt <= at) return;
    this.#deps.store.update(row.name, { nextAt: at });
    this.#arm();
  }

  #arm(): void {
    const { store, timers } = this.#deps;
    const next = store.nextAt();
    if (next === undefined) timers.clear(mcpTimer);
    else if (timers.dueAt(mcpTimer) !== next) timers.set(mcpTimer, next);
  }
}

/** The first revision without sessions. */
const firstStateless = "2026-07-28";
const minListPauseMs = 1000;

/** The server has forgotten the session: 404 says so, and many of them say it with 400. */
const isSessionLost = (error: unknown): boolean => {
  if (!(error instanceof Error) || !("status" in error)) return false;
  return error.status === 404 || (error.status === 400 && /session/i.test(error.message));
};

const statusOf = ({ name }: McpServer, row: McpRow | undefined): McpStatus => ({
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
