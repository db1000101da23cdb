import { asc, eq, lte, sql } from "drizzle-orm";
import type { LoroDoc } from "loro-crdt/web";
import type { BlockPrincipal, SharedEdit } from "../../../protocol/agent-rpc.ts";
import type { BlockDetail, CreateBlock, EditedBlock, Json, Permission, UpdateBlock } from "../../../protocol/block.ts";
import type { BlockOperation } from "../../../protocol/block-operation.ts";
import { type Clock, isoTime } from "../../../shared/clock.ts";
import { type Database, prepared, rowsBy } from "../../../shared/database.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { maxBlockCalls, maxBlocks, maxBlockTail, maxBlockUpdateBytes } from "../../bounds.ts";
import { contentOf } from "../documents/cells.ts";
import { changedSchema, checkBlockSchema, checkFits } from "../documents/check-content.ts";
import { contentAt, type Loro, loadLoro, openDocument, stateOf } from "../documents/document.ts";
import { editDocument } from "../documents/edit-document.ts";
import { checkPermission, rightOf, type Writer } from "../documents/permission.ts";
import { render, renderingRules } from "../documents/render.ts";
import { createBlockHistory } from "./block-history.ts";
import { blockCalls, blocks, type DoneEdit } from "./schema.ts";
import { type BlockRow, blockView, isSpaceId, type Shares } from "./shares.ts";

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

/** A stored change with its author; `value` is the content after it, undefined where the block was deleted. */
export type StoredChange = { row: BlockRow; by: string; value?: Json };

export type Blocks = ReturnType<typeof createBlocks>;

const all = prepared((db) => db.select().from(blocks).orderBy(asc(blocks.label)));
const one = prepared((db) => rowsBy(db, blocks, blocks.label));

