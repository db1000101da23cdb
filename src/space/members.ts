import { asc, eq } from "drizzle-orm";
import type { Member } from "../protocol/entity.ts";
import type { Message } from "../protocol/message.ts";
import { isoTime } from "../shared/clock.ts";
import { type Database, Remembered } from "../shared/database.ts";
import { members } from "./schema.ts";

export type MemberRow = typeof members.$inferSelect;
export type Members = ReturnType<typeof createMembers>;

/**
 * The members of the space now, with their read marks. Bounded by `maxMembers`.
 *
 * Invariants
 * 1. All rows are read once and then kept as they are stored: this object is the table's only writer.
 * 2. Nobody changes a row or a list that was handed out.
 */
export const createMembers = (db: Database) => {
  const stored = (): MemberRow[] => db.select().from(members).orderBy(asc(members.joinedSeq)).all();
  /** By id, in the order in which they joined. */
  const known = new Remembered(db, () => new Map(stored().map((row) => [row.entityId, row])));
  const inOrder = new Remembered<readonly MemberRow[]>(db, () => [...known.get().values()]);
  const isIt = (entityId: string) => eq(members.entityId, entityId);
  return {
    find: (entityId: string): MemberRow | undefined => known.get().get(entityId),

    /** In the order in which they joined. */
    all: (): readonly MemberRow[] => inOrder.get(),

    insert(row: MemberRow): void {
      db.insert(members).values(row).run();
      known.get().set(row.entityId, row);
      inOrder.forget();
    },

    remove(entityId: string): void {
      db.delete(members).where(isIt(entityId)).run();
      known.get().delete(entityId);
      inOrder.forget();
    },

    change(
      row: MemberRow,
      changes: Partial<Pick<MemberRow, "name" | "readSeq" | "readCount" | "mark" | "spent" | "follows">>,
    ): void {
      db.update(members).set(changes).where(isIt(row.entityId)).run();
      known.get().set(row.entityId, { ...row, ...changes });
      inOrder.forget();
    },

    clear(): void {
      known.forget();
      inOrder.writing().delete(members).run();
    },
  };
};

export const publicMember = (row: MemberRow): Member => ({
  id: row.entityId,
  type: row.type,
  name: row.name,
  joinedAt: isoTime(row.joinedAt),
});

/** The member as the sender of its messages. */
export const senderOf = ({ entityId: id, name, type }: MemberRow): Message["sender"] => ({ id, name, type });
