import type { Follows, LineEvent, Notice } from "../protocol/line.ts";
import type { PersonDelivery } from "../protocol/person-rpc.ts";
import type { PersonServices } from "./services.ts";

/** How much spaces are to tell: all of it while a line is open, nothing while none is. */
export const followsNow = ({ sockets, opening }: PersonServices): Follows | null =>
  sockets.size > 0 || opening.size > 0 ? "all" : null;

/** Takes in what a space tells, and tells the lines. Told again, it changes nothing. */
export const hear = ({ spaces, notifications, change }: PersonServices, delivery: PersonDelivery): void => {
  const { spaceId, standing, readSeq = 0, notices = [], changed } = delivery;
  change(spaceId, () => {
    if (!standing) return [...spaces.remove(spaceId), ...cleared(notifications.forgetSpaces([spaceId]))];
    const told = spaces.store(spaceId, standing);
    const asking = new Set(standing.needsYou.flatMap(({ toolCallId, messageId }) => (toolCallId ? [messageId] : [])));
    // What was read, answered or changed by now is no news: a space tells of several events in one go.
    const isNews = ({ kind, messageId, seq }: Notice): boolean =>
      !changed.includes(messageId) && (kind === "needs_you" ? asking.has(messageId) : seq > readSeq);
    const noted = notifications.note(spaceId, notices.filter(isNews));
    return [...told, ...noted, ...cleared(notifications.settle(spaceId, { readSeq, changed, asking }))];
  });
};

const cleared = (ids: string[]): LineEvent[] => (ids.length > 0 ? [{ type: "notification.cleared", ids }] : []);

/** Nobody looks: what was told is not kept, since nobody tells of its deletion. */
export const forgetAll = ({ db, spaces, notifications }: PersonServices): void => {
  const ids = spaces.ids();
  if (ids.length === 0) return;
  db.transaction(() => {
    notifications.forgetSpaces(ids);
    for (const id of ids) spaces.remove(id);
  });
};
