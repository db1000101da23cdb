import * as z from "zod";
import { Problem } from "../shared/errors.ts";
import { BlockOperations, OperationResult } from "./block-operation.ts";
import { BlockSchema, defaultBlockCharacters, maxBlockCharacters, Viewport } from "./block-schema.ts";
import { entityId, messageId, spaceId } from "./ids.ts";
import { component, Label, patchOf, strictComponent, Timestamp } from "./text.ts";

/** A document that an agent keeps: in its input always, when pinned, or found by search. */

export const BlockType = z.enum(["core", "working", "archival", "log"]);
export type BlockType = z.infer<typeof BlockType>;

/** Any JSON value. */
export type Json = z.core.util.JSONType;

export const permissions = ["ReadOnly", "Partner", "Human", "Append", "ReadWrite", "Admin"] as const;
export const Permission = z.enum(permissions, {
  error: "must be a permission: ReadOnly, Partner, Human, Append, ReadWrite or Admin",
});
export type Permission = z.infer<typeof Permission>;

const Description = z
  .string()
  .max(2000)
  .refine((text) => text.isWellFormed(), "must be well-formed Unicode");
/** In characters of the whole content; 0 stands for the default. */
const CharLimit = z
  .int()
  .min(0)
  .max(maxBlockCharacters)
  .transform((limit) => (limit === 0 ? defaultBlockCharacters : limit));

/** Whether what is written in confidential spaces may be written here, where it is read outside of them. */
export const BlockConfidential = z.literal("allowed");

export const CreateBlock = strictComponent("CreateBlock", {
  label: Label,
  type: BlockType.default("working"),
  permission: Permission.default("ReadWrite"),
  description: Description.default(""),
  schema: BlockSchema.default({ type: "text" }),
  pinned: z.boolean().default(false),
  charLimit: CharLimit.default(defaultBlockCharacters),
  /** The person whose consent an agent's edits need where the permission is `Partner`. */
  partnerEntityId: entityId.optional(),
  /** Confidential spaces may write it too, as far as `permission` and shares say: their people, and runs of other agents there. */
  confidential: BlockConfidential.optional(),
  /** The first content: a text, a map's fields, a list's items, a log's entries, or a composite's sections. */
  content: z.json().optional(),
});
export type CreateBlock = z.infer<typeof CreateBlock>;

/** A field that is left out stays as it was. A schema keeps its type. */
export const UpdateBlock = z
  .strictObject({
    ...patchOf(CreateBlock.omit({ label: true, content: true }).shape),
    partnerEntityId: entityId.nullable().optional(),
    /** `null` takes it back. */
    confidential: BlockConfidential.nullable().optional(),
    /** For a text only; `null` shows all of it. */
    viewport: Viewport.nullable().optional(),
    /** The section of a composite that the viewport belongs to. */
    section: Label.optional(),
  })
  .refine(({ section, viewport }) => section === undefined || viewport !== undefined, {
    error: "goes with a viewport",
    path: ["section"],
  })
  .meta({ id: "UpdateBlock" });
export type UpdateBlock = z.infer<typeof UpdateBlock>;

/** How a block was kept before it was put away, so that it can be brought back as it was. */
export const ArchivedBlock = strictComponent("ArchivedBlock", { type: BlockType, pinned: z.boolean() });
export type ArchivedBlock = z.infer<typeof ArchivedBlock>;

export const Version = z.int().min(0);

export const Block = component("Block", {
  label: Label,
  type: BlockType,
  /** Where another agent shares the block: this agent's permission. */
  permission: Permission,
  description: z.string(),
  schema: BlockSchema,
  pinned: z.boolean(),
  charLimit: z.int(),
  partnerEntityId: entityId.optional(),
  confidential: BlockConfidential.optional(),
  version: Version,
  rendered: z.string(),
  /** The agent whose block it is, where that is another. */
  sharedFrom: z.object({ agentId: entityId, agentName: z.string() }).optional(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
});
export type Block = z.infer<typeof Block>;

/** With its content as data. */
export const BlockDetail = Block.extend({ value: z.json() }).meta({ id: "BlockDetail" });
export type BlockDetail = z.infer<typeof BlockDetail>;

export const EditBlock = strictComponent("EditBlock", {
  operations: BlockOperations,
  /** `agent`: the block's permission holds, as for the agent's own tools. */
  as: z.enum(["agent", "system"]).default("system"),
  /** The version that the edit was made on: what came after it is merged. The newest, if left out. */
  onVersion: Version.optional(),
});
export type EditBlock = z.infer<typeof EditBlock>;

export const EditedBlock = component("EditedBlock", {
  rendered: z.string(),
  value: z.json(),
  version: Version,
  results: z.array(OperationResult),
});
export type EditedBlock = z.infer<typeof EditedBlock>;

/** One version of a block: who made it, and how. */
export const BlockChange = component("BlockChange", {
  version: Version,
  /** `agent:ent_…:append`, `human:ent_…:edit`, `system:create`. */
  author: z.string(),
  authorName: z.string().optional().describe("What the author was called where an imported agent comes from"),
  operations: z.array(z.string()),
  sources: z.array(messageId).optional().describe("The messages that the agent's run had; for who reads the agent"),
  createdAt: Timestamp,
});
export type BlockChange = z.infer<typeof BlockChange>;

/** Another agent that may use a block, and how. */
export const BlockShare = component("BlockShare", { agentId: entityId, permission: Permission, createdAt: Timestamp });
export type BlockShare = z.infer<typeof BlockShare>;

export const PutBlockShare = strictComponent("PutBlockShare", { permission: Permission.default("Append") });

/** The permission of a space's people. `Partner` and `Human` are left out: they ask a person about an agent's edit. */
export const SpacePermission = z.enum(["ReadOnly", "Append", "ReadWrite", "Admin"], {
  error: "must be ReadOnly, Append, ReadWrite or Admin",
});
export type SpacePermission = z.infer<typeof SpacePermission>;

/** A space whose people may use a block, and how. */
export const BlockSpace = component("BlockSpace", { spaceId, permission: SpacePermission, createdAt: Timestamp });
export type BlockSpace = z.infer<typeof BlockSpace>;

export const PutBlockSpace = strictComponent("PutBlockSpace", { permission: SpacePermission.default("ReadWrite") });

/** An edit by one of a space's people: as themselves, with the permission that the space has. */
export const EditSpaceBlock = EditBlock.omit({ as: true }).meta({ id: "EditSpaceBlock" });
export type EditSpaceBlock = z.infer<typeof EditSpaceBlock>;

/**
 * The frames of a block's stream. Every one carries all that the block is then, and as `cursor` its version: who comes
 * back misses nothing that still stands.
 */
export const BlockFrame = z.discriminatedUnion("type", [
  z.object({ type: z.literal("welcome"), cursor: z.int(), block: BlockDetail }),
  /** `by`: the author of the edit, as in the block's history without its manner. */
  z.object({ type: z.literal("block.changed"), cursor: z.int(), block: BlockDetail, by: z.string() }),
  z.object({ type: z.literal("block.deleted"), label: Label, by: z.string() }),
  Problem.omit({ type: true }).extend({ type: z.literal("error") }),
]);
export type BlockFrame = z.infer<typeof BlockFrame>;
