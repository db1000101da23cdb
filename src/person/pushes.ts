import { and, asc, eq } from "drizzle-orm";
import type { Notification } from "../protocol/notifications.ts";
import type { Clock } from "../shared/clock.ts";
import type { Database } from "../shared/database.ts";
import { maxClearedIds, maxNotifications, pushPauseMs, pushTtlMs } from "./bounds.ts";
import { pushes } from "./schema.ts";

export type PushRow = typeof pushes.$inferSelect;

/** The payload that a page's service worker gets. `count`: how many other notifications of the space it stands for. */
export type PushPayload =
  | ({ type: "notification"; count?: number } & Pick<
      Notification,
      "id" | "kind" | "spaceId" | "messageId" | "title" | "body"
    >)
  | { type: "cleared"; ids: string[] };

const cleared = "cleared";
/** The topic of a notification: those of a space go together, what needs the person goes by itself. */
const topicOf = ({ kind, id, spaceId }: Notification): string => (kind === "needs_you" ? id : spaceId);

/** The payload of a row now: its newest unread notification, which stands for the others. Pure. */
export const payloadOf = (
  { topic, ids }: Pick<PushRow, "topic" | "ids">,
  find: (id: string) => Notification | undefined,
): PushPayload | undefined => {
  if (topic === cleared) return ids.length === 0 ? undefined : { type: "cleared", ids: ids.slice(0, maxClearedIds) };
  const unread = ids.flatMap((id) => find(id) ?? []);
  const newest = unread.at(-1);
  if (!newest) return undefined;
  const { id, kind, spaceId, messageId, title, body } = newest;
  const count = unread.length - 1;
  return { type: "notification", id, kind, spaceId, messageId, title, body, ...(count > 0 && { count }) };
};

/**
 * The pushes that wait for devices.
 *
 * Invariants
 * 1. A row holds the newest `maxNotifications` ids alone. What they say is read as it is sent: nothing that was read, edited or deleted
 *    meanwhile.
 * 2. A row stays until its push service has answered and its pause is over. What is sent again after a crash has the same id.
 */
export const createPushes = (db: Database, clock: Clock) => {
  const isIt = ({ deviceId, topic }: Pick<PushRow, "deviceId" | "topic">) =>
    and(eq(pushes.deviceId, deviceId), eq(pushes.topic, topic));
  const find = (key: Pick<PushRow, "deviceId" | "topic">): PushRow | undefined =>
    db.select().from(pushes).where(isIt(key)).get();

  const append = (deviceId: string, topic: string, ids: string[]): void => {
    const before = find({ deviceId, topic });
    const now = clock.now();
    const values = {
      ...{ deviceId, topic, ids: [...(before?.ids ?? []), ...ids].slice(-maxNotifications), until: now + pushTtlMs },
      dueAt: before?.dueAt ?? now,
    };
    db.insert(pushes)
      .values(values)
      .onConflictDoUpdate({ target: [pushes.deviceId, pushes.topic], set: values })
      .run();
  };

  return {
    /** Notes a push of the notification. Belongs into the transaction that stores it. */
    note: (deviceId: string, notification: Notification): void =>
      append(deviceId, topicOf(notification), [notification.id]),

    /** Notes that the device must stop showing these. Belongs into the transaction that takes them away. */
    clear: (deviceId: string, ids: string[]): void => append(deviceId, cleared, ids),

    /** The one of a device that is due first. */
    next: (deviceId: string): PushRow | undefined =>
      db.select().from(pushes).where(eq(pushes.deviceId, deviceId)).orderBy(asc(pushes.dueAt)).limit(1).get(),

    /** Takes these ids out of the row, sent or not. Ids that came meanwhile wait for the end of the pause. */
    done(row: PushRow, ids: string[], wasSent: boolean): void {
      const left = (find(row)?.ids ?? []).filter((id) => !ids.includes(id));
      if (left.length === 0 && !(wasSent && row.topic.startsWith("spc_"))) db.delete(pushes).where(isIt(row)).run();
      else {
        const dueAt = wasSent && row.topic !== cleared ? clock.now() + pushPauseMs : clock.now();
        db.update(pushes).set({ ids: left, dueAt, failures: 0 }).where(isIt(row)).run();
      }
    },

    /** It is tried again then. */
    failed: (row: PushRow, dueAt: number): void =>
      void db
        .update(pushes)
        .set({ dueAt: Math.ceil(dueAt), failures: row.failures + 1 })
        .where(isIt(row))
        .run(),
  };
};
export type Pushes = ReturnType<typeof createPushes>;
