import { asc, eq, lte, sql } from "drizzle-orm";
import type { LoroDoc } from "loro-crdt/web";
import type { BlockPrincipal, SharedEdit } from "../../../protocol/agent-rpc.ts";
import type {
  Block,
  BlockChange,
  BlockDetail,
  CreateBlock,
  EditedBlock,
  Json,
  Permission,
  UpdateBlock,
} from "../../../protocol/block.ts";
import type { BlockOperation } from "../../../protocol/block-operation.ts";
import { type Clock, isoTime } from "../../../shared/clock.ts";
import { type Database, prepared } from "../../../shared/database.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { maxBlockCalls, maxBlocks, maxBlockTail, maxBlockUpdateBytes } from "../../bounds.ts";
import { contentOf } from "../documents/cells.ts";
import { checkBlockSchema } from "../documents/check-content.ts";
import { contentAt, openDocument, stateOf } from "../documents/document.ts";
import { editDocument, fillDocument } from "../documents/edit-document.ts";
import type { Loro } from "../documents/loro.ts";
import { checkPermission, rightOf, type Writer } from "../documents/permission.ts";
import { render } from "../documents/render.ts";
import { BlockHistory } from "./block-history.ts";
import { type BlockRow, blockView, isSpaceId } from "./block-view.ts";
import { changedSchema, checkFits } from "./changed-schema.ts";
import { blockCalls, blocks, type DoneEdit } from "./schema.ts";

/**
 * An agent's blocks.
 *
 * Invariants
 * 1. A row's `rendered` is what its document shows: both change in one transaction, so nobody opens a document to read.
 * 2. An edit is stored before anybody is told of it; a document whose edit was not stored is dropped from memory.
 * 3. The same call again changes nothing and is answered as before (R2).
 * 4. Every method that needs a document loads what opens it first, and does all else in one turn: two edits never meet.
 */
export type BlockEdit = Omit<SharedEdit, "until">;

/** A stored change with its author; `value` is the content after it, where that was read. */
export type StoredChange = { what: "edited" | "updated" | "deleted"; row: BlockRow; by: string; value?: Json };

type Around = {
  db: Database;
  clock: Clock;
  shares: {
    permissionOf(row: BlockRow, granteeId: string): Permission | undefined;
    view(row: BlockRow, permission: Permission): Block;
  };
  transaction<T>(work: () => T): T;
  loadLoro(): Promise<Loro>;
  /** Called once it is stored. */
  changed(change: StoredChange): void;
};

