import type { ChannelOpen, WelcomeFrame } from "../protocol/events.ts";
import type { Follows, Standing } from "../protocol/line.ts";
import type { Message, ReadReceipt } from "../protocol/message.ts";
import type { Principal } from "../protocol/principal.ts";
import {
  neverAny,
  type Page,
  type SpaceHistory,
  type SpaceMessage,
  type SpaceRpc,
  type SpaceWindow,
} from "../protocol/rpc.ts";
import { ColloquyError } from "../shared/errors.ts";
import { compartmentId } from "../shared/ids.ts";
import { maxAskedAtOnce, maxLateReads, maxPageSize, maxSearchedMessages } from "./bounds.ts";
import { heardOf, type LogRow, messageIn, messageOf, type Ordinals } from "./log/log.ts";
import type { MemberRow } from "./members.ts";
import { standingFor, unreadOf, waitingFor } from "./people/standing.ts";
import { isUntold, publicRun, receiptsOf } from "./receipts.ts";
import { acting, memberIn, readable, requireAwake, spaceIn } from "./rights.ts";
import type { LateRead, ReadMark, ReadPlaces } from "./schema.ts";
import type { SpaceServices } from "./services.ts";
import { type SettingsRow, snapshotOf } from "./settings.ts";
import type { RunRead } from "./streams/channel.ts";

/**
 * Reads the space for people and agents, and keeps how far each member has read. A person says so, an agent's runs at
 * their ends.
 *
 * Invariants
 * 1. A read mark moves forward only; an older one, or the same again, changes nothing and is no event. Only a failure
 *    gives way at its place, to what a second try came to.
 * 2. The mark in the member's row and its `member.read` in the log are stored together. A run's end that the mark has
 *    passed is kept with the mark. It goes into the log with the next one, or with the same one again where there are
 *    many. The mark of a member who leaves goes into the log with that.
 */
const size = (limit: number): number => Math.min(Math.max(1, Math.trunc(limit)), maxPageSize);

/** The messages between two ordinals, with their calls as they stand now. */
const current = (services: SpaceServices, between: Ordinals, deafMindId?: string): Message[] =>
  services.toolCalls.current(services.log.messages(between, openUpTo(services, deafMindId)), deafMindId);

/** Up to where in the log this mind hears: one that is not deaf hears all. */
const openUpTo = ({ settings }: SpaceServices, deafMindId: string | undefined): number =>
  deafMindId === undefined ? Number.POSITIVE_INFINITY : (settings.find()?.confidentialFrom ?? 0);

/**
 * Messages by `seq`, newest last: the newest before `before`, or, given `after` alone, the oldest after it.
 * `nextCursor` goes on in the same direction: it is the next `before`, or the next `after`.
 */
