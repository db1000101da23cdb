import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type * as records from "../../records.ts";

/** The MCP servers of its config: what each had when it was asked last, and when it is asked again. */
export const mcpServers = sqliteTable("mcp_servers", {
  name: text("name").primaryKey(),
  /** Where and with what headers it was asked: another address is another server. */
  address: text("address").notNull(),
  tools: text("tools", { mode: "json" }).$type<records.McpTool[]>().notNull(),
  leftOut: text("left_out", { mode: "json" }).$type<records.LeftOut[]>().notNull(),
  protocolVersion: text("protocol_version"),
  fetchedAt: integer("fetched_at"),
  failingSince: integer("failing_since"),
  lastError: text("last_error", { mode: "json" }).$type<records.Failure>(),
  failures: integer("failures").notNull(),
  nextAt: integer("next_at"),
});

/** The tools of all its MCP servers as they were at a time; a window's runs have those of one row. */
export const mcpLists = sqliteTable("mcp_lists", {
  id: integer("id").primaryKey(),
  tools: text("tools", { mode: "json" }).$type<records.McpTool[]>().notNull(),
  createdAt: integer("created_at").notNull(),
});
