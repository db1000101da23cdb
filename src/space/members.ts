import { asc, eq } from "drizzle-orm";
import type { Member } from "../protocol/entity.ts";
import { isoTime } from "../shared/clock.ts";
import type { Database } from "../shared/database.ts";
import { members } from "./schema.ts";

export type MemberRow = typeof members.$inferSelect;

/** Who is in the space now, with their read marks. Bounded by `maxMembers`. */
export class Members {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  find(entityId: string): MemberRow | undefined {
    return this.#db.select().from(members).where(eq(members.entityId, entityId)).get();
  }

  /** In the order in which they joined. */
  all(): MemberRow[] {
    return this.#db.select().from(members).orderBy(asc(members.joinedSeq)).all();
  }

  /** How many there are, counted no further than `most`. */
  count(most: number): number {
    return this.#db.select({ id: members.entityId }).from(members).limit(most).all().length;
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
