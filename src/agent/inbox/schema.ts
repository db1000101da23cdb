import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";

/** Who is out of budget until when: a person, or "" for everybody. `spaces`: where they wait, and whether it was told there. */
export const outOfBudget = sqliteTable("out_of_budget", {
  person: text("person").primaryKey(),
  until: integer("until").notNull(),
  spaces: text("spaces", { mode: "json" }).$type<Record<string, boolean>>().notNull(),
});
