import { hasWorkspaceRights, type Principal, readsAsMember, unreadable } from "../protocol/principal.ts";
import { ColloquyError, suspendedError } from "../shared/errors.ts";
import type { MemberRow, Members } from "./members.ts";
import type { Settings, SettingsRow } from "./settings.ts";

/**
 * The rights of callers. A caller that may not know of the space gets `not_found`, as does everyone once it is deleted.
 * A caller that may see it but not do that gets `forbidden`.
 */
export type Known = {
  settings: Settings;
  members: Members;
  /** For the audit log: somebody reads what was said. */
  noteRead?: (principal: Principal) => void;
};

const nowhere = (): ColloquyError => new ColloquyError("not_found", "There is no such space here: check its id");

/** The space, if it lives, in this workspace. */
export const spaceIn = ({ settings }: Known, workspaceId: string): SettingsRow => {
  const space = settings.find();
  if (!space || space.deletedSeq !== null || space.workspaceId !== workspaceId) throw nowhere();
  return space;
};

/** Keys and admins see every space of their workspace, an entity those that it is in. */
export const seen = (known: Known, principal: Principal): SettingsRow => {
  const space = spaceIn(known, principal.workspaceId);
  if (hasWorkspaceRights(principal)) return space;
  if (!principal.entityId || !known.members.find(principal.entityId)) throw nowhere();
  return space;
};

const requireReading = (
  { members }: Pick<Known, "members">,
  { confidentialFrom }: Pick<SettingsRow, "confidentialFrom">,
  principal: Principal,
): void => {
  if (confidentialFrom === null || principal.kind === "key") return;
  if (readsAsMember(principal, (id) => members.find(id) !== undefined)) return;
  throw new ColloquyError("forbidden", unreadable);
};

/**
 * For all that was said in the space. Members and the workspace's keys read a confidential one (C19). An admin who is
 * no member may know of it and run it, and enters where all see that. `isShown`: the caller is answered with its words.
 */
export const readable = (known: Known, principal: Principal, isShown = true): SettingsRow => {
  const space = seen(known, principal);
  requireReading(known, space, principal);
  if (isShown) known.noteRead?.(principal);
  return space;
};

/** The member with this id, such as an agent that reads. */
export const memberIn = ({ members }: Pick<Known, "members">, entityId: string): MemberRow => {
  const member = members.find(entityId);
  if (member) return member;
  throw new ColloquyError("not_a_member", `${entityId} is not in this space`);
};

/** Refuses what would change the space or its members while its workspace is suspended. */
export const requireAwake = ({ suspended }: SettingsRow): void => {
  if (suspended) throw suspendedError();
};

type Acting = { space: SettingsRow; principal: Principal; member: MemberRow };

/** The member that the caller acts as. A secret key acts as one only where it names one. */
export const acting = (known: Known, principal: Principal): Acting => {
  const space = spaceIn(known, principal.workspaceId);
  const { entityId } = principal;
  const member = entityId === undefined ? undefined : known.members.find(entityId);
  if (member) {
    requireReading(known, space, principal);
    requireAwake(space);
    return { space, principal, member };
  }
  if (!hasWorkspaceRights(principal)) throw nowhere();
  throw entityId === undefined
    ? new ColloquyError("acting_entity_required", "Name the member that you act as with X-Entity-Id")
    : new ColloquyError("forbidden", `${entityId} is not in this space: add it first`);
};

/** Keys, admins and the space's creator run it: they change its settings, add members, and delete it. */
export const runs = (known: Known, principal: Principal): SettingsRow => {
  const space = seen(known, principal);
  if (hasWorkspaceRights(principal) || space.createdBy === principal.entityId) return space;
  throw new ColloquyError("forbidden", "Only the creator of a space, an admin or a secret key may do that");
};

/** For acts that need the workspace's own rights. */
export const owns = (known: Known, principal: Principal): SettingsRow => {
  const space = seen(known, principal);
  if (hasWorkspaceRights(principal)) return space;
  throw new ColloquyError("forbidden", "Only an admin or a secret key may do that");
};
