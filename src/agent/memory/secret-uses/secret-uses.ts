import { and, desc, eq, gte, lte, sql } from "drizzle-orm";
import { hostOf, type SecretUse } from "../../../protocol/secret.ts";
import type { Database } from "../../../shared/database.ts";
import { maxSecretUses, maxSecretUsesTold } from "../../bounds.ts";
import { secretUses } from "./schema.ts";

/** Notes that a secret goes out, without its value. The oldest rows make room. */
export const noteSecretUse = (
  db: Database,
  now: number,
  name: string,
  { kind, name: by, url, cause = "" }: SecretUse,
) => {
  const values = { name, kind, by, host: hostOf(url), cause, firstAt: now, lastAt: now };
  const { name: secret, kind: of, by: who, host, cause: why, times } = secretUses;
  const { position } = db
    .insert(secretUses)
    .values(values)
    .onConflictDoUpdate({ target: [secret, of, who, host, why], set: { lastAt: now, times: sql`${times} + 1` } })
    .returning()
    .get();
  db.delete(secretUses)
    .where(lte(secretUses.position, position - maxSecretUses))
    .run();
};

/** The uses of a secret since a time, newest first. */
export const secretUsesOf = (db: Database, name: string, since: number) =>
  db
    .select()
    .from(secretUses)
    .where(and(eq(secretUses.name, name), gte(secretUses.lastAt, since)))
    .orderBy(desc(secretUses.lastAt))
    .limit(maxSecretUsesTold)
    .all();
