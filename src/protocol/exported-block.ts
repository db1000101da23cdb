import { z } from "zod";
import { BlockType, Permission } from "./block.ts";
import { BlockSchema, maxBlockCharacters } from "./block-schema.ts";
import { entityId, idPattern, spaceId } from "./ids.ts";
import { Label, strictComponent, Timestamp } from "./text.ts";

/** Blocks as an exported agent holds them: settings, versions with their authors, and the bytes of their documents. */

const version = z.int().min(1).max(1_000_000_000);

/** Bytes as base64. The pattern does not backtrack, since the text may have megabytes. */
const base64 = (maxBytes: number) =>
  z
    .string()
    .max(Math.ceil(maxBytes / 3) * 4)
    .refine((text) => text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text), "must be base64")
    .meta({ contentEncoding: "base64" });

/** The size of a part of a snapshot and of a version's update, in bytes; how many parts and versions a block has. */
const maxExportedPartBytes = 1024 * 1024;
const maxExportedUpdateBytes = 1_500_000;
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
});

export const ExportedBlock = strictComponent("ExportedBlock", {
  label: Label,
  type: BlockType,
  permission: Permission,
  description: z.string().max(2000),
  schema: BlockSchema,
  pinned: z.boolean(),
  charLimit: z.int().min(1).max(maxBlockCharacters),
  partnerEntityId: entityId.optional(),
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
});
export type ExportedBlock = z.infer<typeof ExportedBlock>;

/** A block that was shared with an agent or a space (`given`), or that another agent shares with this one (`taken`). */
export const ExportedShare = z
  .strictObject({
    direction: z.enum(["given", "taken"]),
    label: Label,
    with: z.union([entityId, spaceId]),
    permission: Permission,
    createdAt: Timestamp,
  })
  .meta({ id: "ExportedShare", description: "Told, and not made again by an import" });
export type ExportedShare = z.infer<typeof ExportedShare>;