/** `changed` is called once a change is stored. */
export const createBlocks = (
  db: Database,
  clock: Clock,
  shares: Pick<Shares, "permissionOf" | "isWithheld" | "since" | "view">,
  changed: (change: StoredChange) => void,
) => {
  const history = createBlockHistory(db);

  /** By label. */
  const list = (): BlockRow[] => all(db).all();

  const find = (label: string): BlockRow | undefined => one(db).get({ key: label });

  /** Throws `not_found`. */
  const get = (label: string): BlockRow => {
    const row = find(label);
    if (!row) throw new ColloquyError("not_found", `there is no block "${label}"`);
    return row;
  };

  const shows = (schema: BlockRow["schema"], value: Json): Pick<BlockRow, "rendered" | "renderedBy"> => ({
    rendered: render(schema, value),
    renderedBy: renderingRules,
  });

  const write = (id: number, changes: Partial<Omit<BlockRow, "id">>): BlockRow =>
    db.update(blocks).set(changes).where(eq(blocks.id, id)).returning().get() as BlockRow;

  /**
   * A block, its permission for an agent or the people of a space, and their first version. Throws `not_found` where it is
   * not shared.
   */
  const granted = (
    label: string,
    granteeId: string,
    confidential = false,
  ): { row: BlockRow; permission: Permission; since: number } => {
    const row = find(label);
    const permission = row && shares.permissionOf(row, granteeId, confidential);
    if (row && permission !== undefined) return { row, permission, since: shares.since(row.id, granteeId) };
    const whom = isSpaceId(granteeId) ? "this space" : "you";
    throw new ColloquyError("not_found", `no block "${label}" is shared with ${whom}`);
  };

  /**
   * A block, and as whom a principal writes it. Throws `not_found` where it is not shared with that principal, and
   * `forbidden` for what would leave a confidential space.
   */
  const access = (label: string, by: BlockPrincipal): { row: BlockRow; writer: Writer; since: number } => {
    const now = isoTime(clock.now());
    if (by.kind === "workspace") {
      const { row } = by.through === undefined ? { row: get(label) } : granted(label, by.through, by.confidential);
      return { row, writer: { kind: "system", now }, since: 0 };
    }
    const granteeId = by.kind === "person" ? by.spaceId : by.agentId;
    const { row, permission, since } = granted(label, granteeId, by.confidential);
    if (by.kind === "person" && shares.isWithheld(row, granteeId, by.confidential === true)) {
      const why = 'what is written in it leaves this space; its owner may allow that (confidential: "allowed")';
      const detail = `"${label}" is an open block, which a confidential space only reads: ${why}`;
      throw new ColloquyError("forbidden", detail);
    }
    const consented = by.kind === "agent" && by.consented === true;
    return { row, writer: { kind: by.kind, now, name: by.name, permission, consented }, since };
  };

  const answered = (callId: string | undefined): DoneEdit | undefined =>
    callId === undefined ? undefined : db.select().from(blockCalls).where(eq(blockCalls.callId, callId)).get()?.result;

  const answer = (callId: string | undefined, result: DoneEdit): void => {
    if (callId === undefined) return;
    const { id } = db.insert(blockCalls).values({ callId, result }).returning({ id: blockCalls.id }).get();
    const isOld = lte(blockCalls.id, id - maxBlockCalls);
    db.delete(blockCalls).where(isOld).run();
  };

  /** The answers to edits of a block quote its words. */
  const forgetResults = (label: string): void => {
    const result = sql`json_set(${blockCalls.result}, '$.results', json('[]'))`;
    db.update(blockCalls)
      .set({ result })
      .where(sql`instr(${blockCalls.result}, ${`'${label}'`}) > 0`)
      .run();
  };

  /** Throws `not_found` for a version from before the share began. */
  const requireSince = (since: number, version: number | undefined): void => {
    if (version === undefined || version >= since) return;
    throw new ColloquyError(
      "not_found",
      `version ${version} is from before it was shared; the first to read is ${since}`,
    );
  };

  const foldInto = (row: BlockRow, doc: LoroDoc): void => {
    history.fold(row.id, doc, row.version);
    write(row.id, { snapshotVersion: row.version });
  };

  const isOld = ({ renderedBy }: BlockRow): boolean => renderedBy !== renderingRules;

  const renderedOf = (loro: Loro, { id, schema }: BlockRow): ReturnType<typeof shows> => {
    try {
      return shows(schema, contentOf(history.open(loro, id), schema));
    } catch (error) {
      if (!(error instanceof ColloquyError)) throw error;
      return { rendered: "(damaged)", renderedBy: renderingRules };
    }
  };

  /** The content, now or at an earlier version. Throws `not_found` for a version that is not there. */
  const read = async (label: string, version?: number): Promise<{ row: BlockRow; value: Json; rendered: string }> => {
    const known = get(label);
    // Most often what it shows is all that it holds, and nothing need be opened.
    if (version === undefined && known.schema.type === "text" && !known.schema.viewport) {
      return { row: known, value: known.rendered, rendered: known.rendered };
    }
    const loro = await loadLoro();
    const row = get(label);
    const doc = history.open(loro, row.id);
    const state =
      version === undefined || version === row.version
        ? stateOf(doc)
        : history.requireState(row.id, version, row.version);
    const value = contentAt(doc, row.schema, state);
    return { row, value, rendered: render(row.schema, value) };
  };

  /**
   * Settings that are left out stay as they were. Throws where the content does not fit the new schema. `check` is asked in
   * the turn of the write.
   */
  const update = async (
    label: string,
    { viewport, section, schema, ...plain }: UpdateBlock,
    by: string,
    check?: () => void,
  ): Promise<BlockRow> => {
    if (schema) checkBlockSchema(schema);
    const loro = await loadLoro();
    const row = get(label);
    check?.();
    const next = changedSchema(row.schema, { schema, viewport, section });
    const value = contentOf(history.open(loro, row.id), next);
    if (schema) checkFits(row.schema, next, value);
    const shown = next === row.schema ? {} : { schema: next, ...shows(next, value) };
    const settings = Object.fromEntries(Object.entries(plain).filter(([, value]) => value !== undefined));
    const archived = archivedBy(row, plain.type);
    const written = write(row.id, { ...settings, ...shown, archived, updatedAt: clock.now() });
    changed({ row: written, by, value });
    return written;
  };

  /** It was loaded or referenced. */
  const touch = (label: string): void => {
    write(get(label).id, { lastUsedAt: clock.now() });
  };

  return {
    ...{ list, find, get, granted, read, update, touch },

    /** Throws `name_taken`, `limit_reached`, and what is wrong with its schema or content. */
    async create({ content, ...input }: CreateBlock, by: string, callId?: string, sources?: string[]) {
      checkBlockSchema(input.schema);
      const loro = await loadLoro();
      if (answered(callId)) return get(input.label);
      if (find(input.label)) throw new ColloquyError("name_taken", `there is a block "${input.label}" already`);
      if (list().length >= maxBlocks) {
        throw new ColloquyError("limit_reached", `maxBlocks (${maxBlocks}) is reached; delete some first`);
      }
      const now = clock.now();
      const doc = openDocument(loro, []);
      const { value, commits } = editDocument(doc, {
        ...{ ...input, content, version: 0, operations: [], writer: { kind: "system", now: isoTime(now) } },
        ...{ steps: () => [], stateAt: () => undefined },
      });
      doc.free();
      const values = {
        ...{ ...input, partnerEntityId: input.partnerEntityId ?? null, version: 1, snapshotVersion: 0 },
        ...{ ...shows(input.schema, value), lastUsedAt: now, createdAt: now, updatedAt: now },
      };
      const row = db.transaction(() => {
        const created = db.insert(blocks).values(values).returning().get();
        const maker = { author: by, manner: "create", sources };
        for (const commit of commits) history.append(created.id, commit, maker, now);
        answer(callId, { version: 1, results: [] });
        return created;
      });
      changed({ row, by, value });
      return row;
    },

    /** All operations or none. Throws what refuses them. */
    async edit(label: string, { operations, onVersion, by, callId, sources }: BlockEdit): Promise<EditedBlock> {
      // Nothing is loaded for a block that the principal does not have.
      access(label, by);
      const loro = await loadLoro();
      const known = answered(callId);
      if (known) {
        const { rendered, value } = await read(label);
        return { ...known, rendered, value };
      }
      const { row, writer, since } = access(label, by);
      requireSince(since, onVersion);
      const { id, schema, charLimit } = row;
      const now = clock.now();
      const author = authorOf(by);
      const on = onVersion === undefined ? undefined : history.requireState(id, onVersion, row.version);
      try {
        const { next, ...edited } = db.transaction(() => {
          const doc = history.open(loro, id);
          const { commits, results, value } = editDocument(doc, {
            ...{ schema, charLimit, label, operations, writer, on },
            version: row.version,
            steps: () => history.stepsOf(id, author).filter(({ version }) => version > since),
            stateAt: (version) => history.stateAt(id, version),
          });
          for (const commit of commits) {
            if (commit.update.length > maxBlockUpdateBytes) {
              const message = "the edit changes too much at once: make it in smaller steps";
              throw new ColloquyError("payload_too_large", message);
            }
            history.append(id, commit, { author, manner: mannerOf(commit.operations), sources }, now);
          }
          const version = commits.at(-1)?.version ?? row.version;
          const { rendered, renderedBy } = shows(schema, value);
          answer(callId, { version, results });
          const next =
            commits.length === 0 ? row : write(id, { rendered, renderedBy, version, updatedAt: now, lastUsedAt: now });
          if (version - next.snapshotVersion >= maxBlockTail) foldInto(next, doc);
          return { rendered, value, version, results, next };
        });
        if (next !== row) changed({ row: next, by: author, value: edited.value });
        return edited;
      } catch (error) {
        history.drop(id);
        throw error;
      }
    },

    /** Whether this call was answered before: a replay finds another block under the label. */
    wasDone: (callId: string | undefined): boolean => answered(callId) !== undefined,

    /**
     * Its label is free again. Undefined where the same call has deleted it before. Throws `forbidden` where an agent's
     * permission does not allow it.
     */
    delete(label: string, { by, callId }: Pick<BlockEdit, "by" | "callId">): BlockRow | undefined {
      if (answered(callId)) return undefined;
      const { row, writer } = access(label, by);
      checkPermission("delete_block", writer);
      db.transaction(() => {
        history.forget(row.id);
        db.delete(blocks).where(eq(blocks.id, row.id)).run();
        forgetResults(label);
        answer(callId, { version: row.version, results: [] });
      });
      changed({ row, by: authorOf(by) });
      return row;
    },

    /** A block with all that is told of it; as a grantee sees it, where one is named. Throws `not_found`. */
    async detail(label: string, version?: number, granteeId?: string, confidential?: boolean): Promise<BlockDetail> {
      const permission = () => {
        if (granteeId === undefined) return undefined;
        const { permission: own, since } = granted(label, granteeId, confidential);
        requireSince(since, version);
        return own;
      };
      permission();
      const { row, value, rendered } = await read(label, version);
      // The block may have been taken back while it was read.
      const shared = permission();
      const view = shared ? shares.view(row, shared) : blockView(row);
      return { ...view, value, rendered, version: version ?? row.version };
    },

    /** Newest first; for a grantee those since the share. Throws `not_found` where it is not shared with that one. */
    history(label: string, before: number | undefined, limit: number, granteeId?: string, shows = false) {
      const { row, since } = granteeId === undefined ? { row: get(label), since: 0 } : granted(label, granteeId);
      return history.page(row.id, before, limit, since, shows);
    },

    /** All, as today's rules render them. It writes nothing: no compartment that asks is noticed (C21). */
    async rendered(): Promise<BlockRow[]> {
      if (!list().some(isOld)) return list();
      const loro = await loadLoro();
      return list().map((row) => (isOld(row) ? { ...row, ...renderedOf(loro, row) } : row));
    },

    /** Stores what today's rules render: by an older release's a line of one could pass for another's (S2). */
    async storeRendered(): Promise<void> {
      if (!list().some(isOld)) return;
      const loro = await loadLoro();
      const updatedAt = clock.now();
      for (const row of list().filter(isOld)) write(row.id, { ...renderedOf(loro, row), updatedAt });
    },

    /** Puts all of its document into one snapshot now; the block and its versions stay as they are. */
    async fold(label: string): Promise<void> {
      const loro = await loadLoro();
      const row = find(label);
      if (row) db.transaction(() => foldInto(row, history.open(loro, row.id)));
    },
  };
};

/** How a block was kept before a change of its type put it away; null where it is not away. */
const archivedBy = ({ type, pinned, archived }: BlockRow, next: BlockRow["type"] = type): BlockRow["archived"] => {
  if (next === type) return archived;
  return next === "archival" ? { type, pinned } : null;
};

const authorOf = (by: BlockPrincipal): string => (by.kind === "agent" ? `agent:${by.agentId}` : by.author);

/** One word for how a version was made, from the names of its operations. */
const mannerOf = (operations: BlockOperation["op"][]): string => {
  const [first] = operations;
  if (first === "undo" || first === "redo") return first;
  const rights = operations.map(rightOf);
  if (rights.includes("Delete")) return "delete";
  return rights.length > 0 && rights.every((right) => right === "Append") ? "append" : "edit";
};
