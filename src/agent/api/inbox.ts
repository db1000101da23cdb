import type { InboxItem } from "../../protocol/run.ts";
import { isoTime } from "../../shared/clock.ts";
import { fault, faultOnceStored } from "../../shared/fault.ts";
import { acceptDelivery, acceptTrigger } from "../inbox/deliver.ts";
import type { InboxRow } from "../schema.ts";
import type { Area } from "./agent-runtime.ts";
import { cursorOf, page } from "./page.ts";

const inboxData = ({ data }: InboxRow): unknown => {
  if (data.type === "space_message") {
    const { spaceName, delivered, answers } = data;
    return { spaceName, ...delivered, ...(answers ? { answers } : {}) };
  }
  const { type: _, ...shown } = data;
  return shown;
};

export const inboxView = (row: InboxRow): InboxItem => ({
  eventId: row.eventId,
  type: row.type,
  data: inboxData(row),
  wakes: row.wakes,
  attempts: row.attempts,
  status: row.status,
  ...(row.lastError === null ? {} : { lastError: row.lastError }),
  receivedAt: isoTime(row.receivedAt),
});

/** A service's way into the inbox, what waits there, and what becomes of dead events. */
export const inboxArea: Area<"trigger" | "inbox" | "retryEvent" | "retryDeadEvents" | "discardEvent"> = {
  trigger: ({ services, loop }, event, idempotencyKey, root) => {
    const accepted = acceptTrigger(services, event, idempotencyKey, root);
    loop.wake();
    return accepted;
  },
  inbox: ({ services }, { limit, cursor, status }) =>
    page(services.inbox.page(cursorOf(cursor) ?? 0, limit + 1, status), limit, (row) => row.seq, inboxView),
  retryEvent: ({ services, loop }, eventId) => {
    const row = services.inbox.retry(eventId);
    loop.wake();
    return inboxView(row);
  },
  retryDeadEvents: ({ services, loop }) => {
    const retried = services.inbox.retryAll();
    if (retried > 0) loop.wake();
    return { retried };
  },
  discardEvent: ({ services }, eventId) => {
    services.transaction(() => services.inbox.discard(eventId));
    return null;
  },
};

/** The agent's webhook addresses, and the deliveries that come by them. */
type HookMethods = "hooks" | "createHook" | "hook" | "updateHook" | "rotateHook" | "deleteHook" | "receive";
export const hooksArea: Area<HookMethods> = {
  hooks: ({ services }) => services.hooks.list(),
  createHook: ({ services }, hook) => services.hooks.create(hook),
  hook: ({ services }, id) => services.hooks.get(id),
  updateHook: ({ services }, id, changes) => services.hooks.update(id, changes),
  rotateHook: ({ services }, id, rotation) => services.hooks.rotate(id, rotation),
  deleteHook: ({ services }, id) => {
    services.hooks.delete(id);
    return null;
  },
  receive: async ({ services, loop }, hookId, delivery) => {
    fault("hook.before-receive", services.object);
    const received = acceptDelivery(services, hookId, delivery);
    await faultOnceStored("hook.after-receive", services.object);
    loop.wake();
    return received;
  },
};
