import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { ExportedHead, ImportReport } from "../../protocol/exported-agent.ts";

/** One row of an agent that was imported. Until it is complete, the object is no agent and answers for none. */
export const imports = sqliteTable("imports", {
  id: integer("id").primaryKey(),
  workspaceId: text("workspace_id").notNull(),
  agentId: text("agent_id").notNull(),
  /** Tells one try from another. */
  token: text("token").notNull(),
  /** No longer written: the report says when the agent was exported. */
  envelope: text("envelope", { mode: "json" }),
  /** Set once all rows are there and fit together; then the directory decides. */
  head: text("head", { mode: "json" }).$type<ExportedHead["agent"]>(),
  report: text("report", { mode: "json" }).$type<ImportReport>(),
  /** Shares in the document; none is made again. */
  shares: integer("shares").notNull().default(0),
  /** The journal's last row that was imported. */
  journalUpTo: integer("journal_up_to").notNull().default(0),
  touchedAt: integer("touched_at").notNull(),
  completedAt: integer("completed_at"),
});

/** Names of people and spaces of the workspace that the agent was imported from. */
export const knownNames = sqliteTable("known_names", {
  id: text("id").primaryKey(),
  name: text("name").notNull(),
});
