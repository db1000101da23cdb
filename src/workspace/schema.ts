import { sql } from "drizzle-orm";
import { index, integer, primaryKey, real, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import type { AuditAction } from "../protocol/audit.ts";
import type { Disabled, EndpointType, WorkspaceEvent } from "../protocol/endpoint.ts";
import type { EndpointSecret } from "../protocol/endpoint-rpc.ts";
import type { ErasureKind } from "../protocol/erasure.ts";
import type { WorkspaceLimits } from "../protocol/limits.ts";
import type { Auth } from "../protocol/own-users.ts";
import type { WaitingToolCall } from "../protocol/tool-call.ts";
import type { UsageKind } from "../protocol/usage.ts";
import type { AuditWebhook, KeyScope, RegisteredWorkspace } from "../protocol/workspace.ts";

export { jobs, timers } from "../timers/schema.ts";

/** One row: the workspace itself. Times are milliseconds since the epoch. */
export const workspaces = sqliteTable("workspace", {
  id: text("id").primaryKey(),
  name: text("name").notNull(),
  createdAt: integer("created_at").notNull(),
  /** Whether a session that an admin made for another person may answer approvals as that person. */
  impersonatedApprovals: text("impersonated_approvals", { enum: ["refused", "allowed"] })
    .notNull()
    .default("refused"),
  /** The last re-sealing: by the secret of which print, since when, of how many agents, and what it could not open. */
  reseal: text("reseal", { mode: "json" }).$type<{
    print: string;
    startedAt: number;
    agents: number;
    unopened: string[];
  }>(),
  /** Whose JWTs it takes beside its own tokens. */
  auth: text("auth", { mode: "json" }).$type<Auth>(),
  /** Where the audit log is told, and up to which place of it its server has taken it. */
  auditWebhook: text("audit_webhook", { mode: "json" }).$type<AuditWebhook>(),
  auditTold: integer("audit_told").notNull().default(0),
  /** The operator has suspended it. */
  suspended: text("suspended", { mode: "json" }).$type<{ at: number; reason: string }>(),
  /** Days for which spaces keep messages that set nothing of their own. */
  retentionDays: integer("retention_days"),
  /** It is over: the row is all that it answers of. */
  deletedAt: integer("deleted_at"),
  /** Counts the changes of its endpoints. */
  endpointsVersion: integer("endpoints_version").notNull().default(0),
  /** The operator's limits, where they are less than the bounds. */
  limits: text("limits", { mode: "json" }).$type<WorkspaceLimits>().notNull().default({}),
});

/** All workspaces of the deployment. Only the registry has rows here. */
export const registry = sqliteTable(
  "registry",
  {
    position: integer("position").primaryKey({ autoIncrement: true }),
    id: text("id").notNull(),
    workspace: text("workspace", { mode: "json" }).$type<RegisteredWorkspace>().notNull(),
  },
  (table) => [uniqueIndex("registry_id").on(table.id)],
);

/** Counts of the deployment, by name and labels. Only a shard of the figures has rows here. */
export const counters = sqliteTable("counters", {
  series: text("series").primaryKey(),
  value: real("value").notNull(),
});

/** The last word of each object: how many of something it has. */
export const gauges = sqliteTable(
  "gauges",
  {
    family: text("family").notNull(),
    object: text("object").notNull(),
    value: integer("value").notNull(),
    at: integer("at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.family, table.object] }), index("gauges_at").on(table.at)],
);

/** `position` orders lists and is their cursor. */
export const entities = sqliteTable(
  "entities",
  {
    position: integer("position").primaryKey({ autoIncrement: true }),
    id: text("id").notNull(),
    type: text("type", { enum: ["human", "agent", "service"] }).notNull(),
    name: text("name").notNull(),
    /** An agent's name as it is compared; null for everyone else, whose names may repeat. */
    agentName: text("agent_name"),
    role: text("role", { enum: ["member", "admin"] }).notNull(),
    externalId: text("external_id"),
    /** How often it has signed out everywhere: tokens and sessions of before are void. */
    generation: integer("generation").notNull().default(0),
    /** When it did last: a JWT that was issued before is void. */
    signedOutAt: integer("signed_out_at"),
    createdAt: integer("created_at").notNull(),
  },
  (table) => [
    uniqueIndex("entities_id").on(table.id),
    uniqueIndex("entities_agent_name").on(table.agentName).where(sql`${table.agentName} is not null`),
    index("entities_type").on(table.type, table.position),
    index("entities_external").on(table.externalId).where(sql`external_id is not null`),
  ],
);

/** Keyed hashes of the `externalId` of people who were removed: none of them comes back by a JWT alone. */
export const removedSubjects = sqliteTable("removed_subjects", {
  hash: text("hash").primaryKey(),
  removedAt: integer("removed_at").notNull(),
});

export const keys = sqliteTable(
  "keys",
  {
    id: text("id").primaryKey(),
    hash: text("hash").notNull(),
    name: text("name"),
    scopes: text("scopes", { mode: "json" }).$type<KeyScope[]>().notNull().default(["full"]),
    createdAt: integer("created_at").notNull(),
    /** To the hour: a use within the hour after it is not written. */
    lastUsedAt: integer("last_used_at"),
    expiresAt: integer("expires_at"),
    /** The key that it was rolled to. */
    successorId: text("successor_id"),
    /** Whether tokens or sessions may hang on it. */
    signsIn: integer("signs_in", { mode: "boolean" }).notNull().default(false),
    /** Kept when it is revoked: a repeated request must not bring it back. */
    revokedAt: integer("revoked_at"),
  },
  (table) => [uniqueIndex("keys_hash").on(table.hash)],
);

export const secrets = sqliteTable("secrets", {
  name: text("name").primaryKey(),
  sealed: text("sealed").notNull(),
  updatedAt: integer("updated_at").notNull(),
});

/**
 * Codes of sign-in links that were not used yet, as hashes. `madeBy`: the admin who made it for another person. `issuer`:
 * the key, or the admin, by whose right it was made; null before that was kept. `keyId`: the key that this hangs on, where one does.
 * `authId`: the setting of the workspace's own users, where its maker came by a JWT.
 */
export const signInCodes = sqliteTable(
  "sign_in_codes",
  {
    hash: text("hash").primaryKey(),
    entityId: text("entity_id").notNull(),
    madeBy: text("made_by"),
    issuer: text("issuer"),
    keyId: text("key_id"),
    authId: text("auth_id"),
    expiresAt: integer("expires_at").notNull(),
  },
  (table) => [index("sign_in_codes_entity").on(table.entityId)],
);

/** The page's sessions that have not ended. */
export const sessions = sqliteTable(
  "sessions",
  {
    id: text("id").primaryKey(),
    entityId: text("entity_id").notNull(),
    expiresAt: integer("expires_at").notNull(),
  },
  (table) => [index("sessions_entity").on(table.entityId, table.expiresAt)],
);

/** The index of spaces, up to `cursor` in each space's log. A deleted space stays as a tombstone. */
export const spaces = sqliteTable(
  "spaces",
  {
    position: integer("position").primaryKey({ autoIncrement: true }),
    id: text("id").notNull(),
    name: text("name").notNull(),
    wakePolicy: text("wake_policy", { enum: ["every_message", "addressed"] }).notNull(),
    shareOrigin: text("share_origin", { enum: ["reference", "text", "name", "none"] }).notNull(),
    confidential: integer("confidential", { mode: "boolean" }).notNull().default(false),
    createdBy: text("created_by"),
    createdAt: text("created_at").notNull(),
    cursor: integer("cursor").notNull(),
    deleted: integer("deleted", { mode: "boolean" }).notNull().default(false),
  },
  (table) => [
    uniqueIndex("spaces_id").on(table.id),
    // To count what one person made in the last day, and in all, without reading the others.
    index("spaces_created_by").on(table.createdBy, table.createdAt).where(sql`created_by is not null`),
  ],
);

/** Spaces that may be made, until then, and that nobody has told of yet: they count too. `madeBy`: the person or service. */
export const spacesToBe = sqliteTable("spaces_to_be", {
  id: text("id").primaryKey(),
  madeBy: text("made_by"),
  until: integer("until").notNull(),
});

/** Tokens of a day that an agent has leased. `booked`: what it was or may be billed at its last question, the `seq`-th. */
export const tokenLeases = sqliteTable(
  "token_leases",
  {
    day: text("day").notNull(),
    agentId: text("agent_id").notNull(),
    leased: integer("leased").notNull(),
    booked: integer("booked").notNull(),
    seq: integer("seq").notNull(),
  },
  (table) => [primaryKey({ columns: [table.day, table.agentId] })],
);

/**
 * What was used on a day, as each mind and space told: `usage.ts`. The row of the day "" is not usage. Its `runs` say
 * up to which of its own rows the reporter has told, its `tokens` how many bytes it stores.
 */
export const usage = sqliteTable(
  "usage",
  {
    day: text("day").notNull(),
    reporter: text("reporter").notNull(),
    kind: text("kind").$type<UsageKind>().notNull(),
    subject: text("subject").notNull(),
    tokens: integer("tokens").notNull().default(0),
    runs: integer("runs").notNull().default(0),
    messages: integer("messages").notNull().default(0),
  },
  (table) => [primaryKey({ columns: [table.day, table.reporter, table.kind, table.subject] })],
);

/** The members of spaces. A space is named by its position, so that an entity's newest spaces are one range of the key. */
export const memberships = sqliteTable(
  "memberships",
  { entityId: text("entity_id").notNull(), spacePosition: integer("space_position").notNull() },
  (table) => [
    primaryKey({ columns: [table.entityId, table.spacePosition] }),
    index("memberships_space").on(table.spacePosition),
  ],
);

/** Calls of agents that wait for a server to ask for them, as their agents told last. */
export const waitingCalls = sqliteTable(
  "waiting_calls",
  {
    position: integer("position").primaryKey({ autoIncrement: true }),
    toolCallId: text("tool_call_id").notNull(),
    agentId: text("agent_id").notNull(),
    call: text("call", { mode: "json" }).$type<WaitingToolCall>().notNull(),
  },
  (table) => [uniqueIndex("waiting_calls_id").on(table.toolCallId), index("waiting_calls_agent").on(table.agentId)],
);

/** Outgoing webhooks: `endpoints.ts`. `version`: that of the workspace's endpoints since it changed. */
export const endpoints = sqliteTable(
  "endpoints",
  {
    position: integer("position").primaryKey({ autoIncrement: true }),
    id: text("id").notNull(),
    url: text("url").notNull(),
    types: text("types", { mode: "json" }).$type<EndpointType[]>().notNull(),
    /** Null: all spaces that are not confidential. */
    spaceIds: text("space_ids", { mode: "json" }).$type<string[]>(),
    description: text("description"),
    batch: integer("batch", { mode: "boolean" }).notNull(),
    /** The newest first. */
    secrets: text("secrets", { mode: "json" }).$type<EndpointSecret[]>().notNull(),
    disabled: text("disabled", { mode: "json" }).$type<Disabled>(),
    version: integer("version").notNull(),
    /** It was told of the workspace's own events up to here. */
    toldTo: integer("told_to").notNull(),
    createdAt: integer("created_at").notNull(),
  },
  (table) => [uniqueIndex("endpoints_id").on(table.id)],
);

/** What happened in the workspace of late, for its endpoints: `feed.ts`. `subject`: an id, or a place of the audit log. */
export const feed = sqliteTable("feed", {
  position: integer("position").primaryKey({ autoIncrement: true }),
  at: integer("at").notNull(),
  type: text("type").$type<WorkspaceEvent>().notNull(),
  subject: text("subject").notNull(),
});

/** The audit log: `audit.ts`. `once` names an act that is noted once. */
export const audit = sqliteTable(
  "audit",
  {
    position: integer("position").primaryKey({ autoIncrement: true }),
    at: integer("at").notNull(),
    action: text("action").$type<AuditAction>().notNull(),
    actor: text("actor").notNull(),
    actorAs: text("actor_as"),
    impersonatedBy: text("impersonated_by"),
    target: text("target").notNull(),
    detail: text("detail", { mode: "json" }).$type<Record<string, string | number | boolean>>(),
    once: text("once"),
  },
  (table) => [
    uniqueIndex("audit_once").on(table.once),
    index("audit_action").on(table.action),
    index("audit_actor").on(table.actor),
    index("audit_target").on(table.target),
  ],
);

/** Erasures, under way and over: `erasures.ts`. `names`: until it is over. `rows` and `objects`: once it is. */
export const erasures = sqliteTable(
  "erasures",
  {
    position: integer("position").primaryKey({ autoIncrement: true }),
    id: text("id").notNull(),
    kind: text("kind").$type<ErasureKind>().notNull(),
    phase: integer("phase").notNull().default(-1),
    names: text("names", { mode: "json" }).$type<string[]>().notNull(),
    rows: integer("rows").notNull().default(0),
    objects: integer("objects").notNull().default(0),
    requests: integer("requests").notNull().default(0),
    createdAt: integer("created_at").notNull(),
    completedAt: integer("completed_at"),
  },
  (table) => [uniqueIndex("erasures_id").on(table.id)],
);

/** The objects that an erasure visits, while it is under way. `place` of `upTo`: how far it has come in a space's log. */
export const erasureVisits = sqliteTable(
  "erasure_visits",
  {
    erasureId: text("erasure_id").notNull(),
    target: text("target").notNull(),
    place: integer("place").notNull().default(0),
    upTo: integer("up_to"),
    rows: integer("rows").notNull().default(0),
    objects: integer("objects").notNull().default(0),
    requests: integer("requests").notNull().default(0),
    isDone: integer("is_done", { mode: "boolean" }).notNull().default(false),
  },
  (table) => [primaryKey({ columns: [table.erasureId, table.target] })],
);

/** Objects that had a socket, and when one of it was proven last, to the hour. */
export const socketObjects = sqliteTable("socket_objects", {
  id: text("id").primaryKey(),
  provenAt: integer("proven_at").notNull(),
});

/** Requests with an `Idempotency-Key`: under way while `status` is null. */
export const requests = sqliteTable(
  "requests",
  {
    principal: text("principal").notNull(),
    key: text("key").notNull(),
    bodyHash: text("body_hash").notNull(),
    status: integer("status"),
    body: text("body"),
    begunAt: integer("begun_at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.principal, table.key] }), index("requests_begun").on(table.begunAt)],
);
