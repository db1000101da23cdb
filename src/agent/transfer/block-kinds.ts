import { and, asc, eq, gt, isNull, sql } from "drizzle-orm";
import type { CarriedBlock, CarriedShare } from "../../protocol/exported-block.ts";
import { isoTime } from "../../shared/clock.ts";
import type { Database } from "../../shared/database.ts";
import { blockView } from "../memory/blocks/block-view.ts";
import type { BlockRow } from "../memory/blocks/blocks.ts";
import {
  blockShares,
  blockSnapshots,
  blockSpaces,
  blocks,
  blockVersions,
  sharedBlocks,
} from "../memory/blocks/schema.ts";
import { isNew, type ListOf } from "./kind-store.ts";

/** Blocks with their history: rows and bytes as they are stored, so that no document is opened to be exported. */
const sharesAtATime = 200;

const bytesOf = (base64: string): Buffer => Buffer.from(base64, "base64");
const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");

const versionsOf = (db: Database, blockId: number): CarriedBlock["versions"] =>
  db
    .select()
    .from(blockVersions)
    .where(eq(blockVersions.blockId, blockId))
    .orderBy(asc(blockVersions.version))
    .all()
    .map(({ blockId: _, manner, update, createdAt, ...version }) => ({
      ...version,
      // The words of `mannerOf`, and `create`.
      manner: manner as CarriedBlock["versions"][number]["manner"],
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

const asCarriedBlock = (db: Database, row: BlockRow): CarriedBlock => ({
  ...blockView(row),
  snapshotVersion: row.snapshotVersion,
  snapshot: snapshotOf(db, row.id),
  versions: versionsOf(db, row.id),
  lastUsedAt: isoTime(row.lastUsedAt),
});

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

/** Each whole in one turn: a block that is edited while it is exported is as it was before or after. */
export const carriedBlocks: ListOf<"blocks"> = {
  read: (db, after) =>
    db
      .select()
      .from(blocks)
      .where(and(gt(blocks.id, Number(after[0] ?? 0)), isNull(blocks.deletedAt)))
      .orderBy(asc(blocks.id))
      .limit(1)
      .all()
      .map((row) => ({ item: asCarriedBlock(db, row), place: [row.id] })),
  writer:
    (db) =>
    ({ rendered: _, snapshot, versions, lastUsedAt, createdAt, updatedAt, ...block }) => {
      const [made] = db
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
        .all();
      if (!made) return false;
      const blockId = made.id;
      for (const [part, bytes] of snapshot.entries()) {
        db.insert(blockSnapshots)
          .values({ blockId, part, bytes: bytesOf(bytes) })
          .run();
      }
      return versions.every(({ update, createdAt: at, ...version }) =>
        isNew(
          db
            .insert(blockVersions)
            .values({
              ...version,
              blockId,
              update: update === undefined ? null : bytesOf(update),
              createdAt: Date.parse(at),
            })
            .onConflictDoNothing()
            .returning({ version: blockVersions.version })
            .all(),
        ),
      );
    },
};

/** Told, and not made again: who may read what is for the people of the workspace that the agent comes to. */
export const carriedShares: ListOf<"shares"> = {
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
    const told = (direction: CarriedShare["direction"], rows: typeof others): CarriedShare[] =>
      rows.map(({ at, ...share }) => ({ direction, ...share, createdAt: isoTime(at) }));
    const from = Number(after[0] ?? 0);
    return [...told("given", agents), ...told("given", spaces), ...told("taken", others)]
      .slice(from, from + sharesAtATime)
      .map((item, index) => ({ item, place: [from + index + 1] }));
  },
  writer: () => () => true,
};
