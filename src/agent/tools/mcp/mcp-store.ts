import { and, asc, desc, eq, isNotNull, lte, min, not, sql } from "drizzle-orm";
import type { McpServer } from "../../../protocol/tool.ts";
import { among, type Database, prepared } from "../../../shared/database.ts";
import type { Failure, LeftOut, McpTool } from "../../records.ts";
import { mcpLists, mcpServers } from "../../schema.ts";

/**
 * What is known of an agent's MCP servers, and the lists of tools that its runs have.
 *
 * Invariants
 * 1. A list is never changed: a run has the one that its window began with, whatever its servers do meanwhile.
 * 2. The newest list is what the servers' rows say, in the config's order; it gets a new id only if it is another.
 */
export type McpRow = typeof mcpServers.$inferSelect;

export class McpStore {
  readonly #db: Database;
  readonly #newest = prepared(() =>
    this.#db.select({ id: mcpLists.id }).from(mcpLists).orderBy(desc(mcpLists.id)).limit(1),
  );
  readonly #list = prepared(() =>
    this.#db
      .select({ tools: mcpLists.tools })
      .from(mcpLists)
      .where(eq(mcpLists.id, sql.placeholder("id"))),
  );

  constructor(db: Database) {
    this.#db = db;
  }

  rows(): McpRow[] {
    return this.#db.select().from(mcpServers).orderBy(asc(mcpServers.name)).all();
  }

  row(name: string): McpRow | undefined {
    return this.#db.select().from(mcpServers).where(eq(mcpServers.name, name)).get();
  }

  due(now: number): McpRow[] {
    return this.#db
      .select()
      .from(mcpServers)
      .where(and(isNotNull(mcpServers.nextAt), lte(mcpServers.nextAt, now)))
      .all();
  }

  nextAt(): number | undefined {
    return (
      this.#db
        .select({ at: min(mcpServers.nextAt) })
        .from(mcpServers)
        .get()?.at ?? undefined
    );
  }

  /** A server that nothing is known of yet. */
  begin({ name }: McpServer, address: string, nextAt: number): void {
    const fresh = {
      address,
      nextAt,
      tools: [],
      leftOut: [],
      protocolVersion: null,
      fetchedAt: null,
      failingSince: null,
      lastError: null,
      failures: 0,
    };
    this.#db
      .insert(mcpServers)
      .values({ name, ...fresh })
      .onConflictDoUpdate({ target: mcpServers.name, set: fresh })
      .run();
  }

  update(name: string, changes: Partial<Omit<McpRow, "name">>): void {
    this.#db.update(mcpServers).set(changes).where(eq(mcpServers.name, name)).run();
  }

  listed(
    name: string,
    at: number,
    list: { tools: McpTool[]; leftOut: LeftOut[] },
    protocolVersion: string | null,
  ): void {
    const good = { failingSince: null, lastError: null, failures: 0, nextAt: null };
    this.update(name, { ...list, protocolVersion, fetchedAt: at, ...good });
  }

  failed(row: McpRow, at: number, lastError: Failure, nextAt: number): void {
    const failingSince = row.failingSince ?? at;
    this.update(row.name, { failingSince, lastError, failures: row.failures + 1, nextAt });
  }

  forget(name: string): void {
    this.#db.delete(mcpServers).where(eq(mcpServers.name, name)).run();
  }

  /** The newest list's id; null if there never was one. */
  newestList(): number | null {
    return this.#newest().get()?.id ?? null;
  }

  list(id: number): McpTool[] {
    return this.#list().get({ id })?.tools ?? [];
  }

  /** Stores what the agent has now, and forgets lists that neither it nor one of `inUse` is. */
  relist(tools: McpTool[], createdAt: number, inUse: () => number[]): void {
    const newest = this.newestList();
    if (newest === null && tools.length === 0) return;
    if (newest !== null && JSON.stringify(this.list(newest)) === JSON.stringify(tools)) return;
    const { id } = this.#db.insert(mcpLists).values({ tools, createdAt }).returning({ id: mcpLists.id }).get();
    this.#db
      .delete(mcpLists)
      .where(not(among(mcpLists.id, [id, ...inUse()])))
      .run();
  }
}
