import type { AskedEvents, FollowingEndpoints, ToldEvents } from "../protocol/endpoint-rpc.ts";
import type { Member } from "../protocol/entity.ts";
import { closeCodes } from "../protocol/events.ts";
import { hasWorkspaceRights, mayRead, type Principal, readsAsMember, unreadable } from "../protocol/principal.ts";
import type { EntityRef, SpaceRpc } from "../protocol/rpc.ts";
import { maxMembers, type Space, type UpdateSpace } from "../protocol/space.ts";
import { ColloquyError } from "../shared/errors.ts";
import { compartmentId } from "../shared/ids.ts";
import { firstTwins, twinOf } from "../shared/look-alike.ts";
import { watchdogMs } from "./bounds.ts";
import { deliverTimer } from "./delivery/delivery.ts";
import { indexSubscriber } from "./delivery/subscribers.ts";
import type { Append } from "./log/log.ts";
import { type MemberRow, publicMember } from "./members.ts";
import { forgetLetOut } from "./message-changes.ts";
import { lastPlaces } from "./reading.ts";
import { requireRelease } from "./release.ts";
import { armRetention } from "./retention.ts";
import { owns, requireAwake, runs, seen, spaceIn } from "./rights.ts";
import type { SpaceServices } from "./services.ts";
import { publicSpace, type SettingsRow } from "./settings.ts";
import type { SpaceSession } from "./space-sockets.ts";
import { forgetTold } from "./told-origins.ts";
import { cancelCallsOf, withdrawCalls } from "./tool-call-events.ts";

/** How the space begins, changes and ends, and who comes and goes. */
export type NewSpace = Parameters<SpaceRpc["create"]>[0];

const whole = (services: SpaceServices, row: SettingsRow): Space => ({
  ...publicSpace(row),
  members: services.members.all().map(publicMember),
});

/** The space as a caller may see it. Where words of a confidential one go, and how much there is, is for those who read them (C19). */
const shownTo = (services: SpaceServices, row: SettingsRow, principal: Principal): Space => {
  const { router, ...space } = whole(services, row);
  const storage = services.usage.storage();
  if (mayRead(space, principal)) return { ...space, router, storage };
  return storage.state === "ok" ? space : { ...space, storage };
};

/**
 * Creating it again answers what there is: who creates may not have heard the first answer. Who has left since is told no more
 * than that it is there.
 */
export const createSpace = (services: SpaceServices, input: NewSpace): Space => {
  const { id, workspaceId, settings, createdBy } = input;
  const { name, wakePolicy, shareOrigin } = settings;
  const existing = services.settings.find();
  if (existing) {
    const isOwn = existing.workspaceId === workspaceId && existing.deletedSeq === null;
    if (isOwn && (createdBy === undefined || services.members.find(createdBy))) {
      const { router, ...space } = whole(services, existing);
      // An admin may ask in its maker's name, and read none of it (C19).
      return createdBy !== undefined && existing.confidentialFrom !== null ? space : { ...space, router };
    }
    throw new ColloquyError("conflict", "There was a space with this id: choose another");
  }
  if (input.until !== undefined && input.until <= services.clock.now())
    throw new ColloquyError("unavailable", "The space took too long to be made, and its place was given up: try again");
  const members = [...new Map(input.members.map((member) => [member.id, member])).values()];
  if (members.length > maxMembers)
    throw new ColloquyError("limit_reached", `A space has at most ${maxMembers} members (maxMembers)`);
  requireTold(firstTwins(members));
  requireRelease(settings.release, settings.confidential === true, members);
  const row: SettingsRow = {
    ...{ id, workspaceId, name, wakePolicy, shareOrigin },
    router: settings.router ?? null,
    confidentialFrom: settings.confidential ? 0 : null,
    release: settings.release ?? null,
    retentionDays: settings.retentionDays ?? null,
    workspaceRetentionDays: null,
    createdBy: createdBy ?? null,
    createdAt: services.clock.now(),
    version: members.length + 1,
    deletedSeq: null,
    suspended: false,
  };
  services.record((append) => {
    services.settings.insert(row);
    services.subscribers.insert({ id: indexSubscriber, kind: "index", cursor: 0, inside: true });
    append({ type: "space.updated", space: publicSpace(row) });
    for (const member of members) join(services, append, member);
    armRetention(services);
  });
  return whole(services, row);
};

export const describeSpace = (services: SpaceServices, principal: Principal, isFollowed = false): Space => {
  const row = seen(services, principal);
  const newest = services.members.all().at(-1)?.joinedSeq ?? 0;
  if (isFollowed) services.delivery.requireIndexed(Math.max(row.confidentialFrom ?? 0, newest));
  return shownTo(services, row, principal);
};

