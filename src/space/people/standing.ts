import { maxNeeds, type NeedsYou, type SpaceSummary, type Standing } from "../../protocol/line.ts";
import type { Message } from "../../protocol/message.ts";
import { maxUnreadCount } from "../../protocol/space.ts";
import { isoTime } from "../../shared/clock.ts";
import { maxUnreadScan } from "../bounds.ts";
import type { Log } from "../log/log.ts";
import type { MemberRow } from "../members.ts";
import type { Settings } from "../settings.ts";
import type { LiveStreams } from "../streams/live-streams.ts";
import type { ToolCalls } from "../tool-calls/tool-calls.ts";
import { type Addressed, type createAddressed, shortly } from "./addressed.ts";

export type Around = {
  log: Log;
  settings: Settings;
  toolCalls: ToolCalls;
  live: Pick<LiveStreams, "active">;
  addressed: ReturnType<typeof createAddressed>;
};

/** Whether the call of this message waits for this person, who has not answered. */
export const asks = ({ toolCall }: Pick<Message, "toolCall">, personId: string): boolean => {
  if (toolCall?.status !== "requires_action" || !toolCall.awaits) return false;
  const { approvers, answers } = toolCall.awaits;
  return (approvers?.includes(personId) ?? true) && !answers.some(({ entityId }) => entityId === personId);
};

const needOf = (message: Message): NeedsYou[] => {
  const { id: messageId, spaceId, toolCall, createdAt: at } = message;
  if (!toolCall?.awaits) return [];
  const { kind } = toolCall.awaits;
  return [
    { id: `${kind} ${toolCall.id}`, kind, spaceId, messageId, toolCallId: toolCall.id, title: toolCall.name, at },
  ];
};

const previewOf = ({ id: messageId, sender, text, toolCall, deleted }: Message): SpaceSummary["preview"] =>
  deleted ? undefined : { messageId, sender, text: shortly(text ?? toolCall?.name ?? "") };

/** Messages that wait for this person: an agent's question until they speak, a mention or a reply until they read it. */
export const waitingFor = (
  { addressed }: Pick<Around, "addressed">,
  { entityId, readCount }: Pick<MemberRow, "entityId" | "readCount">,
): Addressed[] => {
  const mine = addressed.of(entityId);
  const open = mine.addressed.filter(({ waits, ordinal }) => ordinal > (waits ? mine.lastOwn : readCount));
  return open.slice(-maxNeeds);
};

/** How many of others' messages are unread, among the newest `maxUnreadScan`. */
export const unreadOf = (
  { log }: Pick<Around, "log">,
  { entityId, readCount }: Pick<MemberRow, "entityId" | "readCount">,
): number => {
  const { messageCount: upTo } = log.head();
  return log.countOthers(entityId, { over: Math.max(readCount, upTo - maxUnreadScan), upTo }, maxUnreadCount);
};

/** A space as it stands for one of its people: the same as a full look at its log would say. */
export const standingFor = (around: Around, member: MemberRow): Standing => {
  const { entityId, readCount } = member;
  const { log, settings, toolCalls, live, addressed } = around;
  const space = settings.find();
  if (!space) throw new Error("standing: the space has no settings");
  const { id: spaceId, name, confidentialFrom, createdAt } = space;
  const head = log.head();
  const { messageCount } = head;
  const mine = addressed.of(entityId);
  const needsYou: NeedsYou[] = [
    ...toolCalls.askedOf(entityId, maxNeeds).flatMap(({ message }) => needOf(message)),
    ...waitingFor(around, member).map(({ messageId, kind, waits, text, at }): NeedsYou => {
      const as = waits ? "wait" : kind;
      return { id: `${as} ${messageId}`, kind: as, spaceId, messageId, title: text, at };
    }),
  ];
  const [newest] = toolCalls.current(log.messages({ over: messageCount - 1, upTo: messageCount }));
  const mentions = mine.addressed.filter(({ ordinal }) => ordinal > readCount).length;
  const preview = newest && previewOf(newest);
  const summary: SpaceSummary = {
    ...{ spaceId, name, seq: head.seq },
    ...(confidentialFrom !== null && { confidential: true as const }),
    unread: unreadOf(around, member),
    mentions: Math.min(mentions, maxUnreadCount),
    ...(preview && { preview }),
    working: [...new Set(live.active().map((each) => each.entityId))],
    needsYou: needsYou.length,
    at: newest?.createdAt ?? isoTime(createdAt),
  };
  return { summary, needsYou };
};
