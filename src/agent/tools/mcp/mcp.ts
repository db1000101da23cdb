import { and, desc, eq, gt, isNotNull, isNull, lt, lte, min, not, or, type SQL } from "drizzle-orm";
import type { McpServer, McpStatus } from "../../../protocol/tool.ts";
import { backoff } from "../../../shared/backoff.ts";
import { type Clock, isoTime } from "../../../shared/clock.ts";
import { among, type Database } from "../../../shared/database.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { log } from "../../../shared/log.ts";
import { secretNames } from "../../../shared/secret-places.ts";
import type { Timers } from "../../../timers/timers.ts";
import { mcpFirstRetryMs, mcpFreshMs, mcpIdleMs, mcpLeaseMs, mcpLongestRetryMs, mcpStaleMs } from "../../bounds.ts";
import type { McpTool } from "../../records.ts";
import { type outsideOf, useOf } from "../configured/configured-tool.ts";
import { unsealSecrets } from "../configured/request-template.ts";
import { unknownOutcome } from "../outcome.ts";
import type { Tool } from "../tool.ts";
import { addressOf, createSessions } from "./connection.ts";
import { failureOf } from "./failure-of.ts";
import { mcpLists, mcpServers } from "./schema.ts";
import { acceptTools, mcpTool } from "./tool-list.ts";

/**
 * An agent's MCP servers: which tools they bring, how they are, and the calls to them.
 *
 * Invariants
 * 1. Servers are asked for their lists in the background, by the timer `mcp`: no request and no run waits for one.
 * 2. While a server's list is wanted, the timer is due no later than its `nextAt`; a fetch that was cut is begun again.
 * 3. A server that fails is asked again, each time later. Its tools stay declared, and answer errors that say why.
 * 4. Only what the config names now is called, whatever a list says.
 * 5. A list is never changed: a run has the one that its window began with, whatever its servers do meanwhile. The newest
 *    is what the servers' rows say, in the config's order; it gets a new id only if it is another.
 */
export const mcpTimer = "mcp";

/** The first revision without sessions. */
const firstStateless = "2026-07-28";
/** A list is not fetched more often than this, however often its server says that it has changed. */
const minListPauseMs = 1000;

type McpRow = typeof mcpServers.$inferSelect;

const healthy = { failures: 0, failingSince: null, lastError: null };
/** A server that nothing is known of yet. */
const unknown = { ...healthy, tools: [], leftOut: [], protocolVersion: null, fetchedAt: null };

type McpDeps = ReturnType<typeof outsideOf> & {
  clock: Clock;
  timers: Timers;
  /** The servers of the agent's config, in order. */
  servers: () => McpServer[];
  /** Lists that runs under way have. */
  listsInUse: () => number[];
  /** Removes words that are being taken out. A server may quote them. */
  clean: <Value>(value: Value) => Value;
};

const isAllowed = ({ allowedTools }: McpServer, tool: string): boolean =>
  allowedTools === undefined || allowedTools.includes(tool);

/** The row of a server that still has its address. */
const isOf = (server: McpServer) => and(eq(mcpServers.name, server.name), eq(mcpServers.address, addressOf(server)));

export type Mcp = ReturnType<typeof createMcp>;

