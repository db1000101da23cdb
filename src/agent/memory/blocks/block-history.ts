import { and, asc, desc, eq, gt, isNotNull, lt } from "drizzle-orm";
import type { LoroDoc } from "loro-crdt/web";
import type { BlockChange } from "../../../protocol/block.ts";
import { isoTime } from "../../../shared/clock.ts";
import type { Database } from "../../../shared/database.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { maxBlockSnapshotBytes, maxBlockVersions, maxOpenDocuments, maxUndoSteps } from "../../bounds.ts";
import { openDocument, openForeignDocument, shallowSnapshotOf, snapshotOf, stateOf } from "../documents/document.ts";
import type { Commit, Step } from "../documents/edit-document.ts";
import type { Loro } from "../documents/loro.ts";
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

export class BlockHistory {
  readonly #db: Database;
  /** In the order of their use, the latest last. */
  readonly #open = new Map<number, LoroDoc>();

  constructor(db: Database) {
    this.#db = db;
  }

  /** The document of a block. Those that were used longest ago are closed. */
  open(loro: Loro, blockId: number): LoroDoc {
    const doc = this.#open.get(blockId) ?? this.#read(loro, blockId);
    this.#open.delete(blockId);
    this.#open.set(blockId, doc);
    for (const id of this.#open.keys()) {
      if (this.#open.size <= maxOpenDocuments) break;
      this.drop(id);
    }
    return doc;
  }

  /** Closes a document, and forgets what of it is not stored. */
  drop(blockId: number): void {
    const doc = this.#open.get(blockId);
    this.#open.delete(blockId);
    doc?.free();
  }

  /** The same of bytes that came from elsewhere. Throws what is wrong with them. */
  openForeign(loro: Loro, blockId: number): LoroDoc {
    const { snapshot, updates } = this.#bytes(blockId);
    return openForeignDocument(loro, snapshot ? [snapshot, ...updates] : updates);
  }

  #read(loro: Loro, blockId: number): LoroDoc {
    const { snapshot, updates } = this.#bytes(blockId);
    return openDocument(loro, updates, snapshot);
  }

  /** The snapshot and the updates after it, in order. */
  #bytes(blockId: number): { snapshot: Uint8Array | undefined; updates: Uint8Array[] } {
    const parts = this.#db
      .select({ bytes: blockSnapshots.bytes })
      .from(blockSnapshots)
      .where(eq(blockSnapshots.blockId, blockId))
      .orderBy(asc(blockSnapshots.part))
      .all();
    const updates = this.#db
      .select({ update: blockVersions.update })
      .from(blockVersions)
      .where(and(eq(blockVersions.blockId, blockId), isNotNull(blockVersions.update)))
      .orderBy(asc(blockVersions.version))
      .all();
    return {
      snapshot: parts.length === 0 ? undefined : new Uint8Array(Buffer.concat(parts.map(({ bytes }) => bytes))),
      updates: updates.flatMap(({ update }) => (update ? [new Uint8Array(update)] : [])),
    };
  }

  append(blockId: number, { update, ...version }: Commit, by: { author: string; manner: string }, now: number): void {
    const bytes = update.length === 0 ? null : Buffer.from(update);
    this.#db
      .insert(blockVersions)
      .values({ blockId, ...version, ...by, update: bytes, createdAt: now })
      .run();
  }

  /** Puts all of the document into its snapshot, and forgets the oldest versions. */
  fold(blockId: number, doc: LoroDoc, version: number): void {
    let keep = maxBlockVersions;
    let bytes = snapshotOf(doc);
    for (const fewer of shorterHistories) {
      if (bytes.length <= maxBlockSnapshotBytes) break;
      keep = fewer;
      const from = this.stateAt(blockId, Math.max(1, version - fewer)) ?? stateOf(doc);
      bytes = shallowSnapshotOf(doc, from);
    }
    this.#db.delete(blockSnapshots).where(eq(blockSnapshots.blockId, blockId)).run();
    for (let part = 0; part * partBytes < bytes.length; part += 1) {
      const slice = Buffer.from(bytes.slice(part * partBytes, (part + 1) * partBytes));
      this.#db.insert(blockSnapshots).values({ blockId, part, bytes: slice }).run();
    }
    const mine = eq(blockVersions.blockId, blockId);
    this.#db
      .update(blockVersions)
      .set({ update: null })
      .where(and(mine, isNotNull(blockVersions.update)))
      .run();
    this.#db
      .delete(blockVersions)
      .where(and(mine, lt(blockVersions.version, version - keep)))
      .run();
    // It was made anew, without the oldest of its history.
    if (keep < maxBlockVersions) this.drop(blockId);
  }

  stateAt(blockId: number, version: number): string | undefined {
    return this.#db
      .select({ state: blockVersions.state })
      .from(blockVersions)
      .where(and(eq(blockVersions.blockId, blockId), eq(blockVersions.version, version)))
      .get()?.state;
  }

  /** Throws `not_found` for a version that never was, or is not kept any more. */
  requireState(blockId: number, version: number, newest: number): string {
    const state = this.stateAt(blockId, version);
    if (state !== undefined) return state;
    const why =
      version >= 1 && version < newest ? `version ${version} is not kept any more` : `there is no version ${version}`;
    throw new ColloquyError("not_found", `${why}; the newest is ${newest}`);
  }

  /** The newest versions of an author, oldest first, without the one that the block was created with. */
  stepsOf(blockId: number, author: string): Step[] {
    return this.#db
      .select({ version: blockVersions.version, kind: blockVersions.kind })
      .from(blockVersions)
      .where(and(eq(blockVersions.blockId, blockId), eq(blockVersions.author, author), gt(blockVersions.version, 1)))
      .orderBy(desc(blockVersions.version))
      .limit(maxUndoSteps)
      .all()
      .reverse();
  }

  /** Newest first, those before `before`. */
  page(blockId: number, before: number | undefined, limit: number): BlockChange[] {
    const mine = eq(blockVersions.blockId, blockId);
    return this.#db
      .select()
      .from(blockVersions)
      .where(before === undefined ? mine : and(mine, lt(blockVersions.version, before)))
      .orderBy(desc(blockVersions.version))
      .limit(limit)
      .all()
      .map(({ version, author, manner, operations, createdAt }) => ({
        ...{ version, operations },
        author: `${author}:${manner}`,
        createdAt: isoTime(createdAt),
      }));
  }

  forget(blockId: number): void {
    this.#db.delete(blockVersions).where(eq(blockVersions.blockId, blockId)).run();
    this.#db.delete(blockSnapshots).where(eq(blockSnapshots.blockId, blockId)).run();
  }
}
