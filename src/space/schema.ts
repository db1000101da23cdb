import { sql } from "drizzle-orm";
import { index, integer, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import type { FollowingEndpoint } from "../protocol/endpoint-rpc.ts";
import type { EntityType } from "../protocol/entity.ts";
import type { DurableEvent } from "../protocol/events.ts";
import type { Follows } from "../protocol/line.ts";
import type { Message, RouterDecision } from "../protocol/message.ts";
import type { BudgetNotice, ToolCallOutcome } from "../protocol/rpc.ts";
import type { ReadSpace } from "../protocol/run.ts";
import type { Release, RouterConfig, ShareOrigin, WakePolicy } from "../protocol/space.ts";
import type { ToolCall } from "../protocol/tool-call.ts";
import type { Was } from "../shared/stretches.ts";
import type { Routing } from "./wake.ts";

export { jobs, timers } from "../timers/schema.ts";

/** A message of kind `tool_call`. */
export type CallMessage = Message & { kind: "tool_call"; toolCall: ToolCall };

/** How people's part in a call ended. It is kept beside the event that ended it. */
export type CallOutcome = ToolCallOutcome["outcome"];

/** One row: the space itself. Deleted, it is all that is kept. Times are milliseconds since the epoch. */
export const space = sqliteTable("space", {
  id: text("id").primaryKey(),
  workspaceId: text("workspace_id").notNull(),
  name: text("name").notNull(),
  wakePolicy: text("wake_policy").$type<WakePolicy>().notNull(),
  shareOrigin: text("share_origin").$type<ShareOrigin>().notNull(),
  router: text("router", { mode: "json" }).$type<RouterConfig>(),
  /** The place in the log after which the space is confidential; null while it is open. */
  confidentialFrom: integer("confidential_from"),
  release: text("release", { mode: "json" }).$type<Release>(),
  createdBy: text("created_by"),
  createdAt: integer("created_at").notNull(),
  /** `seq` of the last event that changed what subscribers know of the space. */
  version: integer("version").notNull(),
  /** The place in the log that the deletion took. */
  deletedSeq: integer("deleted_seq"),
  /** Days for which messages are kept: by its own setting, and where that is null by its workspace's. */
  retentionDays: integer("retention_days"),
  workspaceRetentionDays: integer("workspace_retention_days"),
  /** Its workspace is suspended. */
  suspended: integer("suspended", { mode: "boolean" }).notNull().default(false),
});

/** The messages that an agent's run took: those from `firstSeq` to its mark, or of them those in stretches of the log. */
type Taken = { firstSeq?: number | undefined; taken?: [number, number][] | undefined };

/** The end of an agent's run. */
type RunMark = Taken & {
  id: string;
  outcome: "answered" | "silent" | "failed";
  reason?: string | undefined;
  reads?: ReadSpace[] | undefined;
};

/** A run that ended after one beside it, whose mark is newer: up to the message at `seq`. */
export type LateRead = { seq: number; at: number; run: RunMark };

/**
 * When and where a read mark was set, and the late reads since the member's mark before. `type`: of a member who left,
 * whose last mark it was. `again`: for its late reads alone the mark is told again.
 */
export type ReadPlaces = Taken & {
  seq: number;
  at: number;
  late?: LateRead[] | undefined;
  type?: EntityType;
  again?: true;
};

/**
 * Everything that happened, in order. Rows written are what a message costs, and an index is a row: a read mark
 * costs one, a message three.
 */
export const log = sqliteTable(
  "log",
  {
    seq: integer("seq").primaryKey(),
    type: text("type").$type<DurableEvent["type"]>().notNull(),
    /** The sender or the member. Of an edit or a deletion: the agent whose open mind said the message. */
    entityId: text("entity_id"),
    /** Messages only. Derived from (sender, clientKey) where there is one, so that this index keeps both unique. */
    messageId: text("message_id"),
    /** How many messages the log holds up to and with this row: a message's own ordinal. */
    messageCount: integer("message_count").notNull(),
    /** Messages, and deletions of such as were told elsewhere: what delivery needs to know and nobody is shown. */
    routing: text("routing", { mode: "json" }).$type<Routing>(),
    /** Updated messages: what was decided about the call, which its agent is told. A call's tombstone has one, and so is no message that was said. */
    outcome: text("outcome").$type<CallOutcome>(),
    /** Read marks, and members who left: what receipts need and nobody is shown. Null in older rows. */
    read: text("read", { mode: "json" }).$type<ReadPlaces>(),
    /** A message has the place of the newest event that edited or deleted it. That event has the place where its `was` was told. */
    changedSeq: integer("changed_seq"),
    /** An edit's or a deletion's old words, until each agent of the space was told to forget them. */
    was: text("was", { mode: "json" }).$type<Was[]>(),
    /** The event as it goes over the wire, JSON. */
    frame: text("frame").notNull(),
  },
  (table) => [
    uniqueIndex("log_message_id").on(table.messageId).where(sql`message_id IS NOT NULL`),
    uniqueIndex("log_message_count").on(table.messageCount).where(sql`message_id IS NOT NULL`),
    index("log_was").on(table.seq).where(sql`was IS NOT NULL`),
    // Few rows: those who ever joined are told when the space is deleted, and receipts name those who left. SQLite takes
    // it for a query that says one of the two in these words.
    index("log_members").on(table.type).where(sql`type = 'member.joined' OR type = 'member.left'`),
  ],
);

/** A member's newest read mark, `at` in milliseconds since the epoch. `run` and `late` are an agent's. */
export type ReadMark = { messageId: string; at: number; run?: RunMark; late?: LateRead[] };

/** A budget that an agent used up, for one member or for everybody, and the place in the log where it was told. */
export type ToldBudget = BudgetNotice & { seq: number };

/** The members now. The log has when they came and went. */
export const members = sqliteTable("members", {
  entityId: text("entity_id").primaryKey(),
  type: text("type").$type<EntityType>().notNull(),
  name: text("name").notNull(),
  joinedSeq: integer("joined_seq").notNull(),
  joinedAt: integer("joined_at").notNull(),
  /** The newest message that the member has read: its `seq` and its ordinal. */
  readSeq: integer("read_seq").notNull(),
  readCount: integer("read_count").notNull(),
  /** The mark itself, once there is one; for an agent, with what came of it. */
  mark: text("mark", { mode: "json" }).$type<ReadMark>(),
  /** How much a person is told, as they look or can be reached; null: nothing. */
  follows: text("follows").$type<Follows>(),
  /** An agent's notices that it has nothing left for somebody. Earlier versions stored an object, which counts as none. */
  spent: text("spent", { mode: "json" }).$type<ToldBudget[] | object>(),
});

/** The subscribers of the log, and how far each has come. */
export const subscribers = sqliteTable("subscribers", {
  id: text("id").primaryKey(),
  kind: text("kind").$type<"agent" | "index" | "person" | "endpoint">().notNull(),
  /** The agent, if the subscriber is its compartment for this space. */
  compartmentOf: text("compartment_of"),
  /** The events that an endpoint names, and whether it names the space. */
  endpoint: text("endpoint", { mode: "json" }).$type<Omit<FollowingEndpoint, "id">>(),
  /** Everything up to here has been taken. */
  cursor: integer("cursor").notNull(),
  /** Whether the subscriber was a member at its cursor. */
  inside: integer("inside", { mode: "boolean" }).notNull(),
  failures: integer("failures").notNull().default(0),
  /** Not before this time, after a failure. */
  retryAt: integer("retry_at"),
});

/** `at` in milliseconds since the epoch. */
export type StoredDecision = RouterDecision & { at: number };

/** The messages that the space's router is asked about, by their place in the log. */
export const decisions = sqliteTable(
  "decisions",
  {
    seq: integer("seq").primaryKey(),
    /** Null until it is decided; then it stays. */
    decision: text("decision", { mode: "json" }).$type<StoredDecision>(),
  },
  (table) => [index("decisions_pending").on(table.seq).where(sql`decision IS NULL`)],
);

/** The tokens that the router was billed, by the UTC day. */
export const routerLedger = sqliteTable("router_ledger", {
  day: text("day").primaryKey(),
  tokens: integer("tokens").notNull(),
});

/** The tool calls that show here as they stand now; the log has how each began, and every change. */
export const toolCalls = sqliteTable(
  "tool_calls",
  {
    /** Its message's place in the log. */
    seq: integer("seq").primaryKey(),
    agentId: text("agent_id").notNull(),
    isOpen: integer("is_open", { mode: "boolean" }).notNull(),
    /** Until when people may answer; null when nobody may any more. */
    expiresAt: integer("expires_at"),
    /** The place in the log of the event that made it so. */
    updatedSeq: integer("updated_seq").notNull(),
    message: text("message", { mode: "json" }).$type<CallMessage>().notNull(),
    /** The message as it stood when the space became confidential, if its call changed after that. */
    openMessage: text("open_message", { mode: "json" }).$type<CallMessage>(),
  },
  (table) => [
    index("tool_calls_open").on(table.agentId).where(sql`is_open = 1`),
    index("tool_calls_due").on(table.expiresAt).where(sql`expires_at IS NOT NULL`),
  ],
);
