import type { ActorNamespace } from "../../env/env.ts";
import type { FollowingEndpoints } from "../../protocol/endpoint-rpc.ts";
import type { WorkspaceRpc } from "../../protocol/rpc.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { withTimeout } from "../../shared/timeouts.ts";
import { deliverTimeoutMs } from "../bounds.ts";
import type { LogRow } from "../log/log.ts";
import { changesSpace } from "../log/row-kinds.ts";
import type { Members } from "../members.ts";
import type { Settings } from "../settings.ts";
import { type Batch, type Follower, type Place, spaceIn } from "./follower.ts";

type Around = {
  workspaces: ActorNamespace<Pick<WorkspaceRpc, "follow">>;
  members: Members;
  settings: Settings;
  /** The workspace tells which endpoints follow the space. `isFirst`: it has just heard of the space. */
  followed(following: FollowingEndpoints, isFirst: boolean): void;
};

export const indexBatch = ({ cursor }: Pick<Place, "cursor">, rows: LogRow[]): Batch => {
  return {
    cursor: rows.at(-1)?.seq ?? cursor,
    inside: true,
    left: false,
    isPaced: false,
    pending: rows.some(changesSpace),
  };
};

/** The workspace's index of spaces. It hears of the space's settings and members, and of no message. */
export const createIndexFollower = ({ workspaces, members, settings, followed: toldOf }: Around): Follower => ({
  concerns: (_, row) => changesSpace(row),
  isOnlyHeard: () => false,
  endFor: (_, head) => head,
  batch: indexBatch,
  waitsItsTurn: () => false,

  async send(_, pending) {
    const row = settings.find();
    if (!row) throw new Error("delivery: the space has no settings");
    const { cursor } = pending.batch;
    const createdBy = row.createdBy === null ? {} : { createdBy: row.createdBy };
    const told = { space: spaceIn(pending, row, members.all()), ...createdBy, cursor, deleted: pending.deleted };
    const followed = await withTimeout(deliverTimeoutMs, workspaces.getByName(row.workspaceId).follow(told));
    if (!followed.ok) throw new ColloquyError(followed.problem.code, followed.problem.detail);
    if (followed.value && !pending.deleted) toldOf(followed.value, pending.after === 0);
    return cursor;
  },

  isOver: () => false,
  ended: () => undefined,
});
