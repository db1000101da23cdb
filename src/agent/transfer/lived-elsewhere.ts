import type { Database } from "../../shared/database.ts";
import { imports } from "./schema.ts";

/** The journal's last row that was lived through before the agent was imported; 0 if it was not. */
export const livedElsewhere = (db: Database): number =>
  db.select({ upTo: imports.journalUpTo }).from(imports).get()?.upTo ?? 0;
