import { closeCodes } from "../protocol/events.ts";
import type { Principal } from "../protocol/principal.ts";
import type { EntityRef } from "../protocol/rpc.ts";
import { type CreateSpace, maxMembers, type Space, type UpdateSpace } from "../protocol/space.ts";
import { ColloquyError } from "../shared/errors.ts";
import { watchdogMs } from "./bounds.ts";
import { deliverTimer } from "./delivery/delivery.ts";
import { indexSubscriber } from "./delivery/subscribers.ts";
import { publicMember } from "./members.ts";
import { join } from "./membership.ts";
import { type Parts, record, transaction } from "./parts.ts";
import { owns, runs, seen } from "./rights.ts";
import { publicSpace, type SettingsRow } from "./settings.ts";

export type NewSpace = {
  id: string;
  workspaceId: string;
  settings: Omit<CreateSpace, "members">;
  members: EntityRef[];
  createdBy?: string | undefined;
};

const whole = (parts: Parts, row: SettingsRow): Space => ({
  ...publicSpace(row),
  members: parts.members.all().map(publicMember),
});

/** Creating it again answers what there is: who creates may not have heard the first answer. */
export const createSpace = (parts: Parts, input: NewSpace): Space => {
  const existing = parts.settings.find();
  if (existing) {
    if (existing.workspaceId === input.workspaceId && existing.deletedSeq === null) return whole(parts, existing);
    throw new ColloquyError("conflict", "There was a space with this id: choose another");
  }
  const members = [...new Map(input.members.map((member) => [member.id, member])).values()];
  if (members.length > maxMembers)
    throw new ColloquyError("limit_reached", `A space has at most ${maxMembers} members (maxMembers)`);
  const row: SettingsRow = {
    id: input.id,
    workspaceId: input.workspaceId,
    name: input.settings.name,
    wakePolicy: input.settings.wakePolicy,
    shareOrigin: input.settings.shareOrigin,
    router: input.settings.router ?? null,
    createdBy: input.createdBy ?? null,
    createdAt: parts.clock.now(),
    version: members.length + 1,
    deletedSeq: null,
  };
  record(parts, (append) => {
    parts.settings.insert(row);
    parts.subscribers.insert({ id: indexSubscriber, kind: "index", cursor: 0, inside: true });
    append({ type: "space.updated", space: publicSpace(row) });
    for (const member of members) join(parts, append, member);
  });
  return whole(parts, row);
};

export const describeSpace = (parts: Parts, principal: Principal): Space => whole(parts, seen(parts, principal));

export const updateSpace = (parts: Parts, principal: Principal, changes: UpdateSpace): Space => {
  // A router may name a secret of the workspace and an address of its own.
  const row = changes.router === undefined ? runs(parts, principal) : owns(parts, principal);
  const { name = row.name, wakePolicy = row.wakePolicy, shareOrigin = row.shareOrigin, router = row.router } = changes;
  const next = { ...row, name, wakePolicy, shareOrigin, router };
  if (JSON.stringify(publicSpace(next)) !== JSON.stringify(publicSpace(row))) {
    record(parts, (append) => {
      const { seq: version } = append({ type: "space.updated", space: publicSpace(next) });
      parts.settings.change({ name, wakePolicy, shareOrigin, router, version });
    });
  }
  return whole(parts, next);
};

/** Nothing is answered here from now on; the log is kept until every subscriber has taken it and knows of the end. */
export const removeSpace = (parts: Parts, principal: Principal): null => {
  owns(parts, principal);
  parts.live.stopAll("gone", "The space was deleted");
  transaction(parts, () => {
    parts.settings.change({ deletedSeq: parts.log.head().seq + 1 });
    parts.router.giveUp();
    parts.timers.setNoLater(deliverTimer, parts.clock.now() + watchdogMs);
  });
  parts.sockets.closeWhere(() => true, closeCodes.spaceDeleted, "the space was deleted");
  parts.delivery.kick();
  return null;
};
