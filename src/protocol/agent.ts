import * as z from "zod";
import { ContextConfig } from "./context-config.ts";

import { entityId, spaceId } from "./ids.ts";
import { EmbedderConfig, ModelConfig } from "./model-config.ts";
import { component, Label, Name, patchOf, strictComponent, Timestamp, TimeZone } from "./text.ts";
import { McpServers, McpStatus, ToolConfigs, ToolRules } from "./tool.ts";
import { StorageUse } from "./usage.ts";

/** Where context comes from: the agent's own stream of cycles, or the space's timeline, read back. */
export const Continuity = z.enum(["consciousness", "timeline"]);

/** Who thinks the agent's runs: its model here, or a program that connects from outside (`guest.ts`). */
export const Runtime = z.enum(["house", "guest"]);

/** `threaded` adds replies to single messages, and waiting for answers. */
const Messaging = z.enum(["simple", "threaded"]);

const minutesOfDay = 24 * 60;
const minutesOfWeek = 7 * minutesOfDay;

export const Limits = z.strictObject({
  maxSteps: z.int().min(1).max(100).default(20),
  maxTokensPerRun: z.int().min(1000).max(10_000_000).default(50_000),
  /** Runs at a time; `timeline` only: a consciousness does one thing at a time. */
  maxConcurrentRuns: z.int().min(1).max(20).default(5),
  /** Minutes of work in all. They stop while a run pauses after a fault, or waits for people or tools. */
  maxRunMinutes: z.number().min(0.1).max(minutesOfDay).default(30),
  maxWakesPerRoot: z.int().min(1).max(100).default(6),
  /** Runs that may begin in any hour. */
  maxRunsPerHour: z.int().min(1).max(100_000).default(600),
  maxTokensPerDay: z.int().min(1000).max(1_000_000_000).default(2_000_000),
  /** The share of a day's tokens that what one person began may use; 1 bounds nobody. */
  maxShareOfPerson: z.number().min(0.01).max(1).default(0.25),
});
export type Limits = z.infer<typeof Limits>;

/** Wakes the agent again and again, so that it looks after what nobody asks for. */
export const Heartbeat = strictComponent("Heartbeat", {
  everyMinutes: z.int().min(5).max(minutesOfWeek),
  /** Hours of the day, the end not included; they may go over midnight, such as from 22 to 6. */
  activeHours: z
    .strictObject({ start: z.int().min(0).max(23), end: z.int().min(0).max(24) })
    .refine(({ start, end }) => start !== end % 24, "must begin and end at different hours; leave it out for all day")
    .optional(),
  /** IANA name, such as Asia/Riyadh; UTC if left out. */
  timezone: TimeZone.optional(),
});
export type Heartbeat = z.infer<typeof Heartbeat>;

export const AgentConfig = strictComponent("AgentConfig", {
  name: Name,
  description: z.string().max(1000).default(""),
  instructions: z.string().max(64_000).default(""),
  model: ModelConfig.default({ provider: "rehearsal", deltasPerSecond: 25 }),
  /** `house` if left out. */
  runtime: Runtime.optional(),
  continuity: Continuity.default("consciousness"),
  messaging: Messaging.default("simple"),
  limits: Limits.default(() => Limits.parse({})),
  context: ContextConfig.default(() => ContextConfig.parse({})),
  /** Off if left out. */
  heartbeat: Heartbeat.optional(),
  /** Its own tools, beside those that every agent has. */
  tools: ToolConfigs.default([]),
  toolRules: ToolRules.default([]),
  mcp: McpServers.default({ servers: [] }),
  /** Whether it has the tools for blocks, its archive and search; their declarations are part of every input. */
  memoryTools: z.boolean().default(true),
  /** For its search; `feature-hashing` if left out. */
  embedder: EmbedderConfig.optional(),
});
export type AgentConfig = z.infer<typeof AgentConfig>;

/**
 * A PATCH carries any part of a config. `limits` and `context` merge field by field; `null` removes a field of
 * `context`; lists are replaced whole. The merged whole is parsed again, so a patch leaves nothing invalid behind.
 */
export const UpdateAgent = strictComponent("UpdateAgent", {
  ...patchOf(AgentConfig.shape),
  limits: z.record(z.string(), z.number()).optional(),
  context: z.record(z.string(), z.json()).optional(),
  /** `null` turns it off. */
  heartbeat: Heartbeat.nullable().optional(),
  /** `null` goes back to the default. */
  embedder: EmbedderConfig.nullable().optional(),
});
export type UpdateAgent = z.infer<typeof UpdateAgent>;

/** The state of the agent's loop, since when, what it waits for, and its last error. */
export const AgentActivity = z.object({
  state: z.enum(["idle", "running", "backing_off", "budget_exhausted"]),
  since: Timestamp,
  runId: z.string().optional(),
  /** The next timer of any kind: the end of a pause, a plan, a heartbeat, the deadline of a wait. */
  nextDueAt: Timestamp.optional(),
  /** When a run or an event that failed is tried again. */
  nextRetryAt: Timestamp.optional(),
  nextPlanAt: Timestamp.optional(),
  /** Runs that rest until people or agents have answered and open questions of cycles, tool calls that somebody has, events in the inbox. */
  waiting: z.object({ replies: z.int(), calls: z.int(), events: z.int(), dead: z.int() }),
  refusing: z
    .enum(["maxInboxEvents", "maxRunsPerHour"])
    .optional()
    .describe(
      "The bound that has it refuse what comes: all of it, or triggers and webhooks; left out while it takes things in",
    ),
  lastError: z.object({ code: z.string(), message: z.string(), at: Timestamp }).optional(),
  guest: z
    .object({ connected: z.boolean() })
    .optional()
    .describe("Of a guest: whether a program of it was there in the last 10 s"),
  tokensToday: z.int(),
  storage: StorageUse.optional().describe("Of its open mind"),
});

export const Agent = component("Agent", {
  id: entityId,
  config: AgentConfig,
  createdAt: Timestamp,
  updatedAt: Timestamp,
  activity: AgentActivity.optional(),
  /** The state of its MCP servers; left out where it has none. */
  mcp: z.array(McpStatus).optional(),
  /** Parts of its config that cannot work in confidential spaces, and what to do. Left out where there are none. */
  warnings: z.array(z.string()).optional(),
});
export type Agent = z.infer<typeof Agent>;

export const AgentListItem = component("AgentListItem", { id: entityId, name: z.string(), createdAt: Timestamp });

/** What an agent has from one confidential space, apart from all else. */
export const Compartment = component("Compartment", {
  spaceId,
  name: z.string(),
  state: z.enum(["active", "resting"]).meta({ description: "`resting`: the agent has left the space" }),
  since: Timestamp.optional().meta({
    description: "When it began: left out where it has not yet, and where the caller reads nothing there",
  }),
});

/** Blocks that one event may name. */
export const maxBlockRefs = 20;

export const TriggerAgent = strictComponent("TriggerAgent", {
  serviceName: Name,
  payload: z.json(),
  /** Labels of working blocks that the run reads beside those that are pinned. */
  blockRefs: z.array(Label).max(maxBlockRefs).optional(),
});
export type TriggerAgent = z.infer<typeof TriggerAgent>;
