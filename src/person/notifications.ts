import { asc, desc, eq, gt, lte } from "drizzle-orm";
import type { LineEvent, Notice } from "../protocol/line.ts";
import type { NoticeKind, Notification } from "../protocol/notifications.ts";
import { among, type Database } from "../shared/database.ts";
import { maxNotifications } from "./bounds.ts";
import { notifications } from "./schema.ts";

export type NotificationEvent = Extract<LineEvent, { type: "notification" }>;
type Row = typeof notifications.$inferSelect;

/** Notifications that were taken away. `shown`: those that a device may still show. */
export type Settled = { ids: string[]; shown: string[] };

const toldOf = ({ cursor, notification }: Row): NotificationEvent => ({
  type: "notification",
  cursor,
  ...notification,
});

/** What ends notifications of a space: its read mark, messages that changed, members who left. `asking`: messages that still ask. */
type Done = { readSeq: number; changed: string[]; left: string[]; asking: Set<string> };

/**
 * What the person was told one by one, until it is read.
 *
 * Invariants
 * 1. One of a message and a kind is stored once, also where its space tells it again after a crash.
 * 2. At most `maxNotifications`: one more takes the oldest away.
 */
export const createNotifications = (db: Database) => {
  const forget = (rows: Row[]): Settled => {
    const ids = rows.map(({ id }) => id);
    if (ids.length > 0) db.delete(notifications).where(among(notifications.id, ids)).run();
    return { ids, shown: rows.flatMap(({ id, pushed }) => (pushed ? id : [])) };
  };
  const ofSpace = (spaceId: string): Row[] =>
    db.select().from(notifications).where(eq(notifications.spaceId, spaceId)).all();

  return {
    /** The count of the newest that there ever was. */
    cursor(): number {
      const [row] = db.$client.sql.exec("SELECT seq FROM sqlite_sequence WHERE name = 'notifications'").toArray();
      return Number(row?.seq ?? 0);
    },

    after: (cursor: number): NotificationEvent[] =>
      db
        .select()
        .from(notifications)
        .where(gt(notifications.cursor, cursor))
        .orderBy(asc(notifications.cursor))
        .all()
        .map(toldOf),

    find: (id: string): Notification | undefined =>
      db.select().from(notifications).where(eq(notifications.id, id)).get()?.notification,

    /** Notes that a device may show it from now on. */
    pushed: (id: string): void =>
      void db.update(notifications).set({ pushed: true }).where(eq(notifications.id, id)).run(),

    /** In the transaction that stores how the space stands. Answers those that are new. `alerts`: what is not quiet. */
    note(spaceId: string, notices: Notice[], alerts: (kind: NoticeKind) => boolean): NotificationEvent[] {
      const events = notices.flatMap(({ seq, ...notice }) => {
        const { kind, messageId } = notice;
        const id = `${kind} ${messageId}`;
        const quiet = alerts(kind) ? {} : { quiet: true as const };
        const values = { id, spaceId, seq, notification: { ...notice, id, spaceId, ...quiet } };
        return db.insert(notifications).values(values).onConflictDoNothing().returning().all().map(toldOf);
      });
      const oldest = db.select({ cursor: notifications.cursor }).from(notifications);
      const [last] = oldest.orderBy(desc(notifications.cursor)).limit(1).offset(maxNotifications).all();
      if (last) db.delete(notifications).where(lte(notifications.cursor, last.cursor)).run();
      return events;
    },

    /** Takes away what is done with. */
    settle: (spaceId: string, { readSeq, changed, left, asking }: Done): Settled =>
      forget(
        ofSpace(spaceId).filter(({ seq, notification: { kind, messageId, by } }) => {
          if (changed.includes(messageId) || left.includes(by ?? "")) return true;
          return kind === "needs_you" ? !asking.has(messageId) : seq <= readSeq;
        }),
      ),

    forgetSpace: (spaceId: string): Settled => forget(ofSpace(spaceId)),

    forgetAll: (): void => void db.delete(notifications).run(),
  };
};
export type Notifications = ReturnType<typeof createNotifications>;