/** Its router and its release tell its words: throws for who does not read these (C19). */
const requireReading = (told: Parameters<typeof mayRead>[0], principal: Principal): void => {
  if (mayRead(told, principal)) return;
  throw new ColloquyError("forbidden", `Its router and its release tell its words. ${unreadable}`);
};

export const updateSpace = (services: SpaceServices, principal: Principal, changes: UpdateSpace): Space => {
  // A router may name a secret of the workspace and an address of its own. Retention deletes what others said.
  const isOwners = changes.router !== undefined || changes.retentionDays !== undefined;
  const row = isOwners ? owns(services, principal) : runs(services, principal);
  requireAwake(row);
  const { name = row.name, wakePolicy = row.wakePolicy, shareOrigin = row.shareOrigin, router = row.router } = changes;
  const { release = row.release, retentionDays = row.retentionDays } = changes;
  const isSealed = becomesConfidential(row, changes.confidential);
  // Its place in the log is known once it is there.
  const confidentialFrom = isSealed ? Number.POSITIVE_INFINITY : row.confidentialFrom;
  const members = services.members.all();
  const people = members.map(({ entityId: id, type }) => ({ id, type }));
  const isBegun = isSealed || (wakePolicy === "addressed" && row.wakePolicy !== "addressed");
  // Who lets words out, or tells them to a router's server, has to read the space (C19). Removing either tells nothing.
  if (changes.release || (router && (changes.router || isBegun))) {
    requireReading({ confidential: confidentialFrom !== null, members: people }, principal);
  }
  requireRelease(changes.release, confidentialFrom !== null, people);
  const next = { ...row, name, wakePolicy, shareOrigin, router, release, retentionDays, confidentialFrom };
  if (JSON.stringify(publicSpace(next)) !== JSON.stringify(publicSpace(row))) {
    services.record((append) => {
      if (isSealed) withdrawCalls(services, append);
      const { seq: version } = append({ type: "space.updated", space: publicSpace(next) });
      const from = isSealed ? { confidentialFrom: version } : {};
      services.settings.change({ name, wakePolicy, shareOrigin, router, release, retentionDays, ...from, version });
      if (retentionDays !== row.retentionDays) {
        armRetention(services);
        services.audit.note("space.retention", principal, row.id, { days: retentionDays ?? 0 }, version);
      }
      // A compartment begins with the switch itself: so nothing outside tells whether anything is said there (C17).
      for (const { entityId, type } of isSealed ? members : []) {
        if (type === "agent") followInCompartment(services, entityId, { cursor: version - 1, inside: true });
      }
    });
    if (confidentialFrom !== null) closeUnreading(services);
  }
  return shownTo(services, next, principal);
};

/** A session that somebody made for a member follows a confidential space no longer than both are in it (C19). */
const closeUnreading = ({ sockets, members }: SpaceServices): void => {
  const isMember = (id: string): boolean => members.find(id) !== undefined;
  const reason = "who made this session is not in the space";
  sockets.closeWhere(({ principal }) => !readsAsMember(principal, isMember), closeCodes.removed, reason);
};

/** Whether the space becomes confidential now, after this change's place in the log: once it is, it stays so. */
const becomesConfidential = ({ confidentialFrom }: SettingsRow, wanted: boolean | undefined): boolean => {
  if (confidentialFrom === null) return wanted === true;
  if (wanted !== false) return false;
  const detail = "A confidential space stays confidential: make a new space for what may be known elsewhere";
  throw new ColloquyError("conflict", detail);
};

/** Where the space is confidential, an agent hears in its compartment what is said there. In a transaction. */
const followInCompartment = (
  { ids, settings, subscribers }: SpaceServices,
  agentId: string,
  from: { cursor: number; inside: boolean },
): void => {
  const space = settings.find();
  if (!space || space.confidentialFrom === null) return;
  subscribers.insert({ id: compartmentId(ids, agentId, space.id), kind: "agent", compartmentOf: agentId, ...from });
};

/** Nothing is answered here from now on. The log is kept until all know of the end, agents that have left as well. */
export const removeSpace = (services: SpaceServices, principal: Principal): void => {
  const row = runs(services, principal);
  services.live.stopAll("gone", "The space was deleted");
  services.transaction(() => {
    const { seq: cursor } = services.log.head();
    services.settings.change({ deletedSeq: cursor + 1 });
    services.audit.note("space.deleted", principal, row.id);
    for (const row of services.log.toldElsewhere()) forgetTold(services, row, [], true);
    forgetLetOut(services);
    const from = { cursor, inside: false };
    for (const member of services.members.all()) if (member.follows) tellOfEnd(services, member);
    for (const id of services.log.agents()) services.subscribers.insert({ id, kind: "agent", ...from });
    const { confidentialFrom } = row;
    const kept = confidentialFrom === null ? [] : services.log.agents(confidentialFrom);
    for (const id of kept) followInCompartment(services, id, from);
    services.router.giveUp(new ColloquyError("gone", "The space was deleted"));
    services.timers.setNoLater(deliverTimer, services.clock.now() + watchdogMs);
  });
  services.sockets.closeWhere(() => true, closeCodes.spaceDeleted, "the space was deleted");
  services.delivery.kick();
};

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
    spent: null,
    follows: null,
  };
  append({ type: "member.joined", member: publicMember(row) });
  services.members.insert(row);
  if (entity.type === "agent") {
    const from = { cursor: head.seq, inside: false };
    services.subscribers.insert({ id: entity.id, kind: "agent", ...from });
    followInCompartment(services, entity.id, from);
  }
  return row;
};

