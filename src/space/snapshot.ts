import type { Member } from "../protocol/entity.ts";
import type { SpaceSnapshot } from "../protocol/rpc.ts";
import { isoTime } from "../shared/clock.ts";
import { type MemberRow, publicMember } from "./members.ts";
import type { SettingsRow } from "./settings.ts";

const told = new WeakMap<readonly MemberRow[], Member[]>();

/** The members as others see them: put into words once for all subscribers. Nobody changes them. */
const publicMembers = (members: readonly MemberRow[]): Member[] => {
  const known = told.get(members) ?? members.map(publicMember);
  told.set(members, known);
  return known;
};

/** What a subscriber needs to know of the space. */
export const snapshotOf = (space: SettingsRow, members: readonly MemberRow[]): SpaceSnapshot => ({
  id: space.id,
  workspaceId: space.workspaceId,
  name: space.name,
  shareOrigin: space.shareOrigin,
  wakePolicy: space.wakePolicy,
  createdAt: isoTime(space.createdAt),
  version: space.version,
  members: publicMembers(members),
});
