import { asc, eq, sql } from "drizzle-orm";
import type { Member } from "../protocol/entity.ts";
import { isoTime } from "../shared/clock.ts";
import { type Database, prepared } from "../shared/database.ts";
import { members } from "./schema.ts";

export type MemberRow = typeof members.$inferSelect;

/**
 * The members of the space now, with their read marks. Bounded by `maxMembers`.
 *
 * Invariants
 * 1. What was read is kept as it is stored: this object is the table's only writer. What was kept in a transaction that
 *    is rolled back must be forgotten (`transaction` in `services.ts`).
 * 2. Nobody changes a row that was handed out. Rows in order are the very rows by id.
 */
export class Members {
  readonly #db: Database;
  readonly #known = new Map<string, MemberRow>();
  #inOrder: readonly MemberRow[] | undefined;
  #isPair: boolean | undefined;
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
    const row = this.#known.get(entityId) ?? this.#one().get({ entityId });
    if (row) this.#known.set(entityId, row);
    return row;
  }

  /** In the order in which they joined. */
  all(): readonly MemberRow[] {
    if (!this.#inOrder) this.#keep(this.#all().all());
    return this.#inOrder ?? [];
  }

  /** How many there are, counted no further than `most`. */
  count(most: number): number {
    return this.#first().all({ most }).length;
  }

  /** Whether there are two. */
  arePair(): boolean {
    this.#isPair ??= this.count(3) === 2;
    return this.#isPair;
  }

  insert(row: MemberRow): void {
    this.#writing().insert(members).values(row).run();
  }

  remove(entityId: string): void {
    this.#writing().delete(members).where(eq(members.entityId, entityId)).run();
  }

  change(entityId: string, changes: Partial<Pick<MemberRow, "name" | "readSeq" | "readCount" | "mark">>): void {
    this.#db.update(members).set(changes).where(eq(members.entityId, entityId)).run();
    const row = this.#known.get(entityId);
    if (!row) return;
    const changed = { ...row, ...changes };
    this.#known.set(entityId, changed);
    this.#inOrder = this.#inOrder?.map((each) => (each === row ? changed : each));
  }

  clear(): void {
    this.#writing().delete(members).run();
  }

  /** The rows are read anew when they are asked for next. */
  forget(): void {
    this.#known.clear();
    this.#inOrder = undefined;
    this.#isPair = undefined;
  }

  #keep(rows: readonly MemberRow[]): void {
    this.#inOrder = rows;
    for (const row of rows) this.#known.set(row.entityId, row);
  }

  /** The database, to write to this table. */
  #writing(): Database {
    this.forget();
    return this.#db;
  }
}

export const publicMember = (row: MemberRow): Member => ({
  id: row.entityId,
  type: row.type,
  name: row.name,
  joinedAt: isoTime(row.joinedAt),
});