/** Throws `name_taken` where two of these look alike (C6). Members who are in already are not asked to change. */
const requireTold = (twins: readonly { id: string }[] | undefined): void => {
  if (!twins) return;
  const ids = twins.map(({ id }) => id).join(" and ");
  const remedy = "rename one of them so that they differ in more than case, blanks and look-alike letters";
  throw new ColloquyError("name_taken", `${ids} would be in one space with names that look the same: ${remedy}`);
};

/** Whether there is anybody to route to: of two members each speaks to the other. */
const isRoutable = (members: readonly Pick<EntityRef, "type">[]): boolean =>
  members.length > 2 && members.some(({ type }) => type === "agent");

/** Adding who is in already changes nothing. */
export const addMember = (services: SpaceServices, principal: Principal, entity: EntityRef): Member => {
  const space = runs(services, principal);
  requireAwake(space);
  const present = services.members.find(entity.id);
  if (present) return publicMember(present);
  const members = services.members.all().map(publicMember);
  if (members.length >= maxMembers) {
    throw new ColloquyError("limit_reached", `This space has ${maxMembers} members, which is the most (maxMembers)`);
  }
  const twin = twinOf(entity.name, members);
  requireTold(twin && [twin, entity]);
  const beginsRouter = !isRoutable(members) && isRoutable([...members, entity]);
  if (beginsRouter && space.router && space.wakePolicy === "addressed") {
    // A person who joins reads the space from now on.
    requireReading({ confidential: space.confidentialFrom !== null, members: [...members, entity] }, principal);
  }
  const row = services.record((append) => {
    const joined = join(services, append, entity);
    services.settings.change({ version: joined.joinedSeq });
    return joined;
  });
  return publicMember(row);
};

/** A person who can be reached hears that they are in the space no more. In a transaction. */
const tellOfEnd = ({ subscribers, log }: SpaceServices, { entityId: id }: MemberRow): void =>
  subscribers.insert({ id, kind: "person", cursor: log.head().seq, inside: true });

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
    if (member.follows) tellOfEnd(services, member);
    const { seq } = append({ type: "member.left", entityId, name: member.name, places: lastPlaces(member) });
    services.members.remove(entityId);
    services.settings.change({ version: seq });
  });
  if (services.settings.find()?.confidentialFrom !== null) closeUnreading(services);
};

/**
 * Nothing happens where the entity is not a member, or has that name. Its old name stays where the new one looks like
 * another member's, who came in or was renamed while the workspace decided.
 */
export const renameMember = (services: SpaceServices, workspaceId: string, entityId: string, name: string): void => {
  spaceIn(services, workspaceId);
  const member = services.members.find(entityId);
  if (!member || member.name === name) return;
  const others = services.members.all().filter((other) => other !== member);
  const twin = twinOf(name, others.map(publicMember));
  requireTold(twin && [twin, { id: entityId }]);
  services.record((append) => {
    const { seq } = append({ type: "member.renamed", entityId, name });
    services.members.change(member, { name });
    services.settings.change({ version: seq });
  });
};

/** All who follow the space are cut off, and come back once it is resumed. */
export const setSuspended = (services: SpaceServices, workspaceId: string, suspended: boolean): void => {
  if (spaceIn(services, workspaceId).suspended === suspended) return;
  services.settings.change({ suspended });
  if (suspended) services.sockets.closeWhere(() => true, closeCodes.suspended, "the workspace is suspended");
  else services.router.resume();
};

/** Endpoints follow the space, or do no more. */
export const setEndpoints = (services: SpaceServices, workspaceId: string, following: FollowingEndpoints): void => {
  spaceIn(services, workspaceId);
  services.endpoints.follow(following, false);
};

export const toldTo = (services: SpaceServices, workspaceId: string, asked: AskedEvents): ToldEvents => {
  spaceIn(services, workspaceId);
  return services.endpoints.toldTo(asked);
};

/** Credentials of this entity, key or session may have ended: sockets close unless the workspace confirms them. */
export const proveAgain = (services: SpaceServices, workspaceId: string, subject: string): void => {
  spaceIn(services, workspaceId);
  services.sockets.proveAgain(subject);
};
