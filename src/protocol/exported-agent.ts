import { z } from "zod";
import { errorCodes } from "../shared/errors.ts";
import { Agent, AgentConfig } from "./agent.ts";
import { ArchivalContent, ArchivalMetadata, ArchivalSource } from "./archival.ts";
import { CarriedBlock, CarriedShare } from "./exported-block.ts";
import { CarriedJournalRow, CarriedRun, CarriedSummary, CarriedWindow } from "./exported-history.ts";
import { archivalId, entityId, spaceId } from "./ids.ts";
import { GoalStatus, maxMemoryCharacters } from "./mind.ts";
import { maxPlanInstruction, PlanStatus, ScheduledAt } from "./plan.ts";
import { isTimeZone, Label, Timestamp } from "./text.ts";

/**
 * An agent as one JSON document: all that it needs to know what it did and why, in this workspace or in another. What
 * is written is what an export holds; an import takes the same, and what is left out is empty.
 */
const CarriedName = z
  .strictObject({ id: z.union([entityId, spaceId]), name: z.string().min(1).max(256) })
  .meta({ id: "CarriedName", description: "What an id that the rest of the document names was called" });
export type CarriedName = z.infer<typeof CarriedName>;

const CarriedMemory = z.strictObject({
  key: Label,
  value: z
    .string()
    .min(1)
    .max(maxMemoryCharacters * 2),
  updatedAt: Timestamp,
});

const CarriedGoal = z.strictObject({
  id: Label,
  description: z.string().min(1).max(1000),
  status: GoalStatus,
  priority: z.int().min(1).max(100).optional(),
  longTerm: z.boolean(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
});

const CarriedPlan = z
  .strictObject({
    id: Label,
    name: z.string().min(1).max(128),
    instruction: z.string().min(1).max(maxPlanInstruction),
    runAfter: z.string().min(1).max(64).optional(),
    scheduledAt: ScheduledAt.optional(),
    cron: z.string().min(1).max(128).optional(),
    timezone: z.string().max(64).refine(isTimeZone, "must be an IANA time zone, such as Asia/Riyadh").optional(),
    status: PlanStatus,
    setBy: z.enum(["agent", "workspace"]),
    dueAt: Timestamp,
    firedFor: Timestamp.optional(),
    lastError: z.strictObject({ code: z.enum(errorCodes), message: z.string() }).optional(),
    updatedAt: Timestamp,
  })
  .refine(({ runAfter, scheduledAt, cron }) => [runAfter, scheduledAt, cron].filter(Boolean).length === 1, {
    message: "must have exactly one of runAfter, scheduledAt and cron",
  })
  .meta({ id: "CarriedPlan" });

const CarriedArchival = z
  .strictObject({
    id: archivalId.meta({ description: "In the imported agent it has an id of that agent's own" }),
    content: ArchivalContent,
    metadata: ArchivalMetadata,
    source: ArchivalSource,
    createdAt: Timestamp,
  })
  .meta({ id: "CarriedArchival" });

/** The lists of an exported agent, in the order in which they are written; an import takes them in any order. */
export const carriedItems = {
  names: CarriedName,
  memories: CarriedMemory,
  goals: CarriedGoal,
  plans: CarriedPlan,
  windows: CarriedWindow,
  runs: CarriedRun,
  journal: CarriedJournalRow,
  summaries: CarriedSummary,
  blocks: CarriedBlock,
  shares: CarriedShare,
  archival: CarriedArchival,
} as const;
export type CarriedList = keyof typeof carriedItems;
export const carriedLists = Object.keys(carriedItems) as CarriedList[];
/** Items of an exported agent, by their lists. */
export type CarriedItems = { [List in CarriedList]?: z.infer<(typeof carriedItems)[List]>[] };
export type CarriedItem<List extends CarriedList> = z.infer<(typeof carriedItems)[List]>;

const count = z.int().min(0).default(0);

/** What was under way or cannot go with an agent: so many events, runs and calls, webhooks' secrets. */
const LeftBehind = z
  .strictObject({ events: count, runs: count, calls: count, hooks: count })
  .meta({ id: "LeftBehind", description: "What an export does not hold: it was under way, or is a secret" });

/** What of an exported agent is no list. */
export const carriedHead = {
  id: entityId.meta({ description: "Who it was. An import makes another agent" }),
  config: AgentConfig,
  createdAt: Timestamp.optional(),
  updatedAt: Timestamp.optional(),
  activeSpaceId: spaceId.nullable().default(null),
  correction: z
    .strictObject({ ratio: z.number().min(0.1).max(10), modelId: z.string().max(300) })
    .optional()
    .meta({ description: "Billed over estimated tokens, as this model was billed" }),
  left: LeftBehind.default(() => LeftBehind.parse({})),
};
export const CarriedHead = z.strictObject(carriedHead);
export type CarriedHead = z.infer<typeof CarriedHead>;

export const exportFormat = "colloquy.agent";
export const exportVersion = 1;

export const exportEnvelope = {
  format: z.literal(exportFormat),
  version: z.literal(exportVersion),
  exportedAt: Timestamp,
};
export const ExportEnvelope = z.strictObject(exportEnvelope);
export type ExportEnvelope = z.infer<typeof ExportEnvelope>;

export const ExportedAgent = z
  .strictObject({
    ...exportEnvelope,
    agent: z.strictObject({
      ...carriedHead,
      names: z.array(CarriedName).default([]),
      memories: z.array(CarriedMemory).default([]),
      goals: z.array(CarriedGoal).default([]),
      plans: z.array(CarriedPlan).default([]),
      windows: z.array(CarriedWindow).default([]),
      runs: z.array(CarriedRun).default([]),
      journal: z.array(CarriedJournalRow).default([]),
      summaries: z.array(CarriedSummary).default([]),
      blocks: z.array(CarriedBlock).default([]),
      shares: z.array(CarriedShare).default([]),
      archival: z.array(CarriedArchival).default([]),
    }),
  })
  .meta({ id: "ExportedAgent" });

/** What an import made, and what is still to be done by hand. */
export const ImportReport = z
  .object({
    from: z.object({ agentId: entityId, exportedAt: Timestamp }),
    counts: z.object({
      memories: z.int(),
      goals: z.int(),
      plans: z.int(),
      runs: z.int(),
      blocks: z.int(),
      archival: z.int(),
    }),
    left: LeftBehind,
    shares: z.int().meta({ description: "Blocks that were shared, either way: they are not shared again" }),
  })
  .meta({ id: "ImportReport" });
export type ImportReport = z.infer<typeof ImportReport>;

export const ImportedAgent = z
  .object({
    agent: Agent,
    imported: ImportReport.extend({
      secrets: z
        .array(z.string())
        .meta({ description: "Secrets that the config names and this workspace does not have: write them" }),
      people: z
        .array(z.string())
        .meta({ description: "Approvers that the config names and who are no people of this workspace: PATCH them" }),
    }),
  })
  .meta({ id: "ImportedAgent" });
