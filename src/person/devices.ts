import { asc, eq } from "drizzle-orm";
import { type Device, maxDevices } from "../protocol/notifications.ts";
import type { AddedDevice } from "../protocol/person-rpc.ts";
import type { Principal } from "../protocol/principal.ts";
import { type Clock, isoTime } from "../shared/clock.ts";
import type { Database } from "../shared/database.ts";
import { ColloquyError } from "../shared/errors.ts";
import { devices, pushes } from "./schema.ts";

export type DeviceRow = typeof devices.$inferSelect;

const viewOf = ({ id, name, endpoint, createdAt, lastPushAt }: DeviceRow): Device => ({
  ...{ id, name, host: new URL(endpoint).host, createdAt: isoTime(createdAt) },
  ...(lastPushAt !== null && { lastPushAt: isoTime(lastPushAt) }),
});

/** The devices of a person. One that goes takes what waits for it along. */
export const createDevices = (db: Database, clock: Clock) => {
  const all = (): DeviceRow[] => db.select().from(devices).orderBy(asc(devices.createdAt)).all();
  const find = (id: string): DeviceRow | undefined => db.select().from(devices).where(eq(devices.id, id)).get();

  return {
    all,
    find,
    list: (): Device[] => all().map(viewOf),

    /** The same one again is told as it is said now. Throws `limit_reached`. */
    add(added: AddedDevice, principal: Principal): { device: Device; isNew: boolean } {
      const before = find(added.id);
      if (!before && all().length >= maxDevices) {
        const most = `You have ${maxDevices} devices, which is the most (maxDevices)`;
        throw new ColloquyError("limit_reached", `${most}: take one away first`);
      }
      const { name = before?.name ?? new URL(added.endpoint).host, ...rest } = added;
      const values = { ...rest, name, principal, createdAt: before?.createdAt ?? clock.now() };
      const [row] = db
        .insert(devices)
        .values(values)
        .onConflictDoUpdate({ target: devices.id, set: values })
        .returning()
        .all();
      if (!row) throw new Error("devices: the row that was written is not there");
      return { device: viewOf(row), isNew: !before };
    },

    pushed: (id: string): void =>
      void db.update(devices).set({ lastPushAt: clock.now() }).where(eq(devices.id, id)).run(),

    /** Answers whether there was one. In a transaction. */
    forget(id: string): boolean {
      db.delete(pushes).where(eq(pushes.deviceId, id)).run();
      return db.delete(devices).where(eq(devices.id, id)).returning({ id: devices.id }).all().length > 0;
    },
  };
};