export const createMcp = (db: Database, { clock, timers, servers, listsInUse, clean, ...outside }: McpDeps) => {
  let stopped = false;
  /** Tools by the id of their list. A list with an id never changes. */
  const lists = new Map<number, Tool[]>();
  /** The addresses whose lists are being fetched. */
  const fetching = new Set<string>();

  const rows = (): Map<string, McpRow> => {
    const all = db.select().from(mcpServers).all();
    return new Map(all.map((row) => [row.name, row]));
  };

  /** Undefined once the server has another address, or the agent is being deleted. */
  const rowOf = (server: McpServer): McpRow | undefined =>
    stopped ? undefined : db.select().from(mcpServers).where(isOf(server)).get();

  const arm = (): void => {
    const earliest = db.select({ at: min(mcpServers.nextAt) }).from(mcpServers);
    const at = earliest.get()?.at;
    if (at == null) timers.clear(mcpTimer);
    else if (timers.dueAt(mcpTimer) !== at) timers.set(mcpTimer, at);
  };

  /** Has the lists of these servers fetched at `nextAt`, unless that is due before. */
  const want = (which: SQL | undefined, nextAt = clock.now()): void => {
    if (stopped) return;
    const isLater = or(isNull(mcpServers.nextAt), gt(mcpServers.nextAt, nextAt));
    db.update(mcpServers).set({ nextAt }).where(and(which, isLater)).run();
    arm();
  };

  const wantSoon = (server: McpServer): void => {
    const row = rowOf(server);
    if (row) want(isOf(server), Math.max(clock.now(), (row.fetchedAt ?? 0) + minListPauseMs));
  };

  /** The server has answered: what it was thought to be may be over, and its list may be another. */
  const answered = (server: McpServer): void => {
    const isOld = or(isNull(mcpServers.fetchedAt), lt(mcpServers.fetchedAt, clock.now() - mcpFreshMs));
    want(and(isOf(server), or(isNotNull(mcpServers.failingSince), isOld)));
  };

  const noteFailure = (server: McpServer, { code, message }: ColloquyError): void => {
    const row = rowOf(server);
    if (!row) return;
    const now = clock.now();
    const nextAt = now + backoff(row.failures, { firstMs: mcpFirstRetryMs, longestMs: mcpLongestRetryMs });
    const lastError = clean({ code, message });
    const failing = { failures: row.failures + 1, failingSince: row.failingSince ?? now, lastError };
    // The agreement of an earlier session may be the cause.
    db.update(mcpServers)
      .set({ ...failing, nextAt, protocolVersion: null })
      .where(isOf(server))
      .run();
    arm();
  };

  /** The newest list's id; null if there never was one. */
  const newestList = (): number | null =>
    db.select({ id: mcpLists.id }).from(mcpLists).orderBy(desc(mcpLists.id)).limit(1).get()?.id ?? null;

  const listOf = (id: number): McpTool[] => db.select().from(mcpLists).where(eq(mcpLists.id, id)).get()?.tools ?? [];

  /** Stores what the servers have now as the newest list, one of each name, and forgets those that nobody uses. */
  const relist = (): void => {
    const known = rows();
    const named = new Map<string, McpTool>();
    for (const server of servers()) {
      for (const tool of known.get(server.name)?.tools ?? []) {
        if (isAllowed(server, tool.tool) && !named.has(tool.name)) named.set(tool.name, tool);
      }
    }
    lists.clear();
    const tools = [...named.values()];
    const newest = newestList();
    if (newest === null ? tools.length === 0 : JSON.stringify(listOf(newest)) === JSON.stringify(tools)) return;
    const { id } = db.insert(mcpLists).values({ tools, createdAt: clock.now() }).returning({ id: mcpLists.id }).get();
    db.delete(mcpLists)
      .where(not(among(mcpLists.id, [id, ...listsInUse()])))
      .run();
  };

  const sessions = createSessions((server) => {
    const version = rowOf(server)?.protocolVersion;
    return {
      ...outside,
      server,
      legacy: version != null && version < firstStateless,
      listChanged: () => wantSoon(server),
    };
  });

  const fetchList = async (server: McpServer): Promise<void> => {
    fetching.add(addressOf(server));
    try {
      const { listed, protocolVersion } = await sessions.use(server, 0, async (connection) => ({
        listed: await connection.listTools(),
        protocolVersion: connection.protocolVersion,
      }));
      db.transaction(() => {
        if (!rowOf(server)) return;
        // Another choice of its tools may have been configured meanwhile.
        const list = acceptTools(servers().find(({ name }) => name === server.name) ?? server, listed);
        db.update(mcpServers)
          .set({ ...list, ...healthy, protocolVersion, nextAt: null, fetchedAt: clock.now() })
          .where(isOf(server))
          .run();
        relist();
        arm();
      });
    } catch (error) {
      const failure = failureOf(error);
      sessions.drop(server.name);
      log.warn("mcp.failed", { server: server.name, code: failure.code });
      db.transaction(() => noteFailure(server, failure));
    } finally {
      fetching.delete(addressOf(server));
    }
  };

  /** Calls a tool. Throws `ColloquyError`s that the model can read. */
  const call: Parameters<typeof mcpTool>[1] = async (tool, input, { signal, root, begunAt, runId, callId }) => {
    const server = servers().find(({ name }) => name === tool.server);
    if (!server || !isAllowed(server, tool.tool)) {
      throw new ColloquyError("tool_unknown", `there is no tool named ${tool.name} any more`);
    }
    const asError = (failure: ColloquyError, mayBeDone: boolean): ColloquyError => {
      const { code, message } = mayBeDone && !tool.idempotent ? unknownOutcome(failure.message) : failure;
      return new ColloquyError(code, `MCP server "${server.name}": ${message}`, { cause: failure });
    };
    const headers = outside.chained(root(), begunAt);
    // The connection holds them: each call that sends them along is on record.
    const use = { kind: "mcp", name: server.name, url: server.url, cause: useOf(runId, callId) } as const;
    await unsealSecrets(secretNames(server.headers), (name) => outside.unsealSecret(name, use));
    for (let isFirst = true; ; isFirst = false) {
      const called = await sessions
        .use(server, mcpIdleMs, (connection) => connection.call({ ...tool, input, signal, headers }))
        .catch((error: unknown) => ({ failure: failureOf(error), mayBeDone: false, isLost: false, isUnasked: true }));
      signal.throwIfAborted();
      if ("answer" in called) {
        const { answer } = called;
        answered(server);
        if ("value" in answer) return answer.value;
        const words = "error" in answer ? `the server says: ${answer.error}` : answer.nonsense;
        throw asError(new ColloquyError("tool_failed", words), "nonsense" in answer);
      }
      const { failure, isLost } = called;
      const isUnreachable = failure.code === "unavailable";
      if (isLost || isUnreachable) sessions.drop(server.name);
      // The server no longer knows the session, so it did nothing with the call.
      if (isLost && isFirst) continue;
      if ("isUnasked" in called || isUnreachable) noteFailure(server, failure);
      else if (failure.code === "tool_failed") wantSoon(server);
      throw asError(failure, called.mayBeDone);
    }
  };

  return {
    /** The config was set. In the transaction that stores it. */
    configured(): void {
      const known = rows();
      if (known.size === 0 && servers().length === 0) return;
      const nextAt = clock.now();
      for (const server of servers()) {
        const { name } = server;
        const address = addressOf(server);
        const set = known.get(name)?.address === address ? { nextAt } : { ...unknown, address, nextAt };
        db.insert(mcpServers)
          .values({ ...unknown, name, address, nextAt })
          .onConflictDoUpdate({ target: mcpServers.name, set })
          .run();
        known.delete(name);
      }
      for (const name of known.keys()) {
        db.delete(mcpServers).where(eq(mcpServers.name, name)).run();
        sessions.drop(name);
      }
      relist();
      arm();
    },

    /** A secret was set: what failed may work now. */
    reconsider(): void {
      want(isNotNull(mcpServers.failingSince));
      sessions.drop();
    },

    /** A run begins: lists that are old are fetched again, for the runs after it. */
    runBegins(): void {
      if (servers().length > 0) want(lt(mcpServers.fetchedAt, clock.now() - mcpStaleMs));
    },

    /** The timer fired. Answers the work, which goes on beside its caller. */
    fetchDue(): Promise<unknown> {
      const now = clock.now();
      const leased = db.update(mcpServers).set({ nextAt: now + mcpLeaseMs });
      const due = leased.where(lte(mcpServers.nextAt, now)).returning({ name: mcpServers.name }).all();
      arm();
      const isDue = (server: McpServer): boolean =>
        !fetching.has(addressOf(server)) && due.some(({ name }) => name === server.name);
      return Promise.all(servers().filter(isDue).map(fetchList));
    },

    /** The list that a run which began now would have; null without any, or without servers. */
    newestList: (): number | null => (servers().length === 0 ? null : newestList()),

    /** The tools of a list, ready to be declared and called. */
    tools(listId: number | null): Tool[] {
      if (listId === null) return [];
      const tools = lists.get(listId) ?? listOf(listId).map((tool) => mcpTool(tool, call));
      lists.set(listId, tools);
      return tools;
    },

    status(): McpStatus[] {
      const known = rows();
      return servers().map(({ name }) => statusOf(name, known.get(name)));
    },

    /** The agent is being deleted: nothing is stored any more. */
    stop(): void {
      stopped = true;
      sessions.drop();
    },
  };
};

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
