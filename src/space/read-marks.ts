import type { ChannelOpen } from "../protocol/channel.ts";
import type { WelcomeFrame } from "../protocol/events.ts";
import type { ReadReceipt } from "../protocol/message.ts";
import type { Principal } from "../protocol/principal.ts";
import { isoTime } from "../shared/clock.ts";
import { ColloquyError } from "../shared/errors.ts";
import type { LogRow } from "./log/log.ts";
import type { MemberRow } from "./members.ts";
import { acting, seen } from "./rights.ts";
import type { ReadMark } from "./schema.ts";
import type { SpaceServices } from "./services.ts";
import type { RunRead } from "./streams/channel.ts";

/**
 * How far each member has read: a person by its word, an agent by its runs' ends.
 *
 * Invariants
 * 1. A mark moves forward only; an older one, or the same again, changes nothing and is no event. Only a failure gives
 *    way at its place, to what a second try came to.
 * 2. The mark in the member's row and its `member.read` in the log are stored together.
 */
const messageRow = (services: SpaceServices, messageId: string): LogRow => {
  const row = services.log.findMessage(messageId);
  if (row) return row;
  throw new ColloquyError("not_found", `There is no message ${messageId} in this space`);
};

/** A person had an agent try again what it had failed at: what comes of that is news. */
const isSecondTry = (known: ReadMark | null, mark: ReadMark): boolean =>
  known?.run?.outcome === "failed" && mark.run !== undefined && mark.run.outcome !== "failed";

const move = (services: SpaceServices, member: MemberRow, row: LogRow, mark: ReadMark): void => {
  if (row.seq < member.readSeq || (row.seq === member.readSeq && !isSecondTry(member.mark, mark))) return;
  services.record((append) => {
    append({ type: "member.read", ...publicMark(member.entityId, mark) });
    services.members.change(member, { readSeq: row.seq, readCount: row.messageCount, mark });
  });
};

export const markRead = (services: SpaceServices, principal: Principal, messageId: string): void => {
  const { member } = acting(services, principal);
  move(services, member, messageRow(services, messageId), { messageId, at: services.clock.now() });
};

/** A run has ended that took messages of this space. Nothing is kept of an agent that is no member, or of other messages. */
export const markReadByRun = (services: SpaceServices, { agentId, runId }: ChannelOpen, read: RunRead): void => {
  const member = services.members.find(agentId);
  if (!member) return;
  const { messageId, firstMessageId = messageId, outcome, reason } = read;
  const [first, newest] = [services.log.findMessage(firstMessageId), services.log.findMessage(messageId)];
  if (!first || !newest) return;
  const run = { id: runId, firstSeq: first.seq, outcome, reason };
  move(services, member, newest, { messageId, at: services.clock.now(), run });
};

/** The members who have read up to this message, without its sender. A run that took it says what came of it. */
export const readsOf = (services: SpaceServices, principal: Principal, messageId: string): ReadReceipt[] => {
  seen(services, principal);
  const { seq, entityId: senderId } = messageRow(services, messageId);
  return services.members.all().flatMap(({ entityId, name, type, readSeq, mark }) => {
    if (!mark || readSeq < seq || entityId === senderId) return [];
    const run = mark.run && mark.run.firstSeq <= seq ? publicRun(mark.run) : {};
    return [{ entityId, name, type, at: isoTime(mark.at), ...run }];
  });
};

/** Every member's mark, for who comes in. */
export const marksOf = (members: readonly MemberRow[]): NonNullable<WelcomeFrame["reads"]> =>
  members.flatMap(({ entityId, mark }) => (mark ? [publicMark(entityId, mark)] : []));

const publicMark = (entityId: string, { messageId, run }: ReadMark) => ({
  entityId,
  messageId,
  ...(run && publicRun(run)),
});

const publicRun = ({ id: runId, outcome, reason }: NonNullable<ReadMark["run"]>) => ({ runId, outcome, reason });
