import type { Member } from "../protocol/entity.ts";
import { closeCodes } from "../protocol/events.ts";
import { hasWorkspaceRights, type Principal } from "../protocol/principal.ts";
import type { EntityRef } from "../protocol/rpc.ts";
import { maxMembers } from "../protocol/space.ts";
import { ColloquyError } from "../shared/errors.ts";
import { type MemberRow, publicMember } from "./members.ts";
import { type Append, type Parts, record } from "./parts.ts";
import { runs, seen, spaceIn } from "./rights.ts";
import type { SpaceSession } from "./sockets/space-sockets.ts";
import { cancelCallsOf } from "./tool-calls/expiry.ts";

/** Puts `entity` into the space; an agent begins to follow the log with its own joining. In a transaction. */
export const join = (parts: Parts, append: Append, entity: EntityRef): MemberRow => {
  const joinedAt = parts.clock.now();
  const head = parts.log.head();
  const row: MemberRow = {
    entityId: entity.id,
    type: entity.type,
    name: entity.name,
    joinedSeq: head.seq + 1,
    joinedAt,
    readSeq: head.seq + 1,
    readCount: head.messageCount,
    mark: null,
  };
  append({ type: "member.joined", member: publicMember(row) });
  parts.members.insert(row);
  if (entity.type === "agent") {
    parts.subscribers.insert({ id: entity.id, kind: "agent", cursor: head.seq, inside: false });
  }
  return row;
};

/** Adding who is in already changes nothing. */
export const addMember = (parts: Parts, principal: Principal, entity: EntityRef): Member => {
  runs(parts, principal);
  const present = parts.members.find(entity.id);
  if (present) return publicMember(present);
  if (parts.members.count(maxMembers) >= maxMembers) {
    throw new ColloquyError("limit_reached", `This space has ${maxMembers} members, which is the most (maxMembers)`);
  }
  const row = record(parts, (append) => {
    const joined = join(parts, append, entity);
    parts.settings.change({ version: joined.joinedSeq });
    return joined;
  });
  return publicMember(row);
};

/** Keys and admins may remove anyone, an entity only itself. Sockets close, streams end and an agent's open calls are canceled at once. */
export const removeMember = (parts: Parts, principal: Principal, entityId: string): null => {
  seen(parts, principal);
  if (!hasWorkspaceRights(principal) && principal.entityId !== entityId) {
    throw new ColloquyError("forbidden", "You may leave a space; only an admin or a secret key may remove others");
  }
  const member = parts.members.find(entityId);
  if (!member) throw new ColloquyError("not_found", `${entityId} is not in this space`);
  parts.live.stopAgent(entityId, "not_a_member", "The agent was removed from the space");
  const isTheirs = ({ data }: SpaceSession): boolean => data.entityId === entityId;
  parts.sockets.closeWhere(isTheirs, closeCodes.removed, "removed from the space");
  record(parts, (append) => {
    if (member.type === "agent") cancelCallsOf(parts, append, entityId);
    const { seq } = append({ type: "member.left", entityId, name: member.name });
    parts.members.remove(entityId);
    parts.settings.change({ version: seq });
  });
  return null;
};

/** Nothing happens where the entity is not a member, or has that name. */
export const renameMember = (parts: Parts, workspaceId: string, entityId: string, name: string): null => {
  spaceIn(parts, workspaceId);
  const member = parts.members.find(entityId);
  if (!member || member.name === name) return null;
  record(parts, (append) => {
    const { seq } = append({ type: "member.renamed", entityId, name });
    parts.members.change(entityId, { name });
    parts.settings.change({ version: seq });
  });
  return null;
};
