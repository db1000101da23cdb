import { index, integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";

/** The timers that are set, in milliseconds since the epoch. Each actor's schema exports this table. */
export const timers = sqliteTable("timers", {
  name: text("name").primaryKey(),
  dueAt: integer("due_at").notNull(),
  /** How often in a row handling it failed. */
  failures: integer("failures").notNull().default(0),
});

/** Work that is done in the background, again and again until it succeeds: `jobs.ts`. */
export const jobs = sqliteTable(
  "jobs",
  {
    /** Names the handler. */
    kind: text("kind").notNull(),
    /** Names the job among those of its kind. */
    key: text("key").notNull(),
    /** When it runs next. While it runs: when its lease ends. */
    dueAt: integer("due_at").notNull(),
    /** Runs that began since the last one that succeeded, cut ones included. */
    attempts: integer("attempts").notNull().default(0),
    /** Data of the handler. It parses them. */
    payload: text("payload", { mode: "json" }).$type<unknown>(),
  },
  (table) => [primaryKey({ columns: [table.kind, table.key] }), index("jobs_due").on(table.kind, table.dueAt)],
);
