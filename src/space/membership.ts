import type { Member } from "../protocol/entity.ts";
import { closeCodes } from "../protocol/events.ts";
import { hasWorkspaceRights, type Principal } from "../protocol/principal.ts";
import type { EntityRef } from "../protocol/rpc.ts";
import { maxMembers } from "../protocol/space.ts";
import { ColloquyError } from "../shared/errors.ts";
import { type MemberRow, publicMember } from "./members.ts";
import { runs, seen, spaceIn } from "./rights.ts";
import type { Append, SpaceServices } from "./services.ts";
import type { SpaceSession } from "./space-sockets.ts";
import { cancelCallsOf } from "./tool-call-events.ts";

/** Puts `entity` into the space; an agent begins to follow the log with its own joining. In a transaction. */
export const join = (services: SpaceServices, append: Append, entity: EntityRef): MemberRow => {
  const joinedAt = services.clock.now();
  const head = services.log.head();
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
  services.members.insert(row);
  if (entity.type === "agent") {
    services.subscribers.insert({ id: entity.id, kind: "agent", cursor: head.seq, inside: false });
  }
  return row;
};

/** Adding who is in already changes nothing. */
export const addMember = (services: SpaceServices, principal: Principal, entity: EntityRef): Member => {
  runs(services, principal);
  const present = services.members.find(entity.id);
  if (present) return publicMember(present);
  if (services.members.all().length >= maxMembers) {
    throw new ColloquyError("limit_reached", `This space has ${maxMembers} members, which is the most (maxMembers)`);
  }
  const row = services.record((append) => {
    const joined = join(services, append, entity);
    services.settings.change({ version: joined.joinedSeq });
    return joined;
  });
  return publicMember(row);
};

/** Keys and admins may remove anyone, an entity only itself. Sockets close, streams end and an agent's open calls are canceled at once. */
export const removeMember = (services: SpaceServices, principal: Principal, entityId: string): void => {
  seen(services, principal);
  if (!hasWorkspaceRights(principal) && principal.entityId !== entityId) {
    throw new ColloquyError("forbidden", "You may leave a space; only an admin or a secret key may remove others");
  }
  const member = services.members.find(entityId);
  if (!member) throw new ColloquyError("not_found", `${entityId} is not in this space`);
  services.live.stopAgent(entityId, "not_a_member", "The agent was removed from the space");
  const isTheirs = ({ data }: SpaceSession): boolean => data.entityId === entityId;
  services.sockets.closeWhere(isTheirs, closeCodes.removed, "removed from the space");
  services.record((append) => {
    if (member.type === "agent") cancelCallsOf(services, append, entityId);
    const { seq } = append({ type: "member.left", entityId, name: member.name });
    services.members.remove(entityId);
    services.settings.change({ version: seq });
  });
};

/** Nothing happens where the entity is not a member, or has that name. */
export const renameMember = (services: SpaceServices, workspaceId: string, entityId: string, name: string): void => {
  spaceIn(services, workspaceId);
  const member = services.members.find(entityId);
  if (!member || member.name === name) return;
  services.record((append) => {
    const { seq } = append({ type: "member.renamed", entityId, name });
    services.members.change(member, { name });
    services.settings.change({ version: seq });
  });
};
