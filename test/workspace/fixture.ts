import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import type { IndexDelivery, WorkspaceRpc } from "../../src/protocol/rpc.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { createIds } from "../../src/shared/ids.ts";
import type { Workspace } from "../../src/workspace/workspace.ts";

export const ids = createIds(env.SIGNING_SECRET);

/** Acts inside a workspace's object, as the code of its class would. */
export const inside = <T>(
  stub: unknown,
  act: (workspace: Workspace, state: DurableObjectState) => T | Promise<T>,
): Promise<T> => runInDurableObject(stub as DurableObjectStub<Workspace>, act);

/** Storage of an object that was never created, for the modules alone. */
export const withStorage = <T>(act: (storage: DurableObjectStorage) => T | Promise<T>): Promise<T> =>
  inside(env.WORKSPACE.getByName(ids.mint("wsp")), (_, state) => act(state.storage));

export type OpenWorkspace = { id: string; stub: WorkspaceRpc };

/** A workspace that was created, as its actor alone, without the routes. */
export const openWorkspace = async (): Promise<OpenWorkspace> => {
  const id = ids.mint("wsp");
  const stub = env.WORKSPACE.getByName(id);
  unwrap(await stub.create({ id, name: "House", keyId: ids.mint("key"), keyHash: `hash of ${id}` }));
  return { id, stub };
};

/** A space's word to the index, as of `cursor`. */
export const delivery = (
  workspaceId: string,
  spaceId: string,
  cursor: number,
  memberNames: Record<string, string>,
  changes: Partial<Pick<IndexDelivery["space"], "name">> & { deleted?: boolean } = {},
): IndexDelivery => {
  const { deleted = false, name = "Alpha" } = changes;
  const joinedAt = "2026-02-18T15:06:55.000Z";
  return {
    space: {
      id: spaceId,
      workspaceId,
      name,
      shareOrigin: "reference",
      wakePolicy: "every_message",
      createdAt: joinedAt,
      version: cursor,
      members: Object.entries(memberNames).map(([id, memberName]) => ({
        id,
        type: "human",
        name: memberName,
        joinedAt,
      })),
    },
    cursor,
    deleted,
  };
};
