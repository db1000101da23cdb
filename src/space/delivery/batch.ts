import { erasedMark } from "../../protocol/entity.ts";
import type { DeliveredMessage, MessageChange, ToolCallOutcome, TriggerSource } from "../../protocol/rpc.ts";
import { toldWas } from "../../shared/stretches.ts";
import { maxBatchLength, maxBatchMessages } from "../bounds.ts";
import { heardOf, type LogRow, messageIn } from "../log/log.ts";
import { toldOutcome } from "../tool-calls/call-state.ts";
import { type Routing, triggerSource } from "../wake.ts";
import { memberOf, type SubscriberRow } from "./subscribers.ts";

/** The result of one walk along the log for one subscriber. */
export type Batch = {
  messages: DeliveredMessage[];
  /** Decisions about the subscriber's own tool calls. */
  answers: ToolCallOutcome[];
  changes: MessageChange[];
  /** The last event walked, and whether the subscriber was a member there. */
  cursor: number;
  inside: boolean;
  /** The walk ended at the subscriber's own leaving. */
  left: boolean;
  /** Whether there is anything to tell; if not, the cursor moves silently. */
  pending: boolean;
};

/** A batch that tells nothing yet. */
export const batchOf = (of: Pick<Batch, "cursor" | "inside" | "left" | "pending">): Batch => {
  return { messages: [], answers: [], changes: [], ...of };
};

type Subscriber = Pick<SubscriberRow, "id" | "kind"> & Partial<Pick<SubscriberRow, "compartmentOf">>;
type Place = Subscriber & Pick<SubscriberRow, "cursor" | "inside">;

/**
 * Whether this mind of an agent hears what is said at this place of the log (C17). Its open mind hears up to
 * `openUpTo`, its compartment what comes after. In an open space `openUpTo` has no end.
 */
export const hears = ({ compartmentOf = null }: Subscriber, seq: number, openUpTo: number): boolean =>
  seq > openUpTo === (compartmentOf !== null);

const changes = new Set<LogRow["type"]>(["member.joined", "member.left", "member.renamed", "space.updated"]);

export const isChange = ({ type }: Pick<LogRow, "type">): boolean =>
  type === "message.updated" || type === "message.deleted";

/** Whether a mind of an agent may have the words that this row takes away: it heard them, or said them (C17). */
const mayHave = (subscriber: Subscriber, row: LogRow, openUpTo: number): boolean => {
  const isDeaf = (subscriber.compartmentOf ?? null) === null && (row.changedSeq ?? messageIn(row).seq) > openUpTo;
  return !isDeaf || row.entityId === memberOf(subscriber);
};

/** Whether the subscriber, as a member, would be told of this event. Of its agent's own messages: what another mind said. */
export const concerns = (subscriber: Subscriber, row: LogRow, openUpTo: number): boolean => {
  if (row.type === "space.message") {
    const isNews = row.entityId !== memberOf(subscriber) || row.routing?.own !== undefined;
    return subscriber.kind === "agent" && isNews && hears(subscriber, row.seq, openUpTo);
  }
  if (isChange(row)) return subscriber.kind === "agent" && mayHave(subscriber, row, openUpTo);
  if (row.type !== "space.message.updated") return changes.has(row.type);
  return row.outcome !== null && row.entityId === memberOf(subscriber) && hears(subscriber, row.seq, openUpTo);
};

/** Whether the subscriber is an agent's mind that this event does not wake, as far as is decided. What was erased wakes none. */
export const isOnlyHeard = (subscriber: Subscriber, row: LogRow, openUpTo: number): boolean => {
  if (subscriber.kind !== "agent") return false;
  if (isChange(row) && row.was?.[0] === erasedMark) return true;
  if (!hears(subscriber, row.seq, openUpTo)) return !concerns(subscriber, row, openUpTo);
  return (
    row.type === "space.message" &&
    row.routing !== null &&
    sourceFor(memberOf(subscriber), row, row.routing, []) === "none"
  );
};

/** Whether a batch has what an erased entity said, and nothing that wakes the agent: it may wait for its turn. */
export const waitsItsTurn = ({ changes, messages, answers }: Batch): boolean =>
  changes.some(({ was }) => was[0] === erasedMark) &&
  answers.length === 0 &&
  messages.every(({ triggerSource }) => triggerSource === "none");

/** Nobody is woken by words of their own. */
const sourceFor = (member: string, { entityId }: LogRow, routing: Routing, chosen: readonly string[]): TriggerSource =>
  entityId === member ? "none" : triggerSource(routing, member, chosen);

/** The agents that the space's router chose, by the `seq` of the message. */
export type Chosen = ReadonlyMap<number, readonly string[]>;

/** The next batch for a subscriber. `rows` are the log's next after its cursor. Pure. */
export const batchFor = (
  subscriber: Place,
  rows: LogRow[],
  chosen: Chosen = new Map(),
  openUpTo = Number.POSITIVE_INFINITY,
): Batch =>
  subscriber.kind === "index" ? indexBatch(subscriber, rows, openUpTo) : agentBatch(subscriber, rows, chosen, openUpTo);

const indexBatch = (subscriber: Place, rows: LogRow[], openUpTo: number): Batch => {
  const pending = rows.some((row) => concerns(subscriber, row, openUpTo));
  return batchOf({ cursor: rows.at(-1)?.seq ?? subscriber.cursor, inside: true, left: false, pending });
};

/**
 * An agent is told everything that was stored while it was a member, and every decision about its own calls. Left out
 * are read marks, and what this mind of it said. Its own leaving ends a batch, so that a return begins a new one. What
 * is said in a confidential space is for its compartment alone.
 */
const agentBatch = (subscriber: Place, rows: LogRow[], chosen: Chosen, openUpTo: number): Batch => {
  const member = memberOf(subscriber);
  const hearsUpTo = (subscriber.compartmentOf ?? null) === null ? openUpTo : Number.POSITIVE_INFINITY;
  const { cursor, inside } = subscriber;
  const batch = batchOf({ cursor, inside, left: false, pending: false });
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
