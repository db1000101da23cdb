import { blob, integer, primaryKey, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import type { ArchivedBlock, Block, BlockType, EditedBlock, Permission } from "../../../protocol/block.ts";
import type { BlockSchema } from "../../../protocol/block-schema.ts";
import type { Step } from "../documents/edit-document.ts";

/** An agent's blocks. What a run's input needs of one stands in its row, so that composing opens no document. */
export const blocks = sqliteTable(
  "blocks",
  {
    id: integer("id").primaryKey(),
    label: text("label").notNull(),
    type: text("type").$type<BlockType>().notNull(),
    permission: text("permission").$type<Permission>().notNull(),
    description: text("description").notNull(),
    schema: text("schema", { mode: "json" }).$type<BlockSchema>().notNull(),
    pinned: integer("pinned", { mode: "boolean" }).notNull(),
    /** How a block was kept before it was put away; null if it was not. */
    archived: text("archived", { mode: "json" }).$type<ArchivedBlock>(),
    charLimit: integer("char_limit").notNull(),
    partnerEntityId: text("partner_entity_id"),
    /** Whether what confidential spaces hear may be written here. */
    confidential: text("confidential").$type<Block["confidential"]>(),
    /** The newest version. */
    version: integer("version").notNull(),
    /** The text that the block shows, written with every edit. */
    rendered: text("rendered").notNull(),
    /** By which rules (`renderingRules`). */
    renderedBy: integer("rendered_by").notNull().default(0),
    /** Up to which version its snapshot holds everything. */
    snapshotVersion: integer("snapshot_version").notNull(),
    /** When it was last changed, loaded or referenced: working blocks leave the input by this. */
    lastUsedAt: integer("last_used_at").notNull(),
    createdAt: integer("created_at").notNull(),
    updatedAt: integer("updated_at").notNull(),
  },
  (table) => [uniqueIndex("blocks_label").on(table.label)],
);

/** Each version of a block: who made it, and its bytes until a snapshot holds them. */
export const blockVersions = sqliteTable(
  "block_versions",
  {
    blockId: integer("block_id").notNull(),
    version: integer("version").notNull(),
    kind: text("kind").$type<Step["kind"]>().notNull(),
    /** The author, who may undo it: `agent:ent_…`, `human:ent_…`, `system`. */
    author: text("author").notNull(),
    /** How the author edited: `append`, `edit`, `delete`, `create`. */
    manner: text("manner").notNull(),
    operations: text("operations", { mode: "json" }).$type<string[]>().notNull(),
    /** The document's state at this version. */
    state: text("state").notNull(),
    update: blob("update", { mode: "buffer" }),
    createdAt: integer("created_at").notNull(),
    /** The messages that the run had which made it. Null where no agent's run made it, and of earlier releases. */
    sources: text("sources", { mode: "json" }).$type<string[]>(),
  },
  (table) => [primaryKey({ columns: [table.blockId, table.version] })],
);

/** The document up to `snapshotVersion`, in parts that a row can hold. */
export const blockSnapshots = sqliteTable(
  "block_snapshots",
  {
    blockId: integer("block_id").notNull(),
    part: integer("part").notNull(),
    bytes: blob("bytes", { mode: "buffer" }).notNull(),
  },
  (table) => [primaryKey({ columns: [table.blockId, table.part] })],
);

/** The answer to an edit, without the content, which can be read from the block. */
export type DoneEdit = Pick<EditedBlock, "version" | "results">;

/** Answers to calls. A replay gets the stored answer and changes nothing (R2). The oldest rows are deleted. */
export const blockCalls = sqliteTable("block_calls", {
  id: integer("id").primaryKey(),
  callId: text("call_id").notNull().unique(),
  result: text("result", { mode: "json" }).$type<DoneEdit>().notNull(),
});

/** Agents and spaces that may use a block of this agent. The prefix of `granteeId` tells which of the two it is. */
export const shares = sqliteTable(
  "shares",
  {
    blockId: integer("block_id").notNull(),
    granteeId: text("grantee_id").notNull(),
    permission: text("permission").$type<Permission>().notNull(),
    /** The version that it was shared as. Those before are not for the grantee. */
    sinceVersion: integer("since_version").notNull().default(0),
    createdAt: integer("created_at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.blockId, table.granteeId] })],
);

/**
 * Blocks of other agents that this one may read, as far as it was told: their owner has the last word. A compartment has
 * those of the agent's open mind here too.
 */
export const sharedBlocks = sqliteTable(
  "shared_blocks",
  {
    ownerId: text("owner_id").notNull(),
    label: text("label").notNull(),
    ownerName: text("owner_name").notNull(),
    type: text("type").$type<BlockType>().notNull(),
    permission: text("permission").$type<Permission>().notNull(),
    /** Whether this agent pinned it. */
    pinned: integer("pinned", { mode: "boolean" }).notNull().default(false),
    /** In a compartment, of a block of the agent's open mind: as its newest run found it. */
    open: text("open", { mode: "json" }).$type<Block>(),
    createdAt: integer("created_at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.ownerId, table.label] })],
);
