import { z } from "zod";
import { errorCodes } from "../shared/errors.ts";
import { Agent, AgentConfig } from "./agent.ts";
import { ArchivalContent, ArchivalMetadata, ArchivalSource } from "./archival.ts";
import { ExportedBlock, ExportedShare } from "./exported-block.ts";
import { ExportedJournalRow, ExportedRun, ExportedSummary, ExportedWindow } from "./exported-history.ts";
import { archivalId, entityId, spaceId } from "./ids.ts";
import { GoalStatus, maxMemoryCharacters } from "./mind.ts";
import { maxPlanInstruction, PlanStatus, ScheduledAt } from "./plan.ts";
import { component, isTimeZone, Label, strictComponent, Timestamp } from "./text.ts";

/**
 * An exported agent: lines of JSON. The first is the head, then comes a line for each row, and the last says how many
 * lines came before it, so that an import notices a document that was cut. Export and import share these schemas.
 */
export const exportMediaType = "application/x-ndjson";
export const exportFormat = "colloquy.agent";
export const exportVersion = 2;

const ExportedName = z
  .strictObject({ id: z.union([entityId, spaceId]), name: z.string().min(1).max(256) })
  .meta({ id: "ExportedName", description: "What an id that the rest of the document names was called" });

const ExportedMemory = z.strictObject({
  key: Label,
  value: z
    .string()
    .min(1)
    .max(maxMemoryCharacters * 2),
  updatedAt: Timestamp,
});

const ExportedGoal = z.strictObject({
  id: Label,
  description: z.string().min(1).max(1000),
  status: GoalStatus,
  priority: z.int().min(1).max(100).optional(),
  longTerm: z.boolean(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
});

const ExportedPlan = z
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
  .meta({ id: "ExportedPlan" });

const ExportedArchival = strictComponent("ExportedArchival", {
  id: archivalId.describe("In the imported agent it has an id of that agent's own"),
  content: ArchivalContent,
  metadata: ArchivalMetadata,
  source: ArchivalSource,
  createdAt: Timestamp,
});

/** The kinds of rows, in the order in which they are written; an import takes them in any order. */
export const exportedRows = {
  name: ExportedName,
  memory: ExportedMemory,
  goal: ExportedGoal,
  plan: ExportedPlan,
  window: ExportedWindow,
  run: ExportedRun,
  journal: ExportedJournalRow,
  summary: ExportedSummary,
  block: ExportedBlock,
  share: ExportedShare,
  archival: ExportedArchival,
} as const;
export type RowKind = keyof typeof exportedRows;
export type RowOf<Kind extends RowKind> = z.infer<(typeof exportedRows)[Kind]>;
export const rowKinds = Object.keys(exportedRows) as RowKind[];

const rowLine = <Kind extends RowKind>(kind: Kind) =>
  z.strictObject({ kind: z.literal(kind), row: exportedRows[kind] });

const count = z.int().min(0).default(0);

/** Counts of what an export leaves out: it was under way, or holds secrets. */
const LeftBehind = z
  .strictObject({ events: count, runs: count, calls: count, hooks: count })
  .meta({ id: "LeftBehind", description: "What an export does not hold: it was under way, or is a secret" });

export const agentHead = {
  id: entityId.describe("Who it was. An import makes another agent"),
  config: AgentConfig,
  createdAt: Timestamp.optional(),
  updatedAt: Timestamp.optional(),
  activeSpaceId: spaceId.nullable().default(null),
  correction: z
    .strictObject({ ratio: z.number().min(0.1).max(10), modelId: z.string().max(300) })
    .optional()
    .describe("Billed over estimated tokens, as this model was billed"),
  left: LeftBehind.default(() => LeftBehind.parse({})),
};

export const ExportedHead = z
  .strictObject({
    kind: z.literal("agent"),
    format: z.literal(exportFormat),
    version: z.literal(exportVersion),
    exportedAt: Timestamp,
    agent: z.strictObject(agentHead),
  })
  .meta({ id: "ExportedHead", description: "The first line" });
export type ExportedHead = z.infer<typeof ExportedHead>;

const ExportedEnd = z
  .strictObject({ kind: z.literal("end"), lines: z.int().min(1) })
  .meta({ id: "ExportedEnd", description: "The last line: how many lines come before it" });

export const ExportedLine = z
  .discriminatedUnion("kind", [
    ExportedHead,
    rowLine("name"),
    rowLine("memory"),
    rowLine("goal"),
    rowLine("plan"),
    rowLine("window"),
    rowLine("run"),
    rowLine("journal"),
    rowLine("summary"),
    rowLine("block"),
    rowLine("share"),
    rowLine("archival"),
    ExportedEnd,
  ])
  .meta({ id: "ExportedLine", description: "One line of an exported agent" });
export type ExportedLine = z.infer<typeof ExportedLine>;
/** A line that is neither the first nor the last. */
export type ExportedRow = Exclude<ExportedLine, { kind: "agent" | "end" }>;

/** The counts of an import, and what is still to be done by hand. */
export const ImportReport = component("ImportReport", {
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
  shares: z.int().describe("Blocks that were shared, either way: they are not shared again"),
});
export type ImportReport = z.infer<typeof ImportReport>;

export const ImportedAgent = component("ImportedAgent", {
  agent: Agent,
  imported: ImportReport.extend({
    secrets: z.array(z.string()).describe("Secrets that the config names and this workspace does not have: write them"),
    people: z
      .array(z.string())
      .describe("Approvers that the config names and who are no people of this workspace: PATCH them"),
  }),
});
