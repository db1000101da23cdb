import { integer, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import type { SecretUse } from "../../../protocol/secret.ts";

/**
 * Where secrets of the workspace were sent, without their values. A row's `cause` is one run or call. Uses of neither, such
 * as an index's or a connection's, share one row. `position` orders them by when they began: the oldest are deleted.
 */
export const secretUses = sqliteTable(
  "secret_uses",
  {
    position: integer("position").primaryKey({ autoIncrement: true }),
    /** The secret's. */
    name: text("name").notNull(),
    kind: text("kind").$type<SecretUse["kind"]>().notNull(),
    /** The name of the tool, the MCP server or the model. */
    by: text("by").notNull(),
    host: text("host").notNull(),
    /** The run or the call; empty where it is of neither. */
    cause: text("cause").notNull(),
    /** How often it was opened for that. */
    times: integer("times").notNull().default(1),
    firstAt: integer("first_at").notNull(),
    lastAt: integer("last_at").notNull(),
  },
  ({ name, kind, by, host, cause }) => [uniqueIndex("secret_uses_use").on(name, kind, by, host, cause)],
);