export const listMessages = (
  services: SpaceServices,
  principal: Principal,
  page: Parameters<SpaceRpc["list"]>[1],
): Page<Message> => {
  readable(services, principal);
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

/** A text as it is compared in a search. */
const folded = (text: string): string => text.normalize("NFKC").toLowerCase();

/**
 * The newest messages before `before` that hold each of the words, newest last. Looks through `maxSearchedMessages` of them:
 * `nextCursor` is the next `before`, also where none was found.
 */
export const searchMessages = (
  services: SpaceServices,
  principal: Principal,
  { q, before, limit }: Parameters<SpaceRpc["search"]>[1],
): Page<Message> => {
  readable(services, principal);
  const upTo = before === undefined ? services.log.head().messageCount : services.log.countAt(before - 1);
  const looked = current(services, { over: Math.max(0, upTo - maxSearchedMessages), upTo });
  const words = folded(q).split(/\s+/);
  const found = looked.filter(({ text }) => text !== undefined && words.every((word) => folded(text).includes(word)));
  const items = found.slice(-size(limit));
  const isCut = items.length < found.length;
  const [first] = isCut ? items : looked;
  return { items, nextCursor: first && (isCut || upTo > looked.length) ? String(first.seq) : null };
};

/** What waits for this person, oldest first: calls that they may answer, agents' questions, unread mentions and replies. */
export const askedOf = (services: SpaceServices, principal: Principal): Message[] => {
  const { confidentialFrom } = readable(services, principal);
  const member = principal.entityId === undefined ? undefined : services.members.find(principal.entityId);
  if (member?.type !== "human") return [];
  const now = services.clock.now();
  const asked = services.toolCalls.askedOf(member.entityId, maxAskedAtOnce).filter(
    // Nobody waits for the others any more: the events that say so come in a moment.
    ({ seq, expiresAt, agentId }) =>
      seq > (confidentialFrom ?? 0) && (expiresAt ?? 0) > now && services.members.find(agentId) !== undefined,
  );
  const calls = services.toolCalls.current(asked.map(({ message }) => message));
  const said = waitingFor(services.ofPeople, member).flatMap(
    ({ messageId }) => services.log.findMessage(messageId) ?? [],
  );
  if (member.follows !== "all") services.ofPeople.addressed.forget(member.entityId);
  const waiting = [...calls, ...said.map(messageIn)];
  return waiting.toSorted((one, other) => one.seq - other.seq);
};

/** The newest message and, for a member, how many of others' messages lie after its read mark. */
export const latest = (
  services: SpaceServices,
  principal: Principal,
): { lastMessage?: Message | undefined; unreadCount?: number | undefined } => {
  readable(services, principal);
  const { messageCount } = services.log.head();
  const [lastMessage] = current(services, { over: messageCount - 1, upTo: messageCount });
  const member = principal.entityId === undefined ? undefined : services.members.find(principal.entityId);
  if (!member) return { lastMessage };
  return { lastMessage, unreadCount: unreadOf(services, member) };
};

/** A person asks to be told of the space from now on, and is told how it stands. */
export const attend = (
  services: SpaceServices,
  workspaceId: string,
  personId: string,
  follows: Follows,
): Standing & { readSeq: number } => {
  requireAwake(spaceIn(services, workspaceId));
  const member = memberIn(services, personId);
  if (member.type !== "human") throw new ColloquyError("forbidden", "Only people have a line");
  services.asked(personId);
  services.transaction(() => {
    const { members, subscribers, log } = services;
    if (member.follows !== follows) members.change(member, { follows });
    if (follows === "all") subscribers.insert({ id: personId, kind: "person", cursor: log.head().seq, inside: true });
  });
  return { ...standingFor(services.ofPeople, member), readSeq: member.readSeq };
};

type Reading = { space: SettingsRow; total: number; deafMindId?: string };

/**
 * What a mind of an agent may read here (C17). In a confidential space only its compartment reads all: another mind
 * reads the first `total` messages, those from before it became confidential.
 */
const readingOf = (services: SpaceServices, workspaceId: string, agentId: string, mindId = agentId): Reading => {
  const space = spaceIn(services, workspaceId);
  memberIn(services, agentId);
  const { confidentialFrom } = space;
  if (confidentialFrom === null || mindId === compartmentId(services.ids, agentId, space.id)) {
    return { space, total: services.log.head().messageCount };
  }
  return { space, total: services.log.countAt(confidentialFrom), deafMindId: mindId };
};

/** The space's history as an agent sees it: the newest `limit` messages, without the newest `offset`. */
export const windowFor = (
  services: SpaceServices,
  workspaceId: string,
  agentId: string,
  page: { limit: number; offset: number },
  mindId?: string,
): SpaceWindow => {
  const { space, total, deafMindId } = readingOf(services, workspaceId, agentId, mindId);
  const upTo = Math.max(0, total - Math.max(0, Math.trunc(page.offset)));
  const messages = current(services, { over: Math.max(0, upTo - size(page.limit)), upTo }, deafMindId);
  return { space: snapshotOf(space, services.members.all()), messages, total };
};

/** The messages after a place in the log, oldest first. Agents index them. */
export const historyFor = (
  services: SpaceServices,
  workspaceId: string,
  agentId: string,
  page: { after: number; limit: number },
  mindId?: string,
): SpaceHistory => {
  const { space, total, deafMindId } = readingOf(services, workspaceId, agentId, mindId);
  const openEnd = total === 0 ? neverAny : (space.confidentialFrom ?? 0);
  const end = deafMindId === undefined ? services.log.head().seq : openEnd;
  const over = Math.min(total, services.log.countAt(page.after));
  const upTo = Math.min(total, over + size(page.limit));
  const messages = current(services, { over, upTo }, deafMindId);
  const [before = null] = services.log.messages({ over: over - 1, upTo: over }, openUpTo(services, deafMindId));
  const more = upTo < total;
  return { name: space.name, before, messages, cursor: more ? (messages.at(-1)?.seq ?? end) : end, more };
};

const messageRow = (services: SpaceServices, messageId: string, total = Number.POSITIVE_INFINITY): LogRow => {
  const row = services.log.findMessage(messageId);
  if (row && row.messageCount <= total) return row;
  throw new ColloquyError("not_found", `There is no message ${messageId} in this space`);
};

/** One message with the name of its space. */
export const findMessage = (
  services: SpaceServices,
  principal: Principal,
  messageId: string,
  isShown?: boolean,
): { message: Message; spaceName: string } => {
  const { name: spaceName } = readable(services, principal, isShown);
  const [message] = services.toolCalls.current([messageOf(messageRow(services, messageId).frame)]);
  if (!message) throw new Error("a message is as it stands now");
  return { message, spaceName };
};

/** One message, as an agent of the space sees it. */
export const messageFor = (
  services: SpaceServices,
  workspaceId: string,
  agentId: string,
  messageId: string,
  mindId?: string,
): SpaceMessage => {
  const { total, deafMindId } = readingOf(services, workspaceId, agentId, mindId);
  const { frame, messageCount, changedSeq } = messageRow(services, messageId, total);
  const message = heardOf(messageOf(frame), changedSeq, openUpTo(services, deafMindId));
  return { ...message, newer: total - messageCount };
};

/** A person had an agent try again what it had failed at: what comes of that is news. */
const isSecondTry = (known: ReadMark | null, mark: ReadMark): boolean =>
  known?.run?.outcome === "failed" && mark.run !== undefined && mark.run.outcome !== "failed";

const placesOf = (seq: number, { at, run }: ReadMark, late: LateRead[] | undefined): ReadPlaces => {
  const { firstSeq, taken } = run ?? {};
  return { seq, at, firstSeq, taken, late };
};

/** The read marks of a member who leaves, for the log: the late ones, and the newest as one of them. */
export const lastPlaces = ({ type, readSeq: seq, mark }: MemberRow): ReadPlaces | null => {
  if (!mark) return null;
  const newest = mark.run ? [{ seq, at: mark.at, run: mark.run }] : [];
  return { seq, at: mark.at, type, late: [...(mark.late ?? []), ...newest] };
};

/** False if the member's mark has come as far. */
const move = (services: SpaceServices, member: MemberRow, row: LogRow, mark: ReadMark): boolean => {
  const { readSeq, mark: before, entityId } = member;
  if (row.seq < readSeq || (row.seq === readSeq && !isSecondTry(before, mark))) return false;
  services.record((append) => {
    const places = placesOf(row.seq, mark, before?.late);
    append({ type: "member.read", ...publicMark(entityId, mark), places });
    services.members.change(member, { readSeq: row.seq, readCount: row.messageCount, mark });
  });
  return true;
};

export const markRead = (services: SpaceServices, principal: Principal, messageId: string): void => {
  const { member } = acting(services, principal);
  move(services, member, messageRow(services, messageId), { messageId, at: services.clock.now() });
};

/** A run has ended that took messages of this space. Nothing is kept of an agent that is no member, or of other messages. */
export const markReadByRun = (services: SpaceServices, { agentId, runId }: ChannelOpen, read: RunRead): void => {
  const member = services.members.find(agentId);
  if (!member) return;
  const { messageId, firstMessageId = messageId, taken, outcome, reason, reads } = read;
  const [first, newest] = [services.log.findMessage(firstMessageId), services.log.findMessage(messageId)];
  if (!first || !newest) return;
  const run = { id: runId, firstSeq: first.seq, taken, outcome, reason, reads };
  const at = services.clock.now();
  if (!move(services, member, newest, { messageId, at, run })) keepLate(services, member, { seq: newest.seq, at, run });
};

/** A run beside this one, which took newer messages, has ended before it. */
const keepLate = (services: SpaceServices, member: MemberRow, read: LateRead): void => {
  const { mark } = member;
  if (!mark || mark.late?.some(({ run }) => run.id === read.run.id) || !isUntold(services, member, read)) return;
  const { late: before = [], ...told } = mark;
  const late = [...before, read];
  // Endpoints hear of it from the log alone, and of a failure people do.
  const isFollowed = services.members.all().some(({ follows }) => follows !== null);
  const isAwaited = services.subscribers.endpoints().length > 0 || (read.run.outcome === "failed" && isFollowed);
  if (late.length < maxLateReads && !isAwaited) {
    services.transaction(() => services.members.change(member, { mark: { ...told, late } }));
    return;
  }
  services.record((append) => {
    const places = { ...placesOf(member.readSeq, mark, late), again: true as const };
    append({ type: "member.read", ...publicMark(member.entityId, mark), places });
    services.members.change(member, { mark: told });
  });
};

export const readsOf = (services: SpaceServices, principal: Principal, messageId: string): ReadReceipt[] => {
  readable(services, principal, false);
  return receiptsOf(services, messageRow(services, messageId));
};

/** Every member's mark, for who comes in. */
export const marksOf = (members: readonly MemberRow[]): NonNullable<WelcomeFrame["reads"]> =>
  members.flatMap(({ entityId, mark }) => (mark ? [publicMark(entityId, mark)] : []));

const publicMark = (entityId: string, { messageId, run }: ReadMark) => ({
  entityId,
  messageId,
  ...(run && publicRun(run)),
});
