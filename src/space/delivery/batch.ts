import type { DeliveredMessage, ToolCallOutcome } from "../../protocol/rpc.ts";
import { maxBatchLength, maxBatchMessages } from "../bounds.ts";
import { type LogRow, messageIn } from "../log/log.ts";
import { toldOutcome } from "../tool-calls/call-state.ts";
import { triggerSource } from "../wake.ts";
import type { SubscriberRow } from "./subscribers.ts";

/** The result of one walk along the log for one subscriber. */
export type Batch = {
  messages: DeliveredMessage[];
  /** Decisions about the subscriber's own tool calls. */
  answers: ToolCallOutcome[];
  /** The last event walked, and whether the subscriber was a member there. */
  cursor: number;
  inside: boolean;
  /** The walk ended at the subscriber's own leaving. */
  left: boolean;
  /** Whether there is anything to tell; if not, the cursor moves silently. */
  pending: boolean;
};

type Place = Pick<SubscriberRow, "id" | "kind" | "cursor" | "inside">;

const changes = new Set<LogRow["type"]>(["member.joined", "member.left", "member.renamed", "space.updated"]);

/** Whether the subscriber, as a member, would be told of this event. */
export const concerns = ({ id, kind }: Pick<Place, "id" | "kind">, row: LogRow): boolean => {
  if (row.type === "space.message") return kind === "agent" && row.entityId !== id;
  if (row.type === "space.message.updated") return row.outcome !== null && row.entityId === id;
  return changes.has(row.type);
};

/** Whether the subscriber is an agent that this message does not wake, as far as is decided. */
export const isOnlyHeard = ({ id, kind }: Pick<Place, "id" | "kind">, { routing }: LogRow): boolean =>
  kind === "agent" && routing !== null && triggerSource(routing, id, []) === "none";

/** The agents that the space's router chose, by the `seq` of the message. */
export type Chosen = ReadonlyMap<number, readonly string[]>;

/** The next batch for a subscriber. `rows` are the log's next after its cursor. Pure. */
export const batchFor = (subscriber: Place, rows: LogRow[], chosen: Chosen = new Map()): Batch =>
  subscriber.kind === "index" ? indexBatch(subscriber, rows) : agentBatch(subscriber, rows, chosen);

const indexBatch = (subscriber: Place, rows: LogRow[]): Batch => ({
  messages: [],
  answers: [],
  cursor: rows.at(-1)?.seq ?? subscriber.cursor,
  inside: true,
  left: false,
  pending: rows.some((row) => concerns(subscriber, row)),
});

/**
 * An agent is told everything that was stored while it was a member, except its own messages and read marks, and every
 * decision about its own calls. Its own leaving ends a batch, so that a return begins a new one.
 */
const agentBatch = (subscriber: Place, rows: LogRow[], chosen: Chosen): Batch => {
  const batch: Batch = {
    messages: [],
    answers: [],
    cursor: subscriber.cursor,
    inside: subscriber.inside,
    left: false,
    pending: false,
  };
  let length = 0;
  for (const row of rows) {
    const own = row.entityId === subscriber.id;
    if (batch.messages.length === maxBatchMessages || length > maxBatchLength) return batch;
    batch.cursor = row.seq;
    if (own && row.type === "member.joined") batch.inside = true;
    if (!batch.inside || !concerns(subscriber, row)) continue;
    batch.pending = true;
    if (row.type === "space.message" && row.routing) {
      const { root, repliedTo } = row.routing;
      batch.messages.push({
        message: messageIn(row),
        root,
        triggerSource: triggerSource(row.routing, subscriber.id, chosen.get(row.seq) ?? []),
        ...(repliedTo === subscriber.id ? { repliesToIt: true } : {}),
      });
      length += row.frame.length;
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
