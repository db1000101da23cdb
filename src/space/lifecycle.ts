import { closeCodes } from "../protocol/events.ts";
import type { Principal } from "../protocol/principal.ts";
import type { SpaceRpc } from "../protocol/rpc.ts";
import { maxMembers, type Space, type UpdateSpace } from "../protocol/space.ts";
import { ColloquyError } from "../shared/errors.ts";
import { watchdogMs } from "./bounds.ts";
import { deliverTimer } from "./delivery/delivery.ts";
import { indexSubscriber } from "./delivery/subscribers.ts";
import { publicMember } from "./members.ts";
import { join } from "./membership.ts";
import { owns, runs, seen } from "./rights.ts";
import type { SpaceServices } from "./services.ts";
import { publicSpace, type SettingsRow } from "./settings.ts";

export type NewSpace = Parameters<SpaceRpc["create"]>[0];

const whole = (services: SpaceServices, row: SettingsRow): Space => ({
  ...publicSpace(row),
  members: services.members.all().map(publicMember),
});

/** Creating it again answers what there is: who creates may not have heard the first answer. */
export const createSpace = (services: SpaceServices, input: NewSpace): Space => {
  const { id, workspaceId, settings, createdBy } = input;
  const { name, wakePolicy, shareOrigin } = settings;
  const existing = services.settings.find();
  if (existing) {
    if (existing.workspaceId === workspaceId && existing.deletedSeq === null) return whole(services, existing);
    throw new ColloquyError("conflict", "There was a space with this id: choose another");
  }
  const members = [...new Map(input.members.map((member) => [member.id, member])).values()];
  if (members.length > maxMembers)
    throw new ColloquyError("limit_reached", `A space has at most ${maxMembers} members (maxMembers)`);
  const row: SettingsRow = {
    ...{ id, workspaceId, name, wakePolicy, shareOrigin },
    router: settings.router ?? null,
    createdBy: createdBy ?? null,
    createdAt: services.clock.now(),
    version: members.length + 1,
    deletedSeq: null,
  };
  services.record((append) => {
    services.settings.insert(row);
    services.subscribers.insert({ id: indexSubscriber, kind: "index", cursor: 0, inside: true });
    append({ type: "space.updated", space: publicSpace(row) });
    for (const member of members) join(services, append, member);
  });
  return whole(services, row);
};

export const describeSpace = (services: SpaceServices, principal: Principal): Space =>
  whole(services, seen(services, principal));

export const updateSpace = (services: SpaceServices, principal: Principal, changes: UpdateSpace): Space => {
  // A router may name a secret of the workspace and an address of its own.
  const row = changes.router === undefined ? runs(services, principal) : owns(services, principal);
  const { name = row.name, wakePolicy = row.wakePolicy, shareOrigin = row.shareOrigin, router = row.router } = changes;
  const next = { ...row, name, wakePolicy, shareOrigin, router };
  if (JSON.stringify(publicSpace(next)) !== JSON.stringify(publicSpace(row))) {
    services.record((append) => {
      const { seq: version } = append({ type: "space.updated", space: publicSpace(next) });
      services.settings.change({ name, wakePolicy, shareOrigin, router, version });
    });
  }
  return whole(services, next);
};

/** Nothing is answered here from now on; the log is kept until every subscriber has taken it and knows of the end. */
export const removeSpace = (services: SpaceServices, principal: Principal): void => {
  owns(services, principal);
  services.live.stopAll("gone", "The space was deleted");
  services.transaction(() => {
    services.settings.change({ deletedSeq: services.log.head().seq + 1 });
    services.router.giveUp();
    services.timers.setNoLater(deliverTimer, services.clock.now() + watchdogMs);
  });
  services.sockets.closeWhere(() => true, closeCodes.spaceDeleted, "the space was deleted");
  services.delivery.kick();
};
