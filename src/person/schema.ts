import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { Standing } from "../protocol/line.ts";
import type { NewDevice, Notification, Settings } from "../protocol/notifications.ts";
import type { Principal } from "../protocol/principal.ts";

export { jobs, timers } from "../timers/schema.ts";

/** One row, of a person who has had a line or set something. Times are milliseconds since the epoch. */
export const people = sqliteTable("people", {
  id: text("id").primaryKey(),
  workspaceId: text("workspace_id").notNull(),
  settings: text("settings", { mode: "json" }).$type<Settings>(),
  /** Their workspace is suspended: no device is told anything. */
  rests: integer("rests", { mode: "boolean" }).notNull().default(false),
});

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
  /** Some device may show it. */
  pushed: integer("pushed", { mode: "boolean" }).notNull().default(false),
});

/** Devices that are told by Web Push. */
export const devices = sqliteTable("devices", {
  id: text("id").primaryKey(),
  name: text("name").notNull(),
  endpoint: text("endpoint").notNull(),
  keys: text("keys", { mode: "json" }).$type<NewDevice["keys"]>().notNull(),
  /** The page that it was added from, as push services are told who sends, and the key that it subscribed with. */
  origin: text("origin").notNull(),
  pushKey: text("push_key").notNull(),
  /** The credentials that it was added with: it is told nothing once they have ended. */
  principal: text("principal", { mode: "json" }).$type<Principal>().notNull(),
  createdAt: integer("created_at").notNull(),
  lastPushAt: integer("last_push_at"),
});

/** What a device is to be told next, of each topic. What was read meanwhile is left out as it is sent. */
export const pushes = sqliteTable(
  "pushes",
  {
    deviceId: text("device_id").notNull(),
    /** A space, a notification that goes by itself, or `cleared`. */
    topic: text("topic").notNull(),
    /** Ids of notifications, the oldest first. None: the topic's pause is not over. */
    ids: text("ids", { mode: "json" }).$type<string[]>().notNull(),
    dueAt: integer("due_at").notNull(),
    /** From then on it is not tried any more. */
    until: integer("until").notNull(),
    failures: integer("failures").notNull().default(0),
  },
  (table) => [primaryKey({ columns: [table.deviceId, table.topic] })],
);
