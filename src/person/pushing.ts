import { vapidKeysOf } from "../auth/vapid.ts";
import type { Env } from "../env/env.ts";
import { backoff } from "../shared/backoff.ts";
import type { Clock } from "../shared/clock.ts";
import type { Database } from "../shared/database.ts";
import { ColloquyError } from "../shared/errors.ts";
import { type Crashable, faultOnceStored } from "../shared/fault.ts";
import { log } from "../shared/log.ts";
import { withTimeout } from "../shared/timeouts.ts";
import { credentialsUntil, hangsOn } from "../sockets/authenticated-sockets.ts";
import type { Jobs } from "../timers/jobs.ts";
import { lineProofAnswerMs, lineProofMs, maxPushesAtOnce } from "./bounds.ts";
import type { createDevices, DeviceRow } from "./devices.ts";
import type { Notifications } from "./notifications.ts";
import type { People } from "./people.ts";
import { push } from "./push.ts";
import { type Pushes, type PushRow, payloadOf } from "./pushes.ts";

const kind = "push";
const pauses = { firstMs: 5000, longestMs: 3_600_000, times: 4 };

type Around = {
  env: Env;
  db: Database;
  clock: Clock;
  jobs: Jobs;
  people: People;
  devices: ReturnType<typeof createDevices>;
  pushes: Pushes;
  notifications: Notifications;
  /** A device has gone by itself. In a transaction. */
  forgot: () => void;
  object: Crashable;
};

/**
 * Tells devices: a job for each, one push after another.
 *
 * Invariants
 * 1. A device is told only while the credentials that it was added with hold: its workspace is asked, at most `lineProofMs` before.
 * 2. Nothing goes out while the workspace is suspended, or with other keys than those that the device subscribed with.
 * 3. A notification counts as shown before its push is sent. So one that went out just before a crash is taken back too.
 */
export const createPushing = (around: Around) => {
  const { env, db, clock, jobs, people, devices, pushes, notifications, forgot, object } = around;
  /** When the credentials of each were proven. Memory only. */
  const proven = new Map<string, number>();
  let endings = 0;

  const forget = (id: string): boolean =>
    db.transaction(() => {
      const wasThere = devices.forget(id);
      if (wasThere) forgot();
      return wasThere;
    });

  const holds = async ({ id, principal }: DeviceRow): Promise<boolean> => {
    const now = clock.now();
    if ((proven.get(id) ?? 0) > now - lineProofMs) return true;
    const asked = endings;
    const workspace = env.WORKSPACE.getByName(principal.workspaceId);
    const until = await withTimeout(
      lineProofAnswerMs,
      credentialsUntil(workspace, principal, principal.entityId ?? ""),
    );
    if (until <= clock.now()) return false;
    if (asked === endings) proven.set(id, now);
    return true;
  };

  /** Sends what is due. Answers whether the device is still there. */
  const sendOne = async (device: DeviceRow, row: PushRow): Promise<boolean> => {
    const payload = payloadOf(row, notifications.find);
    if (!payload || row.until <= clock.now()) {
      pushes.done(row, row.ids, false);
      return true;
    }
    const vapid = vapidKeysOf(env);
    if (vapid.publicKey !== device.pushKey) return false;
    if (payload.type === "notification") notifications.pushed(payload.id);
    const pushed = await push(payload, device, {
      ...{ vapid, ttlMs: row.until - clock.now(), allowLoopback: env.ENVIRONMENT === "development" },
      fetch: (...request) => globalThis.fetch(...request),
    });
    await faultOnceStored("person.after-push", object);
    const { result } = pushed;
    if (result === "gone") return false;
    if ("reason" in pushed) log.warn("push.failed", { deviceId: device.id, result, reason: pushed.reason });
    if (pushed.result === "later") pushes.failed(row, clock.now() + backoff(row.failures, pauses, pushed.afterMs));
    else {
      pushes.done(row, payload.type === "cleared" ? payload.ids : row.ids, true);
      if (result === "sent") devices.pushed(device.id);
    }
    return true;
  };

  jobs.handle(kind, {
    atOnce: maxPushesAtOnce,
    async run({ key }) {
      for (;;) {
        const device = devices.find(key);
        if (!device || people.find()?.rests) return undefined;
        if (!(await holds(device))) break;
        const row = pushes.next(key);
        if (!row || row.dueAt > clock.now()) return row?.dueAt;
        try {
          if (!(await sendOne(device, row))) break;
        } catch (error) {
          // Without keys nobody is told. Those who subscribe once there are some are told of what is new then.
          if (!(error instanceof ColloquyError && error.code === "not_configured")) throw error;
          pushes.done(row, row.ids, false);
        }
      }
      forget(key);
      return undefined;
    },
  });

  return {
    /** Each device, or one, is told what waits for it. In the transaction that wrote that, or after it. */
    begin(deviceId?: string): void {
      for (const key of deviceId === undefined ? devices.all().map(({ id }) => id) : [deviceId])
        jobs.set({ kind, key });
    },

    /** Credentials of this entity, key or session may have ended: those of the devices that were added with them are proven at once. */
    proveAgain(subject: string): void {
      endings += 1;
      for (const { id, principal } of devices.all()) {
        if (!hangsOn(principal, subject)) continue;
        proven.delete(id);
        jobs.set({ kind, key: id });
      }
    },

    /** It was added anew: what was proven is of before. */
    outdate: (deviceId: string): void => void proven.delete(deviceId),

    /** Answers whether there was such a device. */
    forget,
  };
};
