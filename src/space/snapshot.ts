import type { SpaceSnapshot } from "../protocol/rpc.ts";
import { isoTime } from "../shared/clock.ts";
import { type MemberRow, publicMember } from "./members.ts";
import type { SettingsRow } from "./settings.ts";

/** What a subscriber needs to know of the space. */
export const snapshotOf = (space: SettingsRow, members: readonly MemberRow[]): SpaceSnapshot => ({
  id: space.id,
  workspaceId: space.workspaceId,
  name: space.name,
  shareOrigin: space.shareOrigin,
  wakePolicy: space.wakePolicy,
  createdAt: isoTime(space.createdAt),
  version: space.version,
  members: members.map(publicMember),
});
