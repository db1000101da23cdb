import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";

/** What is due when, in milliseconds since the epoch. Each actor's schema exports this table. */
export const timers = sqliteTable("timers", {
  name: text("name").primaryKey(),
  dueAt: integer("due_at").notNull(),
  /** How often in a row handling it failed. */
  failures: integer("failures").notNull().default(0),
});
