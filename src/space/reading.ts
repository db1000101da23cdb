import type { Message } from "../protocol/message.ts";
import type { Principal } from "../protocol/principal.ts";
import type { Page, SpaceHistory, SpaceWindow } from "../protocol/rpc.ts";
import { maxUnreadCount } from "../protocol/space.ts";
import { maxPageSize, maxUnreadScan } from "./bounds.ts";
import type { Ordinals } from "./log/log.ts";
import { memberIn, seen, spaceIn } from "./rights.ts";
import type { SpaceServices } from "./services.ts";
import { snapshotOf } from "./settings.ts";

export type MessagePage = { before?: number | undefined; after?: number | undefined; limit: number };

const size = (limit: number): number => Math.min(Math.max(1, Math.trunc(limit)), maxPageSize);

/** The messages between two ordinals, with their calls as they stand now. */
const current = ({ log, toolCalls }: SpaceServices, between: Ordinals): Message[] =>
  toolCalls.current(log.messages(between));

/**
 * Messages by `seq`, newest last: the newest before `before`, or, given `after` alone, the oldest after it.
 * `nextCursor` goes on in the same direction: it is the next `before`, or the next `after`.
 */
export const listMessages = (services: SpaceServices, principal: Principal, page: MessagePage): Page<Message> => {
  seen(services, principal);
  const limit = size(page.limit);
  const { before, after } = page;
  const over = after === undefined ? 0 : services.log.countAt(after);
  const upTo = before === undefined ? services.log.head().messageCount : services.log.countAt(before - 1);
  if (upTo <= over) return { items: [], nextCursor: null };
  const forward = after !== undefined && before === undefined;
  const ordinals: Ordinals = forward
    ? { over, upTo: Math.min(upTo, over + limit) }
    : { over: Math.max(over, upTo - limit), upTo };
  const items = current(services, ordinals);
  const more = forward ? ordinals.upTo < upTo : ordinals.over > over;
  const last = forward ? items.at(-1) : items[0];
  return { items, nextCursor: more && last ? String(last.seq) : null };
};

/** The newest message and, for a member, how many of others' messages lie after its read mark. */
export const latest = (
  services: SpaceServices,
  principal: Principal,
): { lastMessage?: Message | undefined; unreadCount?: number | undefined } => {
  seen(services, principal);
  const { messageCount } = services.log.head();
  const [lastMessage] = current(services, { over: messageCount - 1, upTo: messageCount });
  const member = principal.entityId === undefined ? undefined : services.members.find(principal.entityId);
  if (!member) return { lastMessage };
  const unread = { over: member.readCount, upTo: Math.min(messageCount, member.readCount + maxUnreadScan) };
  const unreadCount = services.log.countOthers(member.entityId, unread, maxUnreadCount);
  return { lastMessage, unreadCount };
};

/** The space's history as an agent sees it: the newest `limit` messages, without the newest `offset`. */
export const windowFor = (
  services: SpaceServices,
  workspaceId: string,
  agentId: string,
  page: { limit: number; offset: number },
): SpaceWindow => {
  const space = spaceIn(services, workspaceId);
  memberIn(services, agentId);
  const total = services.log.head().messageCount;
  const upTo = Math.max(0, total - Math.max(0, Math.trunc(page.offset)));
  const messages = current(services, { over: Math.max(0, upTo - size(page.limit)), upTo });
  return { space: snapshotOf(space, services.members.all()), messages, total };
};

/** The messages after a place in the log, oldest first. Agents index them. */
export const historyFor = (
  services: SpaceServices,
  workspaceId: string,
  agentId: string,
  page: { after: number; limit: number },
): SpaceHistory => {
  const { name } = spaceIn(services, workspaceId);
  memberIn(services, agentId);
  const head = services.log.head();
  const over = services.log.countAt(page.after);
  const upTo = Math.min(head.messageCount, over + size(page.limit));
  const messages = current(services, { over, upTo });
  const [before = null] = services.log.messages({ over: over - 1, upTo: over });
  const more = upTo < head.messageCount;
  return { name, before, messages, cursor: more ? (messages.at(-1)?.seq ?? head.seq) : head.seq, more };
};
