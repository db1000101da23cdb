import type { Follows, LineEvent, Notice } from "../protocol/line.ts";
import type { PersonDelivery } from "../protocol/person-rpc.ts";
import { lookedAtMs } from "./bounds.ts";
import type { NotificationEvent, Settled } from "./notifications.ts";
import { type PersonServices, readsConfidential } from "./services.ts";
import { alerts } from "./settings.ts";

/** `all` while a line is open. `mine`, which is what concerns the person, while only a device can be told. */
export const followsNow = ({ sockets, opening, devices, people }: PersonServices): Follows | null => {
  if (sockets.size > 0 || opening.size > 0) return "all";
  const self = people.find();
  return self && !self.rests && devices.all().length > 0 ? "mine" : null;
};

/** Whether the person looks at one of their own pages. One that died without a word counts for `lookedAtMs` at most. */
const isLookedAt = ({ sockets, clock, pingedAt }: PersonServices): boolean =>
  [...sockets.all()].some(({ socket, principal, data: { lookedAt } }) => {
    if (lookedAt === undefined || !readsConfidential(principal)) return false;
    return Math.max(lookedAt, pingedAt(socket)) > clock.now() - lookedAtMs;
  });

/**
 * Takes in what a space tells, and tells the lines and devices. Told again, it changes nothing. How the space stands is kept
 * while it tells all; else it would soon be wrong.
 */
export const hear = (services: PersonServices, delivery: PersonDelivery, follows: Follows): void => {
  const { spaces, notifications, people, clock, change } = services;
  const { spaceId, standing, readSeq = 0, notices = [], changed, left = [] } = delivery;
  change(delivery, () => {
    if (!standing)
      return [...spaces.remove(spaceId), ...cleared(services, delivery, notifications.forgetSpace(spaceId))];
    const told = follows === "all" ? spaces.store(spaceId, standing) : spaces.remove(spaceId);
    const asking = new Set(standing.needsYou.flatMap(({ toolCallId, messageId }) => (toolCallId ? [messageId] : [])));
    // What was read, answered or changed by now is no news: a space tells of several events in one go.
    const isNews = ({ kind, messageId, seq }: Notice): boolean =>
      !changed.includes(messageId) && (kind === "needs_you" ? asking.has(messageId) : seq > readSeq);
    const now = { now: clock.now(), isLookedAt: isLookedAt(services) };
    const settings = people.settings();
    const noted = notifications.note(spaceId, notices.filter(isNews), (kind) =>
      alerts(settings, { kind, spaceId }, now),
    );
    pushAll(services, delivery, noted);
    const done = notifications.settle(spaceId, { readSeq, changed, left, asking });
    return [...told, ...noted, ...cleared(services, delivery, done)];
  });
};

/** The devices that are told of a space. One that somebody else's session added hears nothing of a confidential one (C19). */
const devicesFor = ({ devices }: PersonServices, { standing, confidential }: PersonDelivery): string[] => {
  const isConfidential = standing?.summary.confidential ?? confidential;
  return devices.all().flatMap(({ id, principal }) => (isConfidential && !readsConfidential(principal) ? [] : id));
};

/** Notes a push of each loud notification for each device. */
const pushAll = (services: PersonServices, delivery: PersonDelivery, events: NotificationEvent[]): void => {
  const loud = events.filter(({ quiet }) => !quiet);
  if (loud.length === 0) return;
  for (const id of devicesFor(services, delivery)) {
    for (const { type: _, cursor: __, ...notification } of loud) services.pushes.note(id, notification);
  }
  services.pushing.begin();
};

const cleared = (services: PersonServices, delivery: PersonDelivery, { ids, shown }: Settled): LineEvent[] => {
  if (shown.length > 0) {
    for (const id of devicesFor(services, delivery)) services.pushes.clear(id, shown);
    services.pushing.begin();
  }
  return ids.length > 0 ? [{ type: "notification.cleared", ids }] : [];
};

/** Forgets what spaces told. They no longer tell of its deletion. Belongs into a transaction. */
export const forgetAll = ({ spaces, notifications }: PersonServices): void => {
  notifications.forgetAll();
  for (const id of spaces.ids()) spaces.remove(id);
};
