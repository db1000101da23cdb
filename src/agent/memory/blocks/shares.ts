import { and, asc, eq, sql } from "drizzle-orm";
import type { BlockGrant } from "../../../protocol/agent-rpc.ts";
import type { Block, Permission } from "../../../protocol/block.ts";
import { type Clock, isoTime } from "../../../shared/clock.ts";
import type { Database } from "../../../shared/database.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { maxSharesOfBlock, maxSpacesOfBlock } from "../../bounds.ts";
import type { Identity } from "../../identity.ts";
import { blocks, shares } from "./schema.ts";

export type BlockRow = typeof blocks.$inferSelect;

export const blockView = ({ partnerEntityId, confidential, createdAt, updatedAt, ...row }: BlockRow): Block => ({
  label: row.label,
  type: row.type,
  permission: row.permission,
  description: row.description,
  schema: row.schema,
  pinned: row.pinned,
  charLimit: row.charLimit,
  ...(partnerEntityId === null ? {} : { partnerEntityId }),
  ...(confidential === null ? {} : { confidential }),
  version: row.version,
  rendered: row.rendered,
  createdAt: isoTime(createdAt),
  updatedAt: isoTime(updatedAt),
});

/** Whether a grantee is a space, and not an agent. */
export const isSpaceId = (granteeId: string): boolean => granteeId.startsWith("spc_");

const grantOf = ({ granteeId, permission, createdAt }: typeof shares.$inferSelect): BlockGrant => ({
  ...{ granteeId, permission },
  createdAt: isoTime(createdAt),
});

const isShare = (blockId: number, granteeId: string) =>
  and(eq(shares.blockId, blockId), eq(shares.granteeId, granteeId));

export type Shares = ReturnType<typeof createShares>;

/**
 * Which other agents, and the people of which spaces, may use this agent's blocks. A grantee is an agent or a space.
 * These rows decide; who is in a space, the space knows.
 *
 * Invariants
 * 1. A share begins with the block as it is then: its grantee reads no version from before.
 * 2. What is written from a confidential space stays there. Such a space writes an open mind's block only where the
 *    block says `confidential: "allowed"`. Its people and the agent's own compartments only read the others. For other
 *    agents' compartments these are not there.
 */
export const createShares = (
  db: Database,
  clock: Clock,
  identity: Pick<Identity, "get">,
  /** Whether this agent knows the space as a confidential one. */
  isConfidential: (spaceId: string) => boolean,
) => {
  /** With whom a block is shared, oldest first. */
  const grants = (blockId: number): BlockGrant[] => {
    const own = db.select().from(shares).where(eq(shares.blockId, blockId));
    return own.orderBy(asc(shares.createdAt), asc(shares.granteeId)).all().map(grantOf);
  };

  /** The block as a grantee with this permission sees it. */
  const view = (row: BlockRow, permission: Permission): Block => {
    const { id: agentId, config } = identity.get();
    return { ...blockView(row), permission, pinned: false, sharedFrom: { agentId, agentName: config.name } };
  };

  const find = (blockId: number, granteeId: string) =>
    db.select().from(shares).where(isShare(blockId, granteeId)).get();

  /**
   * The permission of an agent, or of a space's people; the owner has the block's own. `confidential`: it is one of the
   * agent's compartments that asks, or the space is known to be confidential. A compartment shares with its own space alone.
   */
  const permissionOf = (
    row: BlockRow,
    granteeId: string,
    confidential = false,
    permission = find(row.id, granteeId)?.permission,
  ): Permission | undefined => {
    const { id, compartmentId } = identity.get();
    const isHeld = compartmentId === null && (confidential || isConfidential(granteeId));
    if (granteeId === id) return isHeld ? "ReadOnly" : row.permission;
    if (permission === undefined || !isHeld || row.confidential === "allowed") return permission;
    return isSpaceId(granteeId) ? "ReadOnly" : undefined;
  };

  /** The block as a grantee sees it; undefined where it is not shared with that one. */
  const viewFor = (...asked: Parameters<typeof permissionOf>): Block | undefined => {
    const [row] = asked;
    const permission = permissionOf(...asked);
    return permission && view(row, permission);
  };

  return {
    ...{ grants, view, viewFor, permissionOf, isConfidential },

    /** Whether the people of a space have less of it than they were given, since the space is confidential. */
    isWithheld: (row: BlockRow, spaceId: string, confidential: boolean): boolean =>
      find(row.id, spaceId)?.permission !== permissionOf(row, spaceId, confidential),

    /** The first version that a grantee reads. */
    since: (blockId: number, granteeId: string): number => find(blockId, granteeId)?.sinceVersion ?? 0,

    /** The blocks that a grantee may use, as it sees them, by label. */
    sharedWith: (granteeId: string): Block[] =>
      db
        .select({ row: blocks, permission: shares.permission })
        .from(shares)
        .innerJoin(blocks, eq(blocks.id, shares.blockId))
        .where(eq(shares.granteeId, granteeId))
        .orderBy(asc(blocks.label))
        .all()
        .flatMap(({ row, permission }) => viewFor(row, granteeId, false, permission) ?? []),

    /** Throws `limit_reached` past the limit of the grantee's kind. */
    put(blockId: number, granteeId: string, permission: Permission): BlockGrant {
      const isSpace = isSpaceId(granteeId);
      const known = grants(blockId).filter((grant) => isSpaceId(grant.granteeId) === isSpace);
      const isNew = known.every((grant) => grant.granteeId !== granteeId);
      if (isNew && known.length >= (isSpace ? maxSpacesOfBlock : maxSharesOfBlock)) {
        const bound = isSpace
          ? `maxSpacesOfBlock (${maxSpacesOfBlock}) is reached; take one back first`
          : `maxSharesOfBlock (${maxSharesOfBlock}) is reached; unshare it first`;
        throw new ColloquyError("limit_reached", bound);
      }
      const sinceVersion = sql`(select ${blocks.version} from ${blocks} where ${blocks.id} = ${blockId})`;
      const values = { blockId, granteeId, permission, sinceVersion, createdAt: clock.now() };
      const target = [shares.blockId, shares.granteeId];
      const put = db.insert(shares).values(values).onConflictDoUpdate({ target, set: { permission } });
      return grantOf(put.returning().get());
    },

    /** Whether there was such a share. */
    remove: (blockId: number, granteeId: string): boolean =>
      db.delete(shares).where(isShare(blockId, granteeId)).returning().all().length > 0,

    /** The agent is no longer in the space. */
    left(spaceId: string): void {
      db.delete(shares).where(eq(shares.granteeId, spaceId)).run();
    },
  };
};
