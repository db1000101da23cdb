import { asc, eq, isNull, sql } from "drizzle-orm";
import type { RowOf } from "../../protocol/exported-agent.ts";
import { isoTime } from "../../shared/clock.ts";
import type { Database } from "../../shared/database.ts";
import { blockView } from "../memory/blocks/block-view.ts";
import { blockSnapshots, blocks, blockVersions, sharedBlocks, shares } from "../memory/blocks/schema.ts";
import { insertNew, type KindStore, rowsAfter } from "./kind-store.ts";

/** Blocks with their history. Rows and bytes are exported as they are stored: no document is opened. */
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
      // `mannerOf` names it, or `create`.
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

/** A block is read in one turn: an edit during the export is in it whole or not at all. */
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
        // `check-blocks.ts` renders it from the document, once all is there.
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

type ShareRow = Omit<RowOf<"share">, "createdAt"> & { createdAt: number };

/** An import only counts shares: people of the new workspace decide who may read what. */
export const shareRows: KindStore<"share"> = {
  read: (db, after) =>
    db
      .all<ShareRow>(sql`
        select 'given' as direction, label, grantee_id as "with", ${shares.permission}, ${shares.createdAt} as createdAt
          from ${shares} join ${blocks} on ${blocks.id} = block_id and deleted_at is null
        union all select 'taken', label, owner_id, permission, created_at from ${sharedBlocks}
        order by 1, 2, 3 limit ${sharesAtATime} offset ${Number(after ?? 0)}`)
      .map((share, index) => ({
        row: { ...share, createdAt: isoTime(share.createdAt) },
        place: Number(after ?? 0) + index + 1,
      })),
  insert: () => true,
};
