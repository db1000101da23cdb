import { and, asc, desc, eq, gt, gte, isNotNull, lt } from "drizzle-orm";
import type { LoroDoc } from "loro-crdt/web";
import type { BlockChange } from "../../../protocol/block.ts";
import { isoTime } from "../../../shared/clock.ts";
import type { Database } from "../../../shared/database.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { maxBlockSnapshotBytes, maxBlockVersions, maxOpenDocuments, maxUndoSteps } from "../../bounds.ts";
import type { Loro } from "../documents/document.ts";
import { openDocument, openForeignDocument, snapshotOf, stateOf } from "../documents/document.ts";
import type { Commit, Step } from "../documents/edit-document.ts";
import { blockSnapshots, blockVersions } from "./schema.ts";

/**
 * Versions of blocks, and the bytes that make their documents: a snapshot and what came after it. Documents that were
 * opened stay open in memory, a cache of what is stored.
 *
 * Invariants
 * 1. Snapshot and updates after it are the document, whole: both change in the transaction of the edit.
 * 2. A tail of updates has a bounded length, and the versions that are kept a bounded number; the oldest go first.
 * 3. A document that was changed and whose change was not stored is dropped before anybody reads it.
 */
/** Bytes of a snapshot that one row holds. */
const partBytes = 1024 * 1024;
/** How many versions are kept where a history grew too large: the first number that makes it fit. */
const shorterHistories = [200, 20, 0];

const versionsOf = (blockId: number) => eq(blockVersions.blockId, blockId);
const isInTail = (blockId: number) => and(versionsOf(blockId), isNotNull(blockVersions.update));
const partsOf = (blockId: number) => eq(blockSnapshots.blockId, blockId);

/** A version names its author, the manner of the edit, and the messages that it was made of. */
type Maker = Pick<typeof blockVersions.$inferInsert, "author" | "manner" | "sources">;

export const createBlockHistory = (db: Database) => {
  /** In the order of their use, the latest last. */
  const opened = new Map<number, LoroDoc>();

  /** Opens the snapshot and the updates after it, in order. */
  const openStored = (open: typeof openDocument, loro: Loro, blockId: number): LoroDoc => {
    const parts = db.select({ bytes: blockSnapshots.bytes }).from(blockSnapshots).where(partsOf(blockId));
    const bytes = parts.orderBy(asc(blockSnapshots.part)).all();
    const tail = db.select({ update: blockVersions.update }).from(blockVersions).where(isInTail(blockId));
    const updates = tail.orderBy(asc(blockVersions.version)).all();
    return open(
      loro,
      updates.flatMap(({ update }) => (update ? [new Uint8Array(update)] : [])),
      bytes.length === 0 ? undefined : new Uint8Array(Buffer.concat(bytes.map((part) => part.bytes))),
    );
  };

  /** A refusal, so that another agent that asks for the block does not ask again and again. */
  const openSound = (loro: Loro, blockId: number): LoroDoc => {
    try {
      return openStored(openDocument, loro, blockId);
    } catch (cause) {
      throw new ColloquyError("internal", "the document of this block is damaged and cannot be opened", { cause });
    }
  };

  /** Closes a document, and forgets what of it is not stored. */
  const drop = (blockId: number): void => {
    const doc = opened.get(blockId);
    opened.delete(blockId);
    doc?.free();
  };

  const stateAt = (blockId: number, version: number): string | undefined => {
    const isVersion = and(versionsOf(blockId), eq(blockVersions.version, version));
    return db.select({ state: blockVersions.state }).from(blockVersions).where(isVersion).get()?.state;
  };

  const removeSnapshot = (blockId: number): void => {
    db.delete(blockSnapshots).where(partsOf(blockId)).run();
  };

  return {
    ...{ drop, stateAt },

    /** The document of a block. Those that were used longest ago are closed. Throws `internal` where it is damaged. */
    open(loro: Loro, blockId: number): LoroDoc {
      const doc = opened.get(blockId) ?? openSound(loro, blockId);
      opened.delete(blockId);
      opened.set(blockId, doc);
      for (const id of opened.keys()) {
        if (opened.size <= maxOpenDocuments) break;
        drop(id);
      }
      return doc;
    },

    /** The same of bytes that came from elsewhere. Throws what is wrong with them. */
    openForeign: (loro: Loro, blockId: number): LoroDoc => openStored(openForeignDocument, loro, blockId),

    append(blockId: number, { update, ...version }: Commit, by: Maker, now: number): void {
      const bytes = update.length === 0 ? null : Buffer.from(update);
      db.insert(blockVersions)
        .values({ blockId, ...version, ...by, update: bytes, createdAt: now })
        .run();
    },

    /** Puts all of the document into its snapshot, and forgets the oldest versions. */
    fold(blockId: number, doc: LoroDoc, version: number): void {
      let keep = maxBlockVersions;
      let bytes = snapshotOf(doc);
      for (const fewer of shorterHistories) {
        if (bytes.length <= maxBlockSnapshotBytes) break;
        keep = fewer;
        bytes = snapshotOf(doc, stateAt(blockId, Math.max(1, version - fewer)) ?? stateOf(doc));
      }
      removeSnapshot(blockId);
      for (let part = 0; part * partBytes < bytes.length; part += 1) {
        const slice = Buffer.from(bytes.slice(part * partBytes, (part + 1) * partBytes));
        db.insert(blockSnapshots).values({ blockId, part, bytes: slice }).run();
      }
      db.update(blockVersions).set({ update: null }).where(isInTail(blockId)).run();
      const isOld = lt(blockVersions.version, version - keep);
      db.delete(blockVersions)
        .where(and(versionsOf(blockId), isOld))
        .run();
      // It was made anew, without the oldest of its history.
      if (keep < maxBlockVersions) drop(blockId);
    },

    /** Throws `not_found` for a version that never was, or is not kept any more. */
    requireState(blockId: number, version: number, newest: number): string {
      const state = stateAt(blockId, version);
      if (state !== undefined) return state;
      const isOld = version >= 1 && version < newest;
      const why = isOld ? `version ${version} is not kept any more` : `there is no version ${version}`;
      throw new ColloquyError("not_found", `${why}; the newest is ${newest}`);
    },

    /** The newest versions of an author, oldest first, without the one that the block was created with. */
    stepsOf: (blockId: number, author: string): Step[] =>
      db
        .select({ version: blockVersions.version, kind: blockVersions.kind })
        .from(blockVersions)
        .where(and(versionsOf(blockId), eq(blockVersions.author, author), gt(blockVersions.version, 1)))
        .orderBy(desc(blockVersions.version))
        .limit(maxUndoSteps)
        .all()
        .reverse(),

    /** Newest first, those before `before`, from `since` on. Only who reads the agent is shown their sources. */
    page: (blockId: number, before = Number.MAX_SAFE_INTEGER, limit: number, since = 0, shows = false): BlockChange[] =>
      db
        .select()
        .from(blockVersions)
        .where(and(versionsOf(blockId), lt(blockVersions.version, before), gte(blockVersions.version, since)))
        .orderBy(desc(blockVersions.version))
        .limit(limit)
        .all()
        .map(({ version, author, manner, operations, sources, createdAt }) => ({
          ...{ version, operations, ...(shows && sources && { sources }) },
          author: `${author}:${manner}`,
          createdAt: isoTime(createdAt),
        })),

    forget(blockId: number): void {
      db.delete(blockVersions).where(versionsOf(blockId)).run();
      removeSnapshot(blockId);
      drop(blockId);
    },
  };
};
