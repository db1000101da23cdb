import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { Notification, Standing } from "../protocol/line.ts";

export { timers } from "../timers/schema.ts";

/** The spaces that tell this person how they stand, and what they told last. */
export const spaces = sqliteTable("spaces", {
  id: text("id").primaryKey(),
  standing: text("standing", { mode: "json" }).$type<Standing>().notNull(),
});

/** Unread notifications. `seq` is of the space's log: a read mark passes it. `cursor` counts those of the person. */
export const notifications = sqliteTable("notifications", {
  cursor: integer("cursor").primaryKey({ autoIncrement: true }),
  id: text("id").notNull().unique(),
  spaceId: text("space_id").notNull(),
  seq: integer("seq").notNull(),
  notification: text("notification", { mode: "json" }).$type<Notification>().notNull(),
});
