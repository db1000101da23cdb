import { asc, eq, sql } from "drizzle-orm";
import type { Member } from "../protocol/entity.ts";
import { isoTime } from "../shared/clock.ts";
import { type Database, prepared } from "../shared/database.ts";
import { members } from "./schema.ts";

export type MemberRow = typeof members.$inferSelect;

/** Who is in the space now, with their read marks. Bounded by `maxMembers`. */
export class Members {
  readonly #db: Database;
  readonly #one = prepared(() =>
    this.#db
      .select()
      .from(members)
      .where(eq(members.entityId, sql.placeholder("entityId")))
      .prepare(),
  );
  readonly #all = prepared(() => this.#db.select().from(members).orderBy(asc(members.joinedSeq)).prepare());
  readonly #first = prepared(() =>
    this.#db.select({ id: members.entityId }).from(members).limit(sql.placeholder("most")).prepare(),
  );

  constructor(db: Database) {
    this.#db = db;
  }

  find(entityId: string): MemberRow | undefined {
    return this.#one().get({ entityId });
  }

  /** In the order in which they joined. */
  all(): MemberRow[] {
    return this.#all().all();
  }

  /** How many there are, counted no further than `most`. */
  count(most: number): number {
    return this.#first().all({ most }).length;
  }

  insert(row: MemberRow): void {
    this.#db.insert(members).values(row).run();
  }

  remove(entityId: string): void {
    this.#db.delete(members).where(eq(members.entityId, entityId)).run();
  }

  change(entityId: string, changes: Partial<Pick<MemberRow, "name" | "readSeq" | "readCount" | "mark">>): void {
    this.#db.update(members).set(changes).where(eq(members.entityId, entityId)).run();
  }

  clear(): void {
    this.#db.delete(members).run();
  }
}

export const publicMember = (row: MemberRow): Member => ({
  id: row.entityId,
  type: row.type,
  name: row.name,
  joinedAt: isoTime(row.joinedAt),
});
