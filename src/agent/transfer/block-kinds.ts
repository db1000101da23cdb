import { and, asc, eq, gt, isNull, sql } from "drizzle-orm";
import type { RowOf } from "../../protocol/exported-agent.ts";
import { isoTime } from "../../shared/clock.ts";
import type { Database } from "../../shared/database.ts";
import { blockView } from "../memory/blocks/blocks.ts";
import {
  blockShares,
  blockSnapshots,
  blockSpaces,
  blocks,
  blockVersions,
  sharedBlocks,
} from "../memory/blocks/schema.ts";
import { insertNew, type KindStore, rowsAfter } from "./kind-store.ts";

/** Blocks with their history: rows and bytes as they are stored, so that no document is opened to be exported. */
const sharesAtATime = 200;

const bytesOf = (base64: string): Buffer => Buffer.from(base64, "base64");
const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");

const versionsOf = (db: Database, blockId: number): RowOf<"block">["versions"] =>
  db
    .select()
    .from(blockVersions)
    .where(eq(blockVersions.blockId, blockId))
    .orderBy(asc(blockVersions.version))
    .all()
    .map(({ blockId: _, manner, update, createdAt, ...version }) => ({
      ...version,
      // The words of `mannerOf`, and `create`.
      manner: manner as RowOf<"block">["versions"][number]["manner"],
      ...(update === null ? {} : { update: textOf(update) }),
      createdAt: isoTime(createdAt),
    }));

const snapshotOf = (db: Database, blockId: number): string[] =>
  db
    .select({ bytes: blockSnapshots.bytes })
    .from(blockSnapshots)
    .where(eq(blockSnapshots.blockId, blockId))
    .orderBy(asc(blockSnapshots.part))
    .all()
    .map(({ bytes }) => textOf(bytes));

/** The next block, and the bytes that came after its snapshot. */
export const nextBlock = (db: Database, after: number): { label: string; tailBytes: number } | undefined =>
  db
    .select({
      label: blocks.label,
      tailBytes: sql<number>`(select coalesce(sum(length("update")), 0) from block_versions where block_id = ${blocks.id})`,
    })
    .from(blocks)
    .where(and(gt(blocks.id, after), isNull(blocks.deletedAt)))
    .orderBy(asc(blocks.id))
    .limit(1)
    .get();

/** Each is read in one turn: a block that is edited while it is exported is as it was before or after. */
export const blockRows: KindStore<"block"> = {
  read: (db, after) =>
    rowsAfter(db, blocks, { column: blocks.id, after, limit: 1, only: isNull(blocks.deletedAt) }).map((block) => ({
      row: {
        ...blockView(block),
        snapshotVersion: block.snapshotVersion,
        snapshot: snapshotOf(db, block.id),
        versions: versionsOf(db, block.id),
        lastUsedAt: isoTime(block.lastUsedAt),
      },
      place: block.id,
    })),
  insert: (db, { snapshot, versions, lastUsedAt, createdAt, updatedAt, ...block }) => {
    const made = db
      .insert(blocks)
      .values({
        ...block,
        // It is made from the document, once all is there.
        rendered: "",
        lastUsedAt: Date.parse(lastUsedAt),
        createdAt: Date.parse(createdAt),
        updatedAt: Date.parse(updatedAt),
      })
      .onConflictDoNothing()
      .returning({ id: blocks.id })
      .get();
    if (!made) return false;
    for (const [part, bytes] of snapshot.entries()) {
      insertNew(db, blockSnapshots, { blockId: made.id, part, bytes: bytesOf(bytes) });
    }
    return versions.every(({ update, createdAt: at, ...version }) =>
      insertNew(db, blockVersions, {
        ...version,
        blockId: made.id,
        update: update === undefined ? null : bytesOf(update),
        createdAt: Date.parse(at),
      }),
    );
  },
};

/** An import only counts them: who may read what is decided by the people of the workspace that the agent comes to. */
export const shareRows: KindStore<"share"> = {
  read: (db, after) => {
    const mine = isNull(blocks.deletedAt);
    const { label } = blocks;
    const agents = db
      .select({ label, with: blockShares.agentId, permission: blockShares.permission, at: blockShares.createdAt })
      .from(blockShares)
      .innerJoin(blocks, and(eq(blocks.id, blockShares.blockId), mine))
      .orderBy(asc(label), asc(blockShares.agentId))
      .all();
    const spaces = db
      .select({ label, with: blockSpaces.spaceId, permission: blockSpaces.permission, at: blockSpaces.createdAt })
      .from(blockSpaces)
      .innerJoin(blocks, and(eq(blocks.id, blockSpaces.blockId), mine))
      .orderBy(asc(label), asc(blockSpaces.spaceId))
      .all();
    const others = db
      .select({
        label: sharedBlocks.label,
        with: sharedBlocks.ownerId,
        permission: sharedBlocks.permission,
        at: sharedBlocks.createdAt,
      })
      .from(sharedBlocks)
      .orderBy(asc(sharedBlocks.label), asc(sharedBlocks.ownerId))
      .all();
    const told = (direction: RowOf<"share">["direction"], rows: typeof others): RowOf<"share">[] =>
      rows.map(({ at, ...share }) => ({ direction, ...share, createdAt: isoTime(at) }));
    const from = Number(after ?? 0);
    return [...told("given", agents), ...told("given", spaces), ...told("taken", others)]
      .slice(from, from + sharesAtATime)
      .map((row, index) => ({ row, place: from + index + 1 }));
  },
  insert: () => true,
};
