import { and, asc, eq } from "drizzle-orm";
import type { Env } from "../../../env/env.ts";
import type { BlockGrant, BlockPrincipal, Exposure, OpenBlocks, SharedBlockNote } from "../../../protocol/agent-rpc.ts";
import type { Block, BlockDetail, EditedBlock, UpdateBlock } from "../../../protocol/block.ts";
import { type Clock, isoTime } from "../../../shared/clock.ts";
import { type Database, prepared, Remembered } from "../../../shared/database.ts";
import { ColloquyError, type Outcome, unwrap } from "../../../shared/errors.ts";
import type { Ids } from "../../../shared/ids.ts";
import { log } from "../../../shared/log.ts";
import { maxSharedBlocks, spaceAnswerMs } from "../../bounds.ts";
import { callWithRetry } from "../../call-with-retry.ts";
import type { Identity } from "../../identity.ts";
import type { BlockSubscriptions } from "./block-subscriptions.ts";
import type { BlockEdit, Blocks } from "./blocks.ts";
import { asReader, type Grant, widens } from "./exposing.ts";
import { sharedBlocks } from "./schema.ts";
import { type BlockRow, isSpaceId, type Shares } from "./shares.ts";

/** A block of another agent, as far as this one has heard. */
export type SharedBlockRow = typeof sharedBlocks.$inferSelect;

/** Throws `forbidden` for a block of the open mind, which its compartments read. */
const requireNotOpen = ({ label, open }: SharedBlockRow): void => {
  if (open === null) return;
  const instead = "a run of a confidential space may not change it; make one of your own";
  throw new ColloquyError("forbidden", `"${label}" is an open block; ${instead}`);
};

/** The name of another mind's block here: labels hold no `@`. */
export const sharedRef = ({ label, ownerId }: Pick<SharedBlockRow, "label" | "ownerId">): string =>
  `${label}@${ownerId}`;

const versionOf = ({ updatedAt, version }: Block): string => `${updatedAt} ${version}`;

type OwnBlockServices = {
  env: Env;
  ids: Ids;
  clock: Clock;
  identity: Identity;
  blocks: Blocks;
  shares: Shares;
  subscriptions: BlockSubscriptions;
};

/** Services for an agent's blocks, and for those shared with it. */
export type BlockServices = OwnBlockServices & { sharedBlocks: SharedBlocks };

type Deletion = Pick<BlockEdit, "by" | "callId">;
type View = { version?: number | undefined; from?: string | undefined };

const isRow = ({ ownerId, label }: Pick<SharedBlockRow, "ownerId" | "label">) =>
  and(eq(sharedBlocks.ownerId, ownerId), eq(sharedBlocks.label, label));

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

/** As the agent itself: with a person's consent, where one gave it. */
export const ownPrincipal = ({ identity }: Pick<BlockServices, "identity">, consented?: boolean): BlockPrincipal => {
  const { id, config } = identity.get();
  return { kind: "agent", agentId: id, name: config.name, consented };
};

export type SharedBlocks = ReturnType<typeof createSharedBlocks>;

const all = prepared((db) =>
  db.select().from(sharedBlocks).orderBy(asc(sharedBlocks.label), asc(sharedBlocks.ownerName)),
);

/**
 * What agents do with each other's blocks: this one shares its own, others share theirs with it. All blocks are read and
 * edited by the labels that they have here.
 *
 * Invariants
 * 1. An owner that says that it does not share a block (any more) is believed at once.
 * 2. One that cannot be reached stops nothing: its blocks read `(unavailable)`.
 * 3. A share is stored before the other agent is told, and deleted before it is told so.
 * 4. To share and to take back can be repeated when it was cut in the middle: nothing changes twice.
 * 5. A compartment has its open mind's blocks as another's, to read alone. Of what others share with the agent it has
 *    what they allow. It learns of both as a run begins (`follow`). What it makes, it shares with its space alone.
 * 6. Confidential spaces begin to write a block (it is `allowed`, and a grant lets them) only by who reads each of them (C19).
 */
