import { eq } from "drizzle-orm";
import type { Database } from "../../shared/database.ts";
import { imports, knownNames } from "./schema.ts";

/** The name that an id had in the workspace that the agent was imported from. */
export const originName = (db: Database, id: string): string | undefined =>
  db.select().from(knownNames).where(eq(knownNames.id, id)).get()?.name;

/** The same for the author of a block's version, such as `human:ent_…` or `agent:ent_…:edit`. */
export const originAuthor = (db: Database, author: string): { authorName?: string } => {
  const name = originName(db, author.split(":")[1] ?? "");
  return name === undefined ? {} : { authorName: name };
};

/** The journal's last row that came with an import; 0 if the agent was made here. */
export const importedJournalEnd = (db: Database): number =>
  db.select({ upTo: imports.journalUpTo }).from(imports).get()?.upTo ?? 0;
