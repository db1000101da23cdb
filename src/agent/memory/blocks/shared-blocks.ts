import { and, asc, count, eq } from "drizzle-orm";
import type { Env } from "../../../env/env.ts";
import type { BlockPrincipal, SharedBlockNote } from "../../../protocol/agent-rpc.ts";
import type { Block, BlockDetail, EditedBlock } from "../../../protocol/block.ts";
import { type Clock, isoTime } from "../../../shared/clock.ts";
import { type Database, prepared, Remembered } from "../../../shared/database.ts";
import { ColloquyError, unwrap } from "../../../shared/errors.ts";
import type { Ids } from "../../../shared/ids.ts";
import { maxSharedBlocks, spaceAnswerMs } from "../../bounds.ts";
import { callWithRetry } from "../../call-with-retry.ts";
import type { Identity } from "../../identity.ts";
import type { BlockSubscriptions } from "./block-subscriptions.ts";
import type { BlockEdit, Blocks } from "./blocks.ts";
import { sharedBlocks } from "./schema.ts";
import type { Shares } from "./shares.ts";

/** A block of another agent, as far as this one has heard. */
export type SharedBlockRow = typeof sharedBlocks.$inferSelect;

type Around = {
  db: Database;
  clock: Clock;
  env: Pick<Env, "AGENT">;
  ids: Ids;
  identity: Pick<Identity, "get">;
  blocks(): Pick<Blocks, "find" | "detail" | "edit">;
};

const isRow = ({ ownerId, label }: Pick<SharedBlockRow, "ownerId" | "label">) =>
  and(eq(sharedBlocks.ownerId, ownerId), eq(sharedBlocks.label, label));

/**
 * Blocks that other agents share with this one, and all blocks by the labels that they have here.
 *
 * Invariants
 * 1. An owner that says that it does not share a block (any more) is believed at once.
 * 2. One that cannot be reached stops nothing: its blocks read `(unavailable)`.
 */
