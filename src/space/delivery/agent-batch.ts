import { erasedMark } from "../../protocol/entity.ts";
import type { MessageChange } from "../../protocol/message-change.ts";
import type { DeliveredMessage, ToolCallOutcome, TriggerSource } from "../../protocol/rpc.ts";
import { toldWas } from "../../shared/stretches.ts";
import { maxBatchLength, maxBatchMessages } from "../bounds.ts";
import { heardOf, type LogRow, messageIn } from "../log/log.ts";
import { changesSpace, isChange } from "../log/row-kinds.ts";
import { toldOutcome } from "../tool-calls/call-state.ts";
import { type Routing, triggerSource } from "../wake.ts";
import type { Batch, Place, Subscriber } from "./follower.ts";
import { memberOf } from "./subscribers.ts";

/** All that one walk along the log has for a mind of an agent. */
export type AgentBatch = Batch & {
  messages: DeliveredMessage[];
  /** Decisions about the agent's own tool calls. */
  answers: ToolCallOutcome[];
  changes: MessageChange[];
};

/**
 * Whether this mind of an agent hears what is said at this place of the log (C17). Its open mind hears up to
 * `openUpTo`, its compartment what comes after. In an open space `openUpTo` has no end.
 */
export const hears = ({ compartmentOf = null }: Subscriber, seq: number, openUpTo: number): boolean =>
  seq > openUpTo === (compartmentOf !== null);

/** Whether a mind of an agent may have the words that this row takes away: it heard them, or said them (C17). */
const mayHave = (subscriber: Subscriber, row: LogRow, openUpTo: number): boolean => {
  const isDeaf = (subscriber.compartmentOf ?? null) === null && (row.changedSeq ?? messageIn(row).seq) > openUpTo;
  return !isDeaf || row.entityId === memberOf(subscriber);
};

/** Whether the mind, as a member, would be told of this event. Of its agent's own messages: what another mind said. */
export const concerns = (subscriber: Subscriber, row: LogRow, openUpTo: number): boolean => {
  if (row.type === "space.message") {
    const isNews = row.entityId !== memberOf(subscriber) || row.routing?.own !== undefined;
    return isNews && hears(subscriber, row.seq, openUpTo);
  }
  if (isChange(row)) return mayHave(subscriber, row, openUpTo);
  if (row.type !== "space.message.updated") return changesSpace(row);
  return row.outcome !== null && row.entityId === memberOf(subscriber) && hears(subscriber, row.seq, openUpTo);
};

/** Whether this event does not wake the mind, as far as is decided. What was erased wakes none. */
export const isOnlyHeard = (subscriber: Subscriber, row: LogRow, openUpTo: number): boolean => {
  if (isChange(row) && row.was?.[0] === erasedMark) return true;
  if (!hears(subscriber, row.seq, openUpTo)) return !concerns(subscriber, row, openUpTo);
  return (
    row.type === "space.message" &&
    row.routing !== null &&
    sourceFor(memberOf(subscriber), row, row.routing, []) === "none"
  );
};

/** Whether a batch has what an erased entity said, and nothing that wakes the agent: it may wait for its turn. */
export const waitsItsTurn = ({ changes, messages, answers }: AgentBatch): boolean =>
  changes.some(({ was }) => was[0] === erasedMark) &&
  answers.length === 0 &&
  messages.every(({ triggerSource }) => triggerSource === "none");

/** Nobody is woken by words of their own. */
const sourceFor = (member: string, { entityId }: LogRow, routing: Routing, chosen: readonly string[]): TriggerSource =>
  entityId === member ? "none" : triggerSource(routing, member, chosen);

/** The agents that the space's router chose, by the `seq` of the message. */
export type Chosen = ReadonlyMap<number, readonly string[]>;

/**
 * The next batch for a mind of an agent. `rows` are the log's next after its cursor. Pure.
 * It is told everything that was stored while it was a member, and every decision about its own calls. Left out
 * are read marks, and what this mind said. Its own leaving ends a batch, so that a return begins a new one. What
 * is said in a confidential space is for its compartment alone.
 */
export const batchFor = (
  subscriber: Place,
  rows: LogRow[],
  chosen: Chosen = new Map(),
  openUpTo = Number.POSITIVE_INFINITY,
): AgentBatch => {
  const member = memberOf(subscriber);
  const hearsUpTo = (subscriber.compartmentOf ?? null) === null ? openUpTo : Number.POSITIVE_INFINITY;
  const { cursor, inside } = subscriber;
  const batch: AgentBatch = {
    ...{ cursor, inside, left: false, isPaced: false, pending: false },
    ...{ messages: [], answers: [], changes: [] },
  };
  let length = 0;
  for (const row of rows) {
    const own = row.entityId === member;
    if (batch.messages.length === maxBatchMessages || length > maxBatchLength) return batch;
    batch.cursor = row.seq;
    if (own && row.type === "member.joined") batch.inside = true;
    if (!batch.inside || !concerns(subscriber, row, openUpTo)) continue;
    batch.pending = true;
    if (row.type === "space.message" && row.routing) {
      const { root, repliedTo, own: words } = row.routing;
      const message = heardOf(messageIn(row), row.changedSeq, hearsUpTo);
      // Edited since the space is confidential: the edit's own row takes away what it heard.
      if (message.deleted) continue;
      batch.isPaced = true;
      batch.saidAt ??= message.createdAt;
      batch.messages.push({
        message,
        root,
        triggerSource: sourceFor(member, row, row.routing, chosen.get(row.seq) ?? []),
        ...(repliedTo === member ? { repliesToIt: true } : {}),
        ...(own && words ? { own: words } : {}),
      });
      length += row.frame.length;
    }
    if (isChange(row)) {
      const message = heardOf(messageIn(row), row.seq, hearsUpTo);
      const kind = message.deleted ? "deleted" : "edited";
      batch.changes.push({ seq: row.seq, kind, message, ...toldWas(row.was ?? [], message.createdAt) });
      length += row.frame.length + JSON.stringify(row.was).length;
    }
    const { toolCall } = row.outcome ? messageIn(row) : {};
    if (row.outcome && toolCall) {
      batch.answers.push(toldOutcome(row.seq, toolCall, row.outcome));
      length += row.frame.length;
    }
    if (own && row.type === "member.left") return { ...batch, inside: false, left: true };
  }
  return batch;
};
