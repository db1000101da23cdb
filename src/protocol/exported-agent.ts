import * as z from "zod";
import { errorCodes } from "../shared/errors.ts";
import { Agent, AgentConfig } from "./agent.ts";
import { ArchivalContent, ArchivalMetadata, ArchivalSource } from "./archival.ts";
import { ArchivedBlock, BlockConfidential, BlockType, Permission } from "./block.ts";
import { BlockSchema, maxBlockCharacters } from "./block-schema.ts";
import { ExportedJournalRow, ExportedRun, ExportedSummary, ExportedWindow } from "./exported-history.ts";
import { archivalId, entityId, idPattern, messageId, spaceId } from "./ids.ts";
import { GoalStatus, maxMemoryCharacters } from "./mind.ts";
import { PlanStatus, PutPlan } from "./plan.ts";
import { component, Label, strictComponent, Timestamp, TimeZone } from "./text.ts";
import { withoutIdleTimeouts } from "./tool.ts";

/**
 * An exported agent: lines of JSON. The first is the head, then comes a line for each row. The last says how many lines
 * came before it, so that an import notices a document that was cut. Export and import share these schemas.
 */
export const exportMediaType = "application/x-ndjson";
export const exportFormat = "colloquy.agent";
export const exportVersion = 2;

const version = z.int().min(1).max(1_000_000_000);

/** Bytes as base64. The pattern does not backtrack, since the text may have megabytes. */
const base64 = (maxBytes: number) =>
  z
    .string()
    .max(Math.ceil(maxBytes / 3) * 4)
    .refine((text) => text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text), "must be base64")
    .meta({ contentEncoding: "base64" });

/** The size of a part of a snapshot and of a version's update, in bytes; the bound of a memory; parts and versions. */
const maxExportedPartBytes = 1024 * 1024;
const maxExportedUpdateBytes = 1_500_000;
const maxExportedCharacters = 2 * maxMemoryCharacters;
const maxExportedParts = 8;
const maxExportedVersions = 1100;

const author = new RegExp(`^(?:system|(?:agent|human):${idPattern("ent").source.slice(1, -1)})$`);

/** One version: who made it, and its bytes where the snapshot does not hold them yet. */
const ExportedBlockVersion = strictComponent("ExportedBlockVersion", {
  version,
  kind: z.enum(["edit", "undo", "redo"]),
  author: z
    .string()
    .regex(author, "must be system, agent:ent_… or human:ent_…")
    .describe("As it was written; what the agent itself wrote is the imported agent's own"),
  manner: z.enum(["create", "append", "edit", "delete", "undo", "redo"]),
  operations: z.array(z.string().max(64)).max(1000),
  state: z.string().max(20_000).describe("Which changes of the document it holds"),
  update: base64(maxExportedUpdateBytes).optional(),
  createdAt: Timestamp,
  sources: z.array(messageId).max(100).optional().describe("The messages that the agent's run had which made it"),
});

/** The kinds of rows, in the order in which they are written; an import takes them in any order. */
export const exportedRows = {
  name: z
    .strictObject({ id: z.union([entityId, spaceId]), name: z.string().min(1).max(256) })
    .meta({ id: "ExportedName", description: "What an id that the rest of the document names was called" }),
  memory: z.strictObject({
    key: Label,
    value: z.string().min(1).max(maxExportedCharacters),
    updatedAt: Timestamp,
  }),
  goal: z.strictObject({
    id: Label,
    description: z.string().min(1).max(1000),
    status: GoalStatus,
    priority: z.int().min(1).max(100).optional(),
    longTerm: z.boolean(),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  }),
  plan: z
    .strictObject({
      id: Label,
      ...PutPlan.shape,
      timezone: TimeZone.optional(),
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
    .meta({ id: "ExportedPlan" }),
  window: ExportedWindow,
  run: ExportedRun,
  journal: ExportedJournalRow,
  summary: ExportedSummary,
  block: strictComponent("ExportedBlock", {
    label: Label,
    type: BlockType,
    permission: Permission,
    description: z.string().max(2000),
    schema: BlockSchema,
    pinned: z.boolean(),
    archived: ArchivedBlock.optional().describe("How it was kept before it was put away"),
    charLimit: z.int().min(1).max(maxBlockCharacters),
    partnerEntityId: entityId.optional(),
    confidential: BlockConfidential.optional(),
    version,
    rendered: z.string().optional().describe("To read; an import makes it from the document"),
    snapshotVersion: z.int().min(0).describe("Up to which version its snapshot holds everything"),
    snapshot: z
      .array(base64(maxExportedPartBytes))
      .max(maxExportedParts)
      .describe("The Loro document with its history, in parts"),
    versions: z.array(ExportedBlockVersion).min(1).max(maxExportedVersions).describe("Oldest first"),
    lastUsedAt: Timestamp,
    createdAt: Timestamp,
    updatedAt: Timestamp,
  }),
  /** A block that was shared with an agent or a space (`given`), or that another agent shares with this one (`taken`). */
  share: z
    .strictObject({
      direction: z.enum(["given", "taken"]),
      label: Label,
      with: z.union([entityId, spaceId]),
      permission: Permission,
      createdAt: Timestamp,
    })
    .meta({ id: "ExportedShare", description: "Told, and not made again by an import" }),
  archival: strictComponent("ExportedArchival", {
    id: archivalId.describe("In the imported agent it has an id of that agent's own"),
    content: ArchivalContent,
    metadata: ArchivalMetadata,
    source: ArchivalSource,
    createdAt: Timestamp,
  }),
} as const;
export type RowKind = keyof typeof exportedRows;
export type RowOf<Kind extends RowKind> = z.infer<(typeof exportedRows)[Kind]>;
export const rowKinds = Object.keys(exportedRows) as RowKind[];

const rowLine = <Kind extends RowKind>(kind: Kind) =>
  z.strictObject({ kind: z.literal(kind), row: exportedRows[kind] });
type RowLine = { [Kind in RowKind]: ReturnType<typeof rowLine<Kind>> }[RowKind];

const count = z.int().min(0).default(0);

/**
 * Counts of what an export leaves out: it was under way, or holds secrets. `compartments`: of so many
 * confidential spaces that it is or was in. An export is a file that goes anywhere, and who is in those spaces was never asked.
 */
const LeftBehind = z
  .strictObject({ events: count, runs: count, calls: count, hooks: count, waits: count, compartments: count })
  .meta({
    id: "LeftBehind",
    description: "What an export does not hold: it was under way, is a secret, or is from a confidential space",
  });

export const agentHead = {
  id: entityId.describe("Who it was. An import makes another agent"),
  config: z.preprocess(withoutIdleTimeouts, AgentConfig),
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
  .discriminatedUnion("kind", [ExportedHead, ...(rowKinds.map(rowLine) as RowLine[]), ExportedEnd])
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