export class SharedBlocks {
  readonly #around: Around;
  readonly #all = prepared(() =>
    this.#around.db.select().from(sharedBlocks).orderBy(asc(sharedBlocks.label), asc(sharedBlocks.ownerName)),
  );
  readonly #list: Remembered<SharedBlockRow[]>;

  constructor(around: Around) {
    this.#around = around;
    this.#list = new Remembered(around.db, () => this.#all().all());
  }

  /** By label. */
  list(): SharedBlockRow[] {
    return this.#list.get();
  }

  /**
   * The block of another agent that a label means here; of several, that of the agent named or with the id `from`. This
   * agent's own comes first, where `from` is left out. Throws `conflict` where that leaves more than one.
   */
  find(label: string, from?: string): SharedBlockRow | undefined {
    if (from === undefined && this.#around.blocks().find(label)) return undefined;
    const found = this.list().filter(
      (row) => row.label === label && (from === undefined || row.ownerId === from || row.ownerName === from),
    );
    if (found.length <= 1) return found[0];
    const owners = found.map(({ ownerName, ownerId }) => `${JSON.stringify(ownerName)} (${ownerId})`).join(", ");
    throw new ColloquyError("conflict", `several agents share "${label}" with you: say from which, ${owners}`);
  }

  /** Throws `limit_reached` past `maxSharedBlocks`. */
  note({ ownerId, label, ...told }: SharedBlockNote): void {
    const now = this.#around.clock.now();
    const isKnown = this.list().some((row) => row.ownerId === ownerId && row.label === label);
    const rows = this.#around.db.select({ rows: count() }).from(sharedBlocks).get()?.rows ?? 0;
    if (!isKnown && rows >= maxSharedBlocks) {
      throw new ColloquyError(
        "limit_reached",
        `maxSharedBlocks (${maxSharedBlocks}) are shared with that agent already`,
      );
    }
    this.#list
      .writing()
      .insert(sharedBlocks)
      .values({ ownerId, label, ...told, createdAt: now })
      .onConflictDoUpdate({ target: [sharedBlocks.ownerId, sharedBlocks.label], set: told })
      .run();
  }

  pin(row: SharedBlockRow, pinned: boolean): void {
    this.#list.writing().update(sharedBlocks).set({ pinned }).where(isRow(row)).run();
  }

  drop(row: Pick<SharedBlockRow, "ownerId" | "label">): void {
    this.#list.writing().delete(sharedBlocks).where(isRow(row)).run();
  }

  /** A block under its label here. Throws `not_found`, what another owner refuses, or `unavailable`. */
  async load(label: string, signal: AbortSignal, { version, from }: View = {}): Promise<BlockDetail> {
    const { blocks, env, identity } = this.#around;
    const row = this.find(label, from);
    if (!row) return blocks().detail(label, version);
    const { id, workspaceId } = identity.get();
    const ask = () => env.AGENT.getByName(row.ownerId).block(workspaceId, label, version, id);
    return { ...unwrap(await callWithRetry(ask, signal)), pinned: row.pinned };
  }

  /** Edits a block under its label here. Throws what refuses it, or `unavailable`. */
  async edit(label: string, edit: BlockEdit, signal: AbortSignal, from?: string): Promise<EditedBlock> {
    const { blocks, env, identity, ids, clock } = this.#around;
    const row = this.find(label, from);
    if (!row) return blocks().edit(label, edit);
    const { id, workspaceId } = identity.get();
    const by: BlockPrincipal = edit.by.kind === "workspace" ? { ...edit.by, through: id } : edit.by;
    // Its owner may be asked again where its answer was lost.
    const callId = edit.callId ?? ids.mint("key");
    const ask = () => {
      const until = clock.now() + spaceAnswerMs;
      return env.AGENT.getByName(row.ownerId).editSharedBlock(workspaceId, label, { ...edit, by, callId, until });
    };
    return unwrap(await callWithRetry(ask, signal));
  }

  /** Others' blocks as they are now, in the order of `rows`. Each owner is asked once. */
  async read(rows: SharedBlockRow[], signal: AbortSignal): Promise<Block[]> {
    const byOwner = Map.groupBy(rows, ({ ownerId }) => ownerId);
    const answers = [...byOwner].map(([ownerId, wanted]) => this.#readFrom(ownerId, wanted, signal));
    const known = new Map((await Promise.all(answers)).flat());
    return rows.flatMap((row) => {
      const block = known.get(row);
      if (!block) {
        this.drop(row);
        return [];
      }
      if (block.version > 0) this.#believe(row, block);
      return [{ ...block, pinned: row.pinned }];
    });
  }

  async #readFrom(
    ownerId: string,
    wanted: SharedBlockRow[],
    signal: AbortSignal,
  ): Promise<[SharedBlockRow, Block | null][]> {
    const { env, identity } = this.#around;
    const { id, workspaceId } = identity.get();
    const labels = wanted.map(({ label }) => label);
    try {
      const ask = () => env.AGENT.getByName(ownerId).readSharedBlocks(workspaceId, id, labels);
      const answer = await callWithRetry(ask, signal);
      const read = !answer.ok && answer.problem.code === "not_found" ? [] : unwrap(answer);
      return wanted.map((row, index) => [row, read[index] ?? null]);
    } catch (error) {
      // After a timeout the block reads as withheld; after a cancel nothing is read.
      if (!(error instanceof ColloquyError && error.retryable)) signal.throwIfAborted();
      return wanted.map((row) => [row, withheld(row)]);
    }
  }

  /** Stores what the owner says of the block, if it differs from the row. */
  #believe(row: SharedBlockRow, { sharedFrom, type, permission }: Block): void {
    const ownerName = sharedFrom?.agentName ?? row.ownerName;
    if (row.ownerName === ownerName && row.type === type && row.permission === permission) return;
    this.note({ ownerId: row.ownerId, label: row.label, ownerName, type, permission });
  }
}

type View = { version?: number | undefined; from?: string | undefined };

const withheld = ({ label, type, permission, pinned, ownerId, ownerName, createdAt }: SharedBlockRow): Block => ({
  ...{ label, type, permission, pinned },
  description: "",
  schema: { type: "text" },
  charLimit: 0,
  version: 0,
  rendered: "(unavailable)",
  sharedFrom: { agentId: ownerId, agentName: ownerName },
  createdAt: isoTime(createdAt),
  updatedAt: isoTime(createdAt),
});

/** Services for an agent's blocks, and for those shared with it. */
export type BlockServices = {
  env: Env;
  ids: Ids;
  clock: Clock;
  identity: Identity;
  blocks: Blocks;
  shares: Shares;
  sharedBlocks: SharedBlocks;
  subscriptions: BlockSubscriptions;
};

/** As the agent itself: with a person's consent, where one gave it. */
export const ownPrincipal = ({ identity }: Pick<BlockServices, "identity">, consented?: boolean): BlockPrincipal => {
  const { id, config } = identity.get();
  return { kind: "agent", agentId: id, name: config.name, consented };
};