export const createSharedBlocks = (db: Database, services: OwnBlockServices, dropped: (ref: string) => void) => {
  const { env, ids, clock, identity, blocks, shares, subscriptions } = services;
  const known = new Remembered(db, () => all(db).all());
  const list = (): SharedBlockRow[] => known.get();

  /** The blocks of the open mind that this compartment has, with the version of each. */
  const openVersions = (): Record<string, string> =>
    Object.fromEntries(list().flatMap(({ label, open }) => (open ? [[label, versionOf(open)]] : [])));

  /** Asks another mind of the workspace as this agent. `confidential`: as one of its compartments. */
  const ask = <T>(
    agentId: string,
    signal: AbortSignal,
    question: (
      agent: ReturnType<Env["AGENT"]["getByName"]>,
      workspaceId: string,
      ownId: string,
      confidential: boolean,
    ) => Promise<Outcome<T>>,
  ): Promise<Outcome<T>> => {
    const { id, workspaceId, compartmentId } = identity.get();
    const agent = env.AGENT.getByName(agentId);
    return callWithRetry(() => question(agent, workspaceId, id, compartmentId !== null), signal, "the agent");
  };

  /**
   * The block of another agent that a label means here; of several, that of the agent named or with the id `from`. This
   * agent's own comes first, where `from` is left out. Throws `conflict` where that leaves more than one, and `not_found` where
   * the agent `from` shares none of that label.
   */
  const find = (label: string, from?: string): SharedBlockRow | undefined => {
    if (from === undefined && blocks.find(label)) return undefined;
    const found = list().filter(
      (row) => row.label === label && (from === undefined || row.ownerId === from || row.ownerName === from),
    );
    if (from !== undefined && found.length === 0) {
      const message = `"${from}" shares no block "${label}" with you: leave out from for your own`;
      throw new ColloquyError("not_found", message);
    }
    if (found.length <= 1) return found[0];
    const owners = found.map(({ ownerName, ownerId }) => `${JSON.stringify(ownerName)} (${ownerId})`).join(", ");
    throw new ColloquyError("conflict", `several agents share "${label}" with you: say from which, ${owners}`);
  };

  /** The same, to change it. Throws `forbidden` for a block of the open mind. */
  const findToChange = (label: string, from?: string): SharedBlockRow | undefined => {
    const row = find(label, from);
    if (row) requireNotOpen(row);
    return row;
  };

  /** Throws `limit_reached` past `maxSharedBlocks`. */
  const note = ({ ownerId, label, ...told }: SharedBlockNote): void => {
    const isKnown = list().some((row) => row.ownerId === ownerId && row.label === label);
    if (!isKnown && list().length >= maxSharedBlocks) {
      const message = `maxSharedBlocks (${maxSharedBlocks}) are shared with that agent already`;
      throw new ColloquyError("limit_reached", message);
    }
    known
      .writing()
      .insert(sharedBlocks)
      .values({ ownerId, label, ...told, createdAt: clock.now() })
      .onConflictDoUpdate({ target: [sharedBlocks.ownerId, sharedBlocks.label], set: told })
      .run();
  };

  const drop = (row: Pick<SharedBlockRow, "ownerId" | "label">): void => {
    known.writing().delete(sharedBlocks).where(isRow(row)).run();
    dropped(sharedRef(row));
  };

  /** The owner's answer. One that knows of no such share is believed; `isOfShare`: what it did not find can only be that. */
  const believed = <T>(row: SharedBlockRow, answer: Outcome<T>, isOfShare = true): T => {
    if (isOfShare && !answer.ok && answer.problem.code === "not_found") drop(row);
    return unwrap(answer);
  };

  const readFrom = async (
    ownerId: string,
    rows: SharedBlockRow[],
    signal: AbortSignal,
  ): Promise<[SharedBlockRow, Block | null][]> => {
    const labels = rows.map(({ label }) => label);
    try {
      const answer = await ask(ownerId, signal, (owner, workspaceId, id, confidential) =>
        owner.readSharedBlocks(workspaceId, id, labels, confidential),
      );
      const read = !answer.ok && answer.problem.code === "not_found" ? [] : unwrap(answer);
      return rows.map((row, index) => [row, read[index] ?? null]);
    } catch (error) {
      // After a timeout the block reads as withheld; after a cancel nothing is read.
      if (!(error instanceof ColloquyError && error.retryable)) signal.throwIfAborted();
      return rows.map((row) => [row, withheld(row)]);
    }
  };

  const readAll = async (rows: SharedBlockRow[], signal: AbortSignal): Promise<[SharedBlockRow, Block | null][]> => {
    const byOwner = [...Map.groupBy(rows, ({ ownerId }) => ownerId)];
    return (await Promise.all(byOwner.map(([ownerId, wanted]) => readFrom(ownerId, wanted, signal)))).flat();
  };

  /** An agent that cannot be told finds out when it reads the block next. */
  const tellGone = async (label: string, granteeId: string, signal: AbortSignal): Promise<void> => {
    try {
      await ask(granteeId, signal, (reader, workspaceId, id) => reader.dropSharedBlock(workspaceId, id, label));
    } catch (error) {
      if (!(error instanceof ColloquyError)) throw error;
    }
  };

  /** The confidential spaces of an agent, or the space itself where it is one. */
  const confidentialOf = async (granteeId: string, signal: AbortSignal): Promise<string[]> => {
    if (isSpaceId(granteeId)) return shares.isConfidential(granteeId) ? [granteeId] : [];
    const answer = await ask(granteeId, signal, (agent, workspaceId) => agent.confidentialSpaces(workspaceId));
    return !answer.ok && answer.problem.code === "not_found" ? [] : unwrap(answer);
  };

  const putShare = async (label: string, { granteeId, permission }: Grant, signal: AbortSignal, check: () => void) => {
    if (isSpaceId(granteeId)) {
      const { row, value } = await blocks.read(label);
      check();
      const grant = shares.put(row.id, granteeId, permission);
      // Those who watch it there learn of another permission at once.
      subscriptions.changed({ row, by: "system", value });
      return grant;
    }
    const { id: ownerId, config } = identity.get();
    const { id, type } = blocks.get(label);
    check();
    const grant = shares.put(id, granteeId, permission);
    const told = await ask(granteeId, signal, (reader, workspaceId) =>
      reader.noteSharedBlock(workspaceId, { ownerId, ownerName: config.name, label, type, permission }),
    );
    // A block that was made meanwhile may have the id of a deleted one.
    if (!told.ok && blocks.find(label)?.id === id) shares.remove(id, granteeId);
    unwrap(told);
    return grant;
  };

  /** Deletes a block of its own, which is shared with nobody then. */
  const deleteOwn = async (label: string, change: Deletion, signal: AbortSignal): Promise<void> => {
    const row = blocks.delete(label, change);
    if (!row) return;
    const grants = shares.grants(row.id).filter(({ granteeId }) => shares.remove(row.id, granteeId));
    for (const { granteeId } of grants) if (!isSpaceId(granteeId)) await tellGone(label, granteeId, signal);
  };

  return {
    ...{ list, find, findToChange, note, drop, openVersions },

    /** The blocks of the open mind, as the newest run of this compartment found them. */
    open: (): Block[] => list().flatMap(({ open }) => open ?? []),

    /** For its compartments, which have these versions. Changes nothing. */
    openFor: (rows: BlockRow[], known: Record<string, string>): OpenBlocks => ({
      own: rows.map((row) => {
        const { pinned, label } = row;
        const block = { ...shares.view(row, "ReadOnly"), pinned };
        return { label, block: known[label] === versionOf(block) ? undefined : block };
      }),
      shared: list().map(({ ownerId, ownerName, label, type, permission }) => {
        return { ownerId, ownerName, label, type, permission };
      }),
    }),

    /**
     * A compartment's run begins: it has the blocks that there are now. An open mind that does not answer leaves it those
     * that it had.
     */
    async follow(signal: AbortSignal): Promise<void> {
      const { id, compartmentId, config } = identity.get();
      if (compartmentId === null) return;
      const asked = ask(id, signal, (mind, workspaceId) => mind.openBlocks(workspaceId, openVersions())).then(unwrap);
      const told = await asked.catch((error: unknown) => {
        log.warn("open-blocks.unreachable", { reason: String(error) });
      });
      if (!told) return;
      const before = new Map(list().map((row) => [sharedRef(row), row]));
      const createdAt = clock.now();
      const own = told.own.flatMap(({ label, block }): SharedBlockRow[] => {
        const open = block ?? before.get(sharedRef({ ownerId: id, label }))?.open;
        if (!open) return [];
        const { type, permission, pinned } = open;
        return [{ ownerId: id, label, ownerName: config.name, type, permission, pinned, open, createdAt }];
      });
      const others = told.shared.map((note): SharedBlockRow => {
        const { pinned = false, createdAt: since = createdAt } = before.get(sharedRef(note)) ?? {};
        return { ...note, pinned, open: null, createdAt: since };
      });
      // Their owners say which of them a compartment may have. Of one that is silent it has what it had.
      const allowed = (await readAll(others, signal)).filter(
        ([row, block]) => block && (block.version > 0 || before.has(sharedRef(row))),
      );
      const now = [...own, ...allowed.map(([each]) => each)];
      db.transaction(() => {
        known.writing().delete(sharedBlocks).run();
        for (const row of now) db.insert(sharedBlocks).values(row).run();
      });
      for (const ref of before.keys()) if (!now.some((row) => sharedRef(row) === ref)) dropped(ref);
    },

    pin(row: SharedBlockRow, pinned: boolean): void {
      known.writing().update(sharedBlocks).set({ pinned }).where(isRow(row)).run();
    },

    /** A block under its label here. Throws `not_found`, what another owner refuses, or `unavailable`. */
    async load(label: string, signal: AbortSignal, { version, from }: View = {}): Promise<BlockDetail> {
      const row = find(label, from);
      if (!row) return blocks.detail(label, version);
      const answer = await ask(row.ownerId, signal, (owner, workspaceId, id, confidential) =>
        owner.block(workspaceId, label, version, id, confidential),
      );
      return { ...believed(row, answer, version === undefined), pinned: row.pinned };
    },

    /** Edits a block under its label here. Throws what refuses it, or `unavailable`. */
    async edit(label: string, edit: BlockEdit, signal: AbortSignal, from?: string): Promise<EditedBlock> {
      const row = findToChange(label, from);
      if (!row) return blocks.edit(label, edit);
      // Its owner may be asked again where its answer was lost.
      const callId = edit.callId ?? ids.mint("key");
      const answer = await ask(row.ownerId, signal, (owner, workspaceId, id, confidential) => {
        const by: BlockPrincipal = { ...edit.by, ...(edit.by.kind === "workspace" && { through: id }), confidential };
        const told = { ...edit, by, callId, until: clock.now() + spaceAnswerMs };
        return owner.editSharedBlock(workspaceId, label, confidential ? { ...told, sources: undefined } : told);
      });
      return unwrap(answer);
    },

    /** Others' blocks as they are now, in the order of `rows`. Each owner is asked once. */
    async read(rows: SharedBlockRow[], signal: AbortSignal): Promise<Block[]> {
      const read = new Map(await readAll(rows, signal));
      return rows.flatMap((row) => {
        const block = read.get(row);
        if (!block) {
          drop(row);
          return [];
        }
        const { sharedFrom, type, permission, version } = block;
        const ownerName = sharedFrom?.agentName ?? row.ownerName;
        const isKnown = row.ownerName === ownerName && row.type === type && row.permission === permission;
        if (version > 0 && !isKnown) note({ ownerId: row.ownerId, label: row.label, ownerName, type, permission });
        return [{ ...block, pinned: row.pinned }];
      });
    },

    /** Changes how an own block is kept. `readable`: as for `share`. */
    update(label: string, changes: UpdateBlock, by: string, signal: AbortSignal, readable?: string[]) {
      const granted = (): Grant[] => {
        const { id, confidential } = blocks.get(label);
        const isOpened = confidential === null && changes.confidential === "allowed";
        return isOpened ? shares.grants(id).filter((grant) => widens(grant)) : [];
      };
      const spacesOf = (id: string) => confidentialOf(id, signal);
      return asReader({ label, granted, readable, spacesOf }, (check) => blocks.update(label, changes, by, check));
    },

    /**
     * Lets another agent, or the people of a space, use a block. Throws `limit_reached` past the kind's limit. `readable`: the
     * confidential spaces that the caller reads; left out: all. What exposes another is answered, and not done.
     */
    async share(label: string, grant: Grant, signal: AbortSignal, readable?: string[]): Promise<BlockGrant | Exposure> {
      const { id, compartmentSpaceId } = identity.get();
      const { granteeId } = grant;
      if (compartmentSpaceId !== null && granteeId !== compartmentSpaceId) {
        const message = `"${label}" is a block of a confidential space: it is shared with the people of that space alone`;
        throw new ColloquyError("forbidden", message);
      }
      if (granteeId === id) throw new ColloquyError("invalid_request", "a block is not shared with its owner");
      if (!isSpaceId(granteeId) && !ids.isIssued("ent", granteeId)) {
        throw new ColloquyError("not_found", "there is no such agent");
      }
      const granted = (): Grant[] => {
        const block = blocks.get(label);
        const before = shares.grants(block.id).find((each) => each.granteeId === granteeId);
        return block.confidential !== null && widens(grant, before) ? [grant] : [];
      };
      const spacesOf = () => confidentialOf(granteeId, signal);
      // A compartment shares with its own people alone, who know what it has.
      const asked = { label, granted, readable: compartmentSpaceId === null ? readable : undefined, spacesOf };
      return asReader(asked, (check) => putShare(label, grant, signal, check));
    },

    /** Takes a block back from an agent or a space, at once. Throws `not_found` where it is not shared with that one. */
    async unshare(label: string, granteeId: string, signal: AbortSignal): Promise<void> {
      const isSpace = isSpaceId(granteeId);
      if (!shares.remove(blocks.get(label).id, granteeId)) {
        throw new ColloquyError("not_found", `"${label}" is not shared with that ${isSpace ? "space" : "agent"}`);
      }
      if (isSpace) subscriptions.closeFrom(granteeId, label);
      else await tellGone(label, granteeId, signal);
    },

    deleteOwn,

    /** Deletes a block under its label here. Throws what refuses it, or `unavailable`. */
    async delete(label: string, change: Deletion, signal: AbortSignal, from?: string): Promise<void> {
      // Another agent's block of that label is seen once the own one is gone.
      if (blocks.wasDone(change.callId)) return;
      const row = findToChange(label, from);
      if (!row) return deleteOwn(label, change, signal);
      const answer = await ask(row.ownerId, signal, (owner, workspaceId, _, confidential) => {
        const by = { ...change.by, confidential };
        return owner.deleteSharedBlock(workspaceId, label, { ...change, by, until: clock.now() + spaceAnswerMs });
      });
      believed(row, answer);
      drop(row);
    },
  };
};
