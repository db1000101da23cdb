import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { Budget } from "../../protocol/events.ts";

/** The inbox's tables beside its events, which are in the agent's schema. */

/** Service events that were taken in before, by their sender's own key. */
export const dedupeKeys = sqliteTable("seen_events", {
  eventId: text("event_id").primaryKey(),
  receivedAt: integer("received_at").notNull(),
});

/** How often each root has woken this agent (B1). */
export const roots = sqliteTable("roots", {
  id: text("id").primaryKey(),
  wakes: integer("wakes").notNull(),
  updatedAt: integer("updated_at").notNull(),
});

/** A budget that is used up, until when, and by whom: a person, or "" for everybody. `spaces`: where they wait, and whether it was told there. */
export const outOfBudget = sqliteTable("out_of_budget", {
  person: text("person").primaryKey(),
  until: integer("until").notNull(),
  budget: text("budget").$type<Budget>().notNull().default("tokens"),
  spaces: text("spaces", { mode: "json" }).$type<Record<string, boolean>>().notNull(),
});
