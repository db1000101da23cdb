import { asc, desc, eq, not } from "drizzle-orm";
import { among, type Database } from "../../../shared/database.ts";
import type { McpTool } from "../../records.ts";
import { mcpLists, mcpServers } from "../../schema.ts";

/**
 * What is known of an agent's MCP servers, and the lists of tools that its runs have.
 *
 * Invariants
 * 1. A list is never changed: a run has the one that its window began with, whatever its servers do meanwhile.
 * 2. The newest list is what the servers' rows say, in the config's order; it gets a new id only if it is another.
 */
export type McpRow = typeof mcpServers.$inferSelect;

const unknown = {
  failures: 0,
  tools: [],
  leftOut: [],
  protocolVersion: null,
  fetchedAt: null,
  failingSince: null,
  lastError: null,
};

export class McpStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  rows(): McpRow[] {
    return this.#db.select().from(mcpServers).orderBy(asc(mcpServers.name)).all();
  }

  row(name: string): McpRow | undefined {
    return this.#db.select().from(mcpServers).where(eq(mcpServers.name, name)).get();
  }

  /** A server that nothing is known of yet. */
  begin(name: string, address: string, nextAt: number): void {
    const set = { ...unknown, address, nextAt };
    this.#db
      .insert(mcpServers)
      .values({ name, ...set })
      .onConflictDoUpdate({ target: mcpServers.name, set })
      .run();
  }

  update(name: string, changes: Partial<Omit<McpRow, "name">>): void {
    this.#db.update(mcpServers).set(changes).where(eq(mcpServers.name, name)).run();
  }

  forget(name: string): void {
    this.#db.delete(mcpServers).where(eq(mcpServers.name, name)).run();
  }

  /** The newest list's id; null if there never was one. */
  newestList(): number | null {
    const newest = this.#db.select({ id: mcpLists.id }).from(mcpLists).orderBy(desc(mcpLists.id)).limit(1).get();
    return newest?.id ?? null;
  }

  list(id: number): McpTool[] {
    return this.#db.select().from(mcpLists).where(eq(mcpLists.id, id)).get()?.tools ?? [];
  }

  /** Stores what the agent has now, and forgets lists that neither it nor one of `inUse` is. */
  relist(tools: McpTool[], createdAt: number, inUse: () => number[]): void {
    const newest = this.newestList();
    if (newest === null ? tools.length === 0 : JSON.stringify(this.list(newest)) === JSON.stringify(tools)) return;
    const { id } = this.#db.insert(mcpLists).values({ tools, createdAt }).returning({ id: mcpLists.id }).get();
    this.#db
      .delete(mcpLists)
      .where(not(among(mcpLists.id, [id, ...inUse()])))
      .run();
  }
}
