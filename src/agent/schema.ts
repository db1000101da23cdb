import { getTableColumns, sql } from "drizzle-orm";
import { index, integer, real, sqliteTable, sqliteView, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import type { AgentConfig } from "../protocol/agent.ts";
import type { ArchivalEntry, ArchivalSource } from "../protocol/archival.ts";
import type { JournalMeta } from "../protocol/exported-history.ts";
import type { HookScheme } from "../protocol/hook.ts";
import type { Origin } from "../protocol/message.ts";
import type { Goal } from "../protocol/mind.ts";
import type { Plan } from "../protocol/plan.ts";
import type { Root, SpaceSnapshot } from "../protocol/rpc.ts";
import type { RunOutcome, RunStatus, RunTrigger } from "../protocol/run.ts";
import type { ToolConfig } from "../protocol/tool.ts";
import type { ToolCall, ToolCallRelease } from "../protocol/tool-call.ts";
import type * as records from "./records.ts";

export { jobs, timers } from "../timers/schema.ts";

/** One row: who this agent is. */
export const agent = sqliteTable("agent", {
  id: text("id").primaryKey(),
  workspaceId: text("workspace_id").notNull(),
  /** Set in a compartment: its own id, which owns the ids of what it does, and its confidential space. `id` is the agent's. */
  compartmentId: text("compartment_id"),
  compartmentSpaceId: text("compartment_space_id"),
  config: text("config", { mode: "json" }).$type<AgentConfig>().notNull(),
  createdAt: integer("created_at").notNull(),
  updatedAt: integer("updated_at").notNull(),
  /** Rises with each change of config or secrets. In a compartment: the open mind's that it has. */
  settingsVersion: integer("settings_version").notNull().default(0),
  /** Where the last committed cycle left it. */
  activeSpaceId: text("active_space_id"),
  /** As of `runs`, for as long as none of them has one: of an import, or of an earlier release. */
  correction: real("correction").notNull().default(1),
  correctionModel: text("correction_model"),
  /** Its workspace is suspended: nothing begins or goes on. */
  suspended: integer("suspended", { mode: "boolean" }).notNull().default(false),
  /** The workspace's sealed secrets by name. */
  secrets: text("secrets", { mode: "json" }).$type<Record<string, string>>().notNull(),
  lastError: text("last_error", { mode: "json" }).$type<records.Failure & { at: number }>(),
  /** The newest root that its own recurring plans began (B1). */
  ownRoot: text("own_root", { mode: "json" }).$type<records.OwnRoot>(),
});

/** In an agent's open mind: its compartments, so that its end ends them. */
export const compartments = sqliteTable("compartments", {
  spaceId: text("space_id").primaryKey(),
  mindId: text("mind_id").notNull(),
});

/** In a compartment: the parts that its open mind fed it: `runs` (how far), lists of its state, `space:` and an id. The `hash` shows changes. */
export const feed = sqliteTable("feed", {
  part: text("part").primaryKey(),
  hash: text("hash").notNull(),
  value: text("value", { mode: "json" }).$type<unknown>().notNull(),
});

/** The spaces that it is in, and how far it has come in each one's log. */
export const spaces = sqliteTable("spaces", {
  id: text("id").primaryKey(),
  snapshot: text("snapshot", { mode: "json" }).$type<SpaceSnapshot>().notNull(),
  version: integer("version").notNull(),
  cursor: integer("cursor").notNull(),
  /** How far its messages are done with, for timeline runs: `SeenMark`. */
  processedSeq: integer("processed_seq").notNull().default(0),
  acknowledged: text("acknowledged", { mode: "json" }).$type<number[]>().notNull().default([]),
  /** Messages that did not wake it, are not in its inbox and were shown to no run. The next cycle is told how many. */
  leftToHistory: integer("left_to_history").notNull().default(0),
  /** Kept after leaving, so that a late delivery is known for what it is. */
  left: integer("left", { mode: "boolean" }).notNull().default(false),
});

/** An event as it came. `seq` is its place among all events, those of `inbox` and of `overheard`. */
const event = {
  seq: integer("seq").primaryKey(),
  eventId: text("event_id").notNull(),
  type: text("type").$type<records.InboxData["type"]>().notNull(),
  data: text("data", { mode: "json" }).$type<records.InboxData>().notNull(),
  rootId: text("root_id").notNull(),
  receivedAt: integer("received_at").notNull(),
};

/** Events that wake the agent, were taken by a run, or are dead. A run deletes those that it acknowledges. */
export const inbox = sqliteTable(
  "inbox",
  {
    ...event,
    /** False where it was taken from `overheard`. */
    wakes: integer("wakes", { mode: "boolean" }).notNull(),
    attempts: integer("attempts").notNull().default(0),
    status: text("status").$type<"pending" | "taken" | "dead">().notNull().default("pending"),
    lastError: text("last_error", { mode: "json" }).$type<records.Failure>(),
    /** Set once a run has taken it and given it back: not taken again before this time. Of a dead one, when it died. */
    retryAt: integer("retry_at"),
  },
  // A message comes once already: it lies behind the cursor of its space. An index is a row more for each.
  (table) => [uniqueIndex("inbox_event_id").on(table.eventId).where(sql`type <> 'space_message'`)],
);

export type InboxRow = typeof inbox.$inferSelect;

/** Events that wake nobody, until a batch takes them into the inbox. Their bounds are in `inbox/inbox.ts`. */
export const overheard = sqliteTable("overheard", event);

/** An overheard event as a row of the inbox. */
export const heardAs = (status: "pending" | "taken") => ({
  ...getTableColumns(overheard),
  wakes: sql<boolean>`0`.as("wakes"),
  attempts: sql<number>`0`.as("attempts"),
  status: sql<"pending" | "taken" | "dead">`${sql.raw(`'${status}'`)}`.as("status"),
  lastError: sql<records.Failure | null>`null`.as("last_error"),
  retryAt: sql<number | null>`null`.as("retry_at"),
});

/** The events of the inbox and those that were overheard. */
export const events = sqliteView("events").as((query) =>
  query
    .select()
    .from(inbox)
    .unionAll(query.select(heardAs("pending")).from(overheard)),
);

export const runs = sqliteTable(
  "runs",
  {
    ordinal: integer("ordinal").primaryKey(),
    id: text("id").notNull().unique(),
    status: text("status").$type<RunStatus>().notNull(),
    continuity: text("continuity").$type<AgentConfig["continuity"]>().notNull(),
    /** The run that stopped or absorbed it. */
    endedBy: text("ended_by"),
    trigger: text("trigger", { mode: "json" }).$type<RunTrigger>().notNull(),
    /** Sequence numbers of the inbox events that it took. */
    events: text("events", { mode: "json" }).$type<number[]>().notNull(),
    roots: text("roots", { mode: "json" }).$type<string[]>().notNull(),
    /** The spaces whose events it took. */
    spaceIds: text("space_ids", { mode: "json" }).$type<string[]>().notNull(),
    windowId: integer("window_id").notNull(),
    journalFrom: integer("journal_from").notNull(),
    journalTo: integer("journal_to"),
    /** The stretches of the journal that other runs wrote while this one waited. */
    rests: text("rests", { mode: "json" }).$type<records.JournalRest[]>(),
    told: text("told", { mode: "json" }).$type<records.ToldState>().notNull(),
    /** Whether its cycle is part of consciousness. */
    kept: integer("kept", { mode: "boolean" }).notNull().default(false),
    /** The newest kept run before it, 0 if there is none; and how many events the silent runs since took. */
    keptBefore: integer("kept_before").notNull(),
    silentBefore: integer("silent_before").notNull(),
    activeSpaceId: text("active_space_id"),
    outcome: text("outcome").$type<RunOutcome>(),
    reason: text("reason"),
    error: text("error", { mode: "json" }).$type<records.Failure>(),
    /** The agent's read marks in each space when the run ended. */
    receipts: text("receipts", { mode: "json" }).$type<records.Receipt[]>(),
    prefixReuse: real("prefix_reuse"),
    /** Passing faults of the model: how many in a row, since when, and when it goes on. */
    faults: integer("faults").notNull().default(0),
    firstFaultAt: integer("first_fault_at"),
    resumeAt: integer("resume_at"),
    startedAt: integer("started_at").notNull(),
    completedAt: integer("completed_at"),
    /** The person who had it begin. */
    person: text("person"),
    /** Written by earlier releases alone. */
    personRuns: integer("person_runs"),
    /** The agent's as the run ended. The newest run's holds. */
    correction: text("correction", { mode: "json" }).$type<records.Correction>(),
    /** How long it has worked, in milliseconds, beside the stretch that began at `worksSince`: null while it pauses or rests. */
    workedMs: integer("thought_ms").notNull().default(0),
    worksSince: integer("thinks_since"),
    /** In a compartment: whether it is the open mind's run, fed here as it ended. Null in an open mind. */
    fed: integer("fed", { mode: "boolean" }),
    /** The claim by which a guest's program has it, while one does. */
    lease: text("lease"),
  },
  // A timeline's runs that are under way or wait for answers. One that waits for a tool is found by its call.
  (table) => [
    index("runs_active")
      .on(table.ordinal)
      .where(sql`continuity = 'timeline' and status in ('running', 'waiting_reply')`),
    index("runs_ended_by").on(table.endedBy).where(sql`ended_by is not null`),
    // A run that waited may end long after those that began after it.
    index("runs_rested").on(table.completedAt).where(sql`rests is not null`),
    // A compartment's own runs among those that it was fed. An open mind writes no row of it.
    index("runs_own").on(table.ordinal).where(sql`fed = 0`),
  ],
);

/**
 * The members whose answers a run awaits, for each message that asked. Gone when a timeline's run goes on or ends; a
 * cycle's outlives it, until all have answered or the time is up.
 */
export const waits = sqliteTable(
  "waits",
  {
    callId: text("call_id").primaryKey(),
    runOrdinal: integer("run_ordinal").notNull(),
    spaceId: text("space_id").notNull(),
    text: text("text").notNull(),
    /** The question's place in the space's log; null while it is being asked. */
    questionSeq: integer("question_seq"),
    awaited: text("awaited", { mode: "json" }).$type<records.Awaited[]>().notNull(),
    dueAt: integer("due_at").notNull(),
    /** A cycle's question has it: what comes of its end has this root (B1). Null where a timeline's run rests. */
    root: text("root", { mode: "json" }).$type<Root>(),
  },
  (table) => [
    index("waits_by_run").on(table.runOrdinal),
    index("waits_by_space").on(table.spaceId),
    index("waits_by_due").on(table.dueAt),
  ],
);

/**
 * Tool calls that are more than a step of their run. They show in a space, wait for somebody, or their result comes
 * through the inbox. A row is deleted when nothing more can come of it.
 */
export const calls = sqliteTable(
  "calls",
  {
    callId: text("call_id").primaryKey(),
    runOrdinal: integer("run_ordinal").notNull(),
    /** The tool as it was configured when it was called: it may wait for months. */
    tool: text("tool", { mode: "json" }).$type<ToolConfig>().notNull(),
    input: text("input", { mode: "json" }).$type<unknown>().notNull(),
    /** Where it shows; null if it does not. */
    spaceId: text("space_id"),
    /** Where the agent was. */
    activeSpaceId: text("active_space_id"),
    root: text("root", { mode: "json" }).$type<Root>().notNull(),
    origin: text("origin", { mode: "json" }).$type<Origin>(),
    /** The release of words from a confidential space, as its people are shown it. */
    release: text("release", { mode: "json" }).$type<ToolCallRelease>(),
    streamId: text("stream_id"),
    /** Its run waits for the result; if not, the result comes through the inbox. */
    attached: integer("attached", { mode: "boolean" }).notNull(),
    /**
     * `asked`: people are asked. `ready`: it may run. `running`: it runs. `out`: a server has it. `late`: its run has
     * gone on, and a server may still answer. `answered`: the model does not have its outcome yet. `done`.
     */
    phase: text("phase").$type<"asked" | "ready" | "running" | "out" | "late" | "answered" | "done">().notNull(),
    outcome: text("outcome", { mode: "json" }).$type<records.CallOutcome>(),
    /** The person who let it run, and their words. */
    approval: text("approval", { mode: "json" }).$type<records.CallApproval>(),
    /** The status that the space was told last. */
    told: text("told").$type<ToolCall["status"]>(),
    /** It was sent to its server; it stands in the workspace's list. */
    pushed: integer("pushed", { mode: "boolean" }).notNull().default(false),
    listed: integer("listed", { mode: "boolean" }).notNull().default(false),
    /** Actions of it that failed in a row. */
    failures: integer("failures").notNull().default(0),
    /** Until when a server has it for itself, and under which name. */
    lease: text("lease", { mode: "json" }).$type<records.CallLease>(),
    /** When its run waits no longer; then, when nobody does. */
    dueAt: integer("due_at"),
    /** A call that is done is known until then, so that the same answer again is no error. */
    keptUntil: integer("kept_until"),
    /** When it is looked at next; null while it waits for others alone. */
    lookAt: integer("look_at"),
    createdAt: integer("created_at").notNull(),
  },
  (table) => [
    index("calls_run").on(table.runOrdinal),
    index("calls_look").on(table.lookAt),
    // Holds all that is asked of calls that wait, so that none of their rows is read.
    index("calls_waiting").on(table.phase, table.attached, table.dueAt, table.runOrdinal),
  ],
);
export type CallRow = typeof calls.$inferSelect;

/** Everything that the model was given, said, called and got back, in order. Append-only. */
export const journal = sqliteTable("journal", {
  seq: integer("seq").primaryKey(),
  runOrdinal: integer("run_ordinal").notNull(),
  step: integer("step").notNull(),
  kind: text("kind").$type<"inbox" | "preview" | "assistant" | "call" | "result">().notNull(),
  content: text("content", { mode: "json" }).$type<records.JournalContent>().notNull(),
  meta: text("meta", { mode: "json" }).$type<JournalMeta>(),
  createdAt: integer("created_at").notNull(),
});

/**
 * The journal's events, calls and said messages by their ids' own part, each with the row that names it first. An event
 * has its message's part. They are indexed when somebody asks. The part "" has the row that the index has come to.
 */
export const journalNames = sqliteTable("journal_names", {
  part: text("part").primaryKey(),
  seq: integer("seq").notNull(),
});

/** Stretches of consciousness: each begins with these instructions, this summary, and the cycles from `firstRun` on. */
export const windows = sqliteTable("windows", {
  id: integer("id").primaryKey(),
  instructions: text("instructions").notNull(),
  /** The agent's own tools, those of its MCP servers, and the rules of all: fixed for the runs in it. */
  toolset: text("toolset", { mode: "json" }).$type<records.Toolset>().notNull(),
  summary: text("summary"),
  /** The core blocks that stand in the instructions, by key. */
  blocks: text("blocks", { mode: "json" }).$type<records.HeadBlocks>().notNull().default({}),
  continuity: text("continuity").$type<AgentConfig["continuity"]>().notNull(),
  /** The first run whose cycle is whole in it. */
  firstRun: integer("first_run").notNull(),
  /** The first run that was told the state in this window: the one that is told all of it. */
  toldFrom: integer("told_from").notNull(),
  createdAt: integer("created_at").notNull(),
});

/** Tokens a day, UTC (B2). Where its persons and spaces are many, some have rows of their own (`day`, a blank, the id). */
export const ledger = sqliteTable("ledger", {
  day: text("day").primaryKey(),
  spent: integer("spent").notNull(),
  reserved: text("reserved", { mode: "json" }).$type<records.Account["reserved"]>().notNull(),
  /** In a day's row: the accounts of persons (C11) and spaces (L15), which are parts of it. */
  within: text("within", { mode: "json" }).$type<Record<string, records.Account>>().notNull().default({}),
});

export const memories = sqliteTable("memories", {
  key: text("key").primaryKey(),
  value: text("value").notNull(),
  updatedAt: integer("updated_at").notNull(),
});

/** Facts that the agent keeps beyond its context, each with where it comes from. Found by search. */
export const archival = sqliteTable("archival", {
  ordinal: integer("ordinal").primaryKey(),
  id: text("id").notNull().unique(),
  content: text("content").notNull(),
  metadata: text("metadata", { mode: "json" }).$type<ArchivalEntry["metadata"]>().notNull(),
  source: text("source", { mode: "json" }).$type<ArchivalSource>().notNull(),
  createdAt: integer("created_at").notNull(),
});

export const goals = sqliteTable("goals", {
  id: text("id").primaryKey(),
  description: text("description").notNull(),
  status: text("status").$type<Goal["status"]>().notNull(),
  priority: integer("priority"),
  longTerm: integer("long_term", { mode: "boolean" }).notNull(),
  createdAt: integer("created_at").notNull(),
  updatedAt: integer("updated_at").notNull(),
});

export const plans = sqliteTable("plans", {
  id: text("id").primaryKey(),
  name: text("name").notNull(),
  instruction: text("instruction").notNull(),
  runAfter: text("run_after"),
  scheduledAt: text("scheduled_at"),
  cron: text("cron"),
  timezone: text("timezone"),
  setBy: text("set_by").$type<Plan["setBy"]>().notNull(),
  /** Set if the agent made the plan itself. A one-off plan passes it on. Its person pays for what a recurring one begins. */
  root: text("root", { mode: "json" }).$type<Root>(),
  /** The tool call that set it. */
  callId: text("call_id"),
  status: text("status").$type<Plan["status"]>().notNull(),
  dueAt: integer("due_at").notNull(),
  /** When it is looked at: when it is due, or later if its event could not enter the inbox. */
  tryAt: integer("try_at").notNull(),
  /** The due time that it fired for last. */
  firedFor: integer("fired_for"),
  lastError: text("last_error", { mode: "json" }).$type<records.Failure>(),
  updatedAt: integer("updated_at").notNull(),
});

/** Ways in for webhook senders. `version` names the creation or rotation that set the secret. */
export const hooks = sqliteTable("hooks", {
  id: text("id").primaryKey(),
  scheme: text("scheme").$type<HookScheme>().notNull(),
  name: text("name").notNull(),
  header: text("header"),
  idHeader: text("id_header"),
  eventHeader: text("event_header"),
  template: text("template"),
  events: text("events", { mode: "json" }).$type<string[]>(),
  sealed: text("sealed").notNull(),
  version: text("version").notNull(),
  /** The secret before the last rotation, valid until then. */
  previousSealed: text("previous_sealed"),
  previousUntil: integer("previous_until"),
  createdAt: integer("created_at").notNull(),
  updatedAt: integer("updated_at").notNull(),
});

/** A model's summary of what is read no more: of cycles (`cycles`), or of a space's messages (the space's id). */
export const summaries = sqliteTable("summaries", {
  subject: text("subject").primaryKey(),
  /** Null until the first chunk was folded. */
  text: text("text"),
  /** For cycles, the first run of the window whose past it folds. For messages, how many came before its first. */
  base: integer("base").notNull(),
  /** The last that is in it: a run's ordinal; a message's place among the space's, from 1 on. */
  upTo: integer("up_to").notNull(),
  /** Up to which messages it is wanted; of cycles, 0: that follows from the window. */
  wanted: integer("wanted").notNull(),
  /** When the next chunk is folded; null if none is wanted. */
  tryAt: integer("try_at"),
  failures: integer("failures").notNull(),
  lastError: text("last_error", { mode: "json" }).$type<records.Failure>(),
  updatedAt: integer("updated_at").notNull(),
});