export class Blocks {
  readonly #around: Around;
  readonly #history: BlockHistory;
  readonly #all = prepared(() => this.#around.db.select().from(blocks).orderBy(asc(blocks.label)));
  readonly #one = prepared(() =>
    this.#around.db
      .select()
      .from(blocks)
      .where(eq(blocks.label, sql.placeholder("label"))),
  );

  constructor(around: Around) {
    this.#around = around;
    this.#history = new BlockHistory(around.db);
  }

  /** By label. */
  list(): BlockRow[] {
    return this.#all().all();
  }

  find(label: string): BlockRow | undefined {
    return this.#one().get({ label });
  }

  /** Throws `not_found`. */
  get(label: string): BlockRow {
    const row = this.find(label);
    if (!row) throw new ColloquyError("not_found", `there is no block "${label}"`);
    return row;
  }

  /** A block, and its permission for an agent or the people of a space. Throws `not_found` where it is not shared. */
  granted(label: string, granteeId: string): { row: BlockRow; permission: Permission } {
    const row = this.find(label);
    const permission = row && this.#around.shares.permissionOf(row, granteeId);
    if (row && permission !== undefined) return { row, permission };
    const whom = isSpaceId(granteeId) ? "this space" : "you";
    throw new ColloquyError("not_found", `no block "${label}" is shared with ${whom}`);
  }

  /** A block, and as whom a principal writes it. Throws `not_found` where it is not shared with that principal. */
  access(label: string, by: BlockPrincipal): { row: BlockRow; writer: Writer } {
    const now = isoTime(this.#around.clock.now());
    if (by.kind === "workspace") {
      const { row } = by.through === undefined ? { row: this.get(label) } : this.granted(label, by.through);
      return { row, writer: { kind: "system", now } };
    }
    const { row, permission } = this.granted(label, by.kind === "person" ? by.spaceId : by.agentId);
    const consented = by.kind === "agent" && by.consented === true;
    return { row, writer: { kind: by.kind, now, name: by.name, permission, consented } };
  }

  /** Throws `name_taken`, `limit_reached`, and what is wrong with its schema or content. */
  async create({ content, ...input }: CreateBlock, by: string, callId?: string): Promise<BlockRow> {
    checkBlockSchema(input.schema);
    const loro = await this.#around.loadLoro();
    if (callId !== undefined && this.#answered(callId)) return this.get(input.label);
    const { db, clock, transaction } = this.#around;
    if (this.find(input.label)) throw new ColloquyError("name_taken", `there is a block "${input.label}" already`);
    if (this.list().length >= maxBlocks) {
      throw new ColloquyError("limit_reached", `maxBlocks (${maxBlocks}) is reached; delete some first`);
    }
    const now = clock.now();
    const doc = openDocument(loro, []);
    const { value, commit } = fillDocument(doc, { ...input, content, now: isoTime(now) });
    doc.free();
    const row = transaction(() => {
      const created = db
        .insert(blocks)
        .values({
          ...input,
          partnerEntityId: input.partnerEntityId ?? null,
          version: 1,
          rendered: render(input.schema, value),
          snapshotVersion: 0,
          lastUsedAt: now,
          createdAt: now,
          updatedAt: now,
        })
        .returning()
        .get();
      this.#history.append(created.id, commit, { author: by, manner: "create" }, now);
      if (callId !== undefined) this.#answer(callId, { version: 1, results: [] });
      return created;
    });
    this.#around.changed({ what: "edited", row, by, value });
    return row;
  }

  /** All operations or none. Throws what refuses them. */
  async edit(label: string, { operations, onVersion, by, callId }: BlockEdit): Promise<EditedBlock> {
    // Nothing is loaded for a block that the principal does not have.
    this.access(label, by);
    const loro = await this.#around.loadLoro();
    const known = callId === undefined ? undefined : this.#answered(callId);
    if (known) {
      const { rendered, value } = await this.read(label);
      return { ...known, rendered, value };
    }
    const { row, writer } = this.access(label, by);
    const { transaction, clock } = this.#around;
    const now = clock.now();
    const author = authorOf(by);
    const on = onVersion === undefined ? undefined : this.#history.requireState(row.id, onVersion, row.version);
    try {
      const edited = transaction(() => {
        const doc = this.#history.open(loro, row.id);
        const { commits, results, value } = editDocument(doc, {
          schema: row.schema,
          charLimit: row.charLimit,
          label,
          operations,
          writer,
          version: row.version,
          on,
          steps: () => this.#history.stepsOf(row.id, author),
          stateAt: (version) => this.#history.stateAt(row.id, version),
        });
        for (const commit of commits) {
          if (commit.update.length > maxBlockUpdateBytes) {
            throw new ColloquyError("payload_too_large", "the edit changes too much at once: make it in smaller steps");
          }
          this.#history.append(row.id, commit, { author, manner: mannerOf(commit.operations) }, now);
        }
        const version = commits.at(-1)?.version ?? row.version;
        const rendered = render(row.schema, value);
        if (callId !== undefined) this.#answer(callId, { version, results });
        const next =
          commits.length === 0 ? row : this.#write(row.id, { rendered, version, updatedAt: now, lastUsedAt: now });
        if (next.version - next.snapshotVersion >= maxBlockTail) this.#fold(next, doc);
        return { result: { rendered, value, version, results }, next };
      });
      if (edited.next !== row) {
        this.#around.changed({ what: "edited", row: edited.next, by: author, value: edited.result.value });
      }
      return edited.result;
    } catch (error) {
      this.#history.drop(row.id);
      throw error;
    }
  }

  /** Settings that are left out stay as they were. Throws where the content does not fit the new schema. */
  async update(label: string, { viewport, section, schema, ...plain }: UpdateBlock, by: string): Promise<BlockRow> {
    if (schema) checkBlockSchema(schema);
    const loro = await this.#around.loadLoro();
    const row = this.get(label);
    const next = changedSchema(row.schema, { schema, viewport, section });
    const value = contentOf(this.#history.open(loro, row.id), next);
    if (schema) checkFits(row.schema, next, value);
    const shown = next === row.schema ? {} : { schema: next, rendered: render(next, value) };
    const settings = Object.fromEntries(Object.entries(plain).filter(([, value]) => value !== undefined));
    const written = this.#write(row.id, { ...settings, ...shown, updatedAt: this.#around.clock.now() });
    this.#around.changed({ what: "updated", row: written, by, value });
    return written;
  }

  async pin(label: string, pinned: boolean, by: string): Promise<void> {
    if (this.get(label).pinned === pinned) return;
    await this.update(label, { pinned }, by);
    this.touch(label);
  }

  /** Its label is free again. Throws `forbidden` where an agent's permission does not allow it. */
  delete(label: string, by: BlockPrincipal): BlockRow {
    const { db, transaction } = this.#around;
    const { row, writer } = this.access(label, by);
    checkPermission("delete_block", writer);
    transaction(() => {
      this.#history.forget(row.id);
      db.delete(blocks).where(eq(blocks.id, row.id)).run();
    });
    this.#history.drop(row.id);
    this.#around.changed({ what: "deleted", row, by: authorOf(by) });
    return row;
  }

  /** The content, now or at an earlier version. Throws `not_found` for a version that is not there. */
  async read(label: string, version?: number): Promise<{ row: BlockRow; value: Json; rendered: string }> {
    const { schema } = this.get(label);
    // Most often what it shows is all that it holds, and nothing need be opened.
    if (version === undefined && schema.type === "text" && !schema.viewport) {
      const row = this.get(label);
      return { row, value: row.rendered, rendered: row.rendered };
    }
    const loro = await this.#around.loadLoro();
    const row = this.get(label);
    const doc = this.#history.open(loro, row.id);
    const state =
      version === undefined || version === row.version
        ? stateOf(doc)
        : this.#history.requireState(row.id, version, row.version);
    const value = contentAt(doc, row.schema, state);
    return { row, value, rendered: render(row.schema, value) };
  }

  /** The same with all that is told of it; as a grantee sees it, where one is named. Throws `not_found`. */
  async detail(label: string, version?: number, granteeId?: string): Promise<BlockDetail> {
    if (granteeId !== undefined) this.granted(label, granteeId);
    const { row, value, rendered } = await this.read(label, version);
    // The block may have been taken back while it was read.
    const view =
      granteeId === undefined
        ? blockView(row)
        : this.#around.shares.view(row, this.granted(label, granteeId).permission);
    return { ...view, value, rendered, version: version ?? row.version };
  }

  /** All of its text, whatever is shown: what search is to find. */
  async wholeText(label: string): Promise<string> {
    const { row, value } = await this.read(label);
    return render(row.schema, value, { whole: true });
  }

  /** Newest first. */
  history(label: string, before: number | undefined, limit: number): BlockChange[] {
    return this.#history.page(this.get(label).id, before, limit);
  }

  /** It was loaded or referenced. */
  touch(label: string): void {
    this.#write(this.get(label).id, { lastUsedAt: this.#around.clock.now() });
  }

  #write(id: number, changes: Partial<Omit<BlockRow, "id">>): BlockRow {
    return this.#around.db.update(blocks).set(changes).where(eq(blocks.id, id)).returning().get() as BlockRow;
  }

  /** Puts all of its document into one snapshot now; the block and its versions stay as they are. */
  async fold(label: string): Promise<void> {
    const loro = await this.#around.loadLoro();
    const row = this.find(label);
    if (row) this.#around.transaction(() => this.#fold(row, this.#history.open(loro, row.id)));
  }

  #fold(row: BlockRow, doc: LoroDoc): void {
    this.#history.fold(row.id, doc, row.version);
    this.#write(row.id, { snapshotVersion: row.version });
  }

  #answered(callId: string): DoneEdit | undefined {
    return this.#around.db.select().from(blockCalls).where(eq(blockCalls.callId, callId)).get()?.result;
  }

  #answer(callId: string, result: DoneEdit): void {
    const { db } = this.#around;
    const { id } = db.insert(blockCalls).values({ callId, result }).returning({ id: blockCalls.id }).get();
    db.delete(blockCalls)
      .where(lte(blockCalls.id, id - maxBlockCalls))
      .run();
  }
}

const authorOf = (by: BlockPrincipal): string => (by.kind === "agent" ? `agent:${by.agentId}` : by.author);

/** One word for how a version was made, from the names of its operations. */
const mannerOf = (operations: BlockOperation["op"][]): string => {
  const [first] = operations;
  if (first === "undo" || first === "redo") return first;
  const rights = operations.map(rightOf);
  if (rights.includes("Delete")) return "delete";
  return rights.length > 0 && rights.every((right) => right === "Append") ? "append" : "edit";
};
