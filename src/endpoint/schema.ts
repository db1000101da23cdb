import { index, integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { EndpointConfig } from "../protocol/endpoint-rpc.ts";

export { jobs, timers } from "../timers/schema.ts";

/** One row: the endpoint as its workspace has it. Times are milliseconds since the epoch. */
export const endpoint = sqliteTable("endpoint", {
  id: text("id").primaryKey(),
  config: text("config", { mode: "json" }).$type<EndpointConfig>().notNull(),
});

/** The spaces, and the workspace, whose events it tells. */
export const sources = sqliteTable("sources", {
  id: text("id").primaryKey(),
  /** The endpoint's server has all up to here. */
  cursor: integer("cursor").notNull(),
  /** There are events up to here. */
  head: integer("head").notNull(),
  /** Tries that failed in a row, and when the first of them did. */
  failures: integer("failures").notNull().default(0),
  failingSince: integer("failing_since"),
});

/** The tries of the last days. No word of an event is here. */
export const deliveries = sqliteTable(
  "deliveries",
  {
    position: integer("position").primaryKey({ autoIncrement: true }),
    sourceId: text("source_id").notNull(),
    /** The place of its first event. */
    seq: integer("seq").notNull(),
    webhookId: text("webhook_id").notNull(),
    type: text("type").notNull(),
    events: integer("events").notNull(),
    at: integer("at").notNull(),
    attempt: integer("attempt").notNull(),
    isDelivered: integer("is_delivered", { mode: "boolean" }).notNull(),
    status: integer("status"),
    ms: integer("ms").notNull(),
    answer: text("answer"),
    error: text("error"),
  },
  (table) => [index("deliveries_at").on(table.at)],
);
