import type { Served } from "../env/env.ts";
import { hourly } from "../protocol/audit.ts";
import type { Entity } from "../protocol/entity.ts";
import { makingSpaceMs } from "../protocol/limits.ts";
import type { WorkspaceRpc } from "../protocol/rpc.ts";
import { nearPart, type UsageHeard, type UsageReport } from "../protocol/usage.ts";
import { type Key, noTokensOfAgents, type Workspace as WorkspaceView } from "../protocol/workspace.ts";
import { systemClock } from "../shared/clock.ts";
import { ColloquyError } from "../shared/errors.ts";
import { compartmentId } from "../shared/ids.ts";
import { sameJson } from "../shared/same-json.ts";
import { type Audit, unknownActor } from "./audit.ts";
import { endpointAnswers } from "./endpoint-answers.ts";
import { end, endSuspended, overviewOf, suspend } from "./lifecycle.ts";
import { requireStorage } from "./limits.ts";
import { removeEntity } from "./purge.ts";
import { registeredOf, type WorkspaceRow } from "./registry.ts";
import { workspaces } from "./schema.ts";
import { requestsTimer, type WorkspaceServices } from "./services.ts";

export const viewOf = (row: WorkspaceRow): WorkspaceView => {
  const { id, name, createdAt, suspended } = registeredOf(row);
  const { impersonatedApprovals, retentionDays, auditWebhook } = row;
  return {
    ...{ id, name, impersonatedApprovals, createdAt },
    ...(retentionDays !== null && { retentionDays }),
    ...(auditWebhook && { auditWebhook }),
    ...(suspended && { suspended }),
  };
};

export type Installed = Exclude<keyof WorkspaceRpc, "create" | keyof typeof ofDeployment>;

const keyActor = (by: string | undefined) => (by === undefined ? unknownActor : { id: by });

/** A key was made, which is noted once however often it is asked for, or changed. */
const noteKey = (audit: Audit, action: "key.created" | "key.changed", by: string | undefined, key: Key): void => {
  const detail = { name: key.name ?? "", scopes: key.scopes.join(" ") };
  const once = action === "key.created" ? { once: `${action} ${key.id}` } : {};
  audit.note({ action, actor: keyActor(by), target: key.id, detail, ...once });
};

/** An object is told whether the workspace stores all that it may. Admins are, once, by the audit log, what nears its end. */
const noteUsage = (
  { usage, audit, directory, ids, row }: WorkspaceServices & { row: WorkspaceRow },
  report: UsageReport,
): UsageHeard => {
  const { reporter } = report;
  const isGone = reporter.startsWith("ent_") && !directory.find(reporter) && !ids().isCompartment(reporter);
  const { upTo } = usage.note(isGone ? { ...report, bytes: 0 } : report);
  const warn = (target: string, bytes: number, most: number, what: string): void => {
    if (bytes < nearPart * most) return;
    const detail = { bytes, [what]: most };
    audit.note({ action: "storage.near", actor: { id: "workspace" }, target, detail, once: `near ${target} ${most}` });
  };
  if (report.maxBytes !== undefined) warn(report.reporter, report.bytes ?? 0, report.maxBytes, "maxBytes");
  const { maxStorageBytes } = row.limits;
  if (maxStorageBytes === undefined) return { upTo };
  const bytes = usage.bytes();
  warn(row.id, bytes, maxStorageBytes, "maxStorageBytes");
  return { upTo, isFull: bytes >= maxStorageBytes };
};

/** Reporters of confidential spaces that these readers are not all in: the spaces, and agents' compartments. */
const hiddenFrom = ({ usage, spaces, ids }: WorkspaceServices, readers: string[]): string[] => {
  const issued = ids();
  const places = new Map(spaces.confidential(readers).map(({ id, isRead }) => [id, isRead]));
  const near = spaces.agentsNear(readers[0]).filter(({ spaceId }) => places.get(spaceId));
  const minds = new Set(near.map(({ agentId, spaceId }) => compartmentId(issued, agentId, spaceId)));
  const isHidden = (id: string): boolean => places.get(id) === false || (issued.isCompartment(id) && !minds.has(id));
  return usage.reporters().filter(isHidden);
};

/** All ends that the entity is signed in by, and what it made for others. */
const signOut = ({ directory, signInCodes, sessions, outbox }: WorkspaceServices, { id, role }: Entity): void => {
  directory.raiseGeneration(id);
  signInCodes.forgetEntity(id);
  sessions.forgetEntity(id);
  outbox.signedOut(id);
  if (role === "admin") outbox.makerEnded(id);
};

/** The methods that need the services, and the workspace's own row. */
export const answers: Served<Pick<WorkspaceRpc, Installed>, WorkspaceServices & { row: WorkspaceRow }> = {
  describe: ({ row }) => viewOf(row),
  update: ({ db, self, row, audit, registered, outbox }, given, by = unknownActor) => {
    const { name = row.name, impersonatedApprovals = row.impersonatedApprovals } = given;
    const { retentionDays = row.retentionDays, auditWebhook = row.auditWebhook } = given;
    // Another one is told from now on.
    const auditTold = auditWebhook?.url === row.auditWebhook?.url ? row.auditTold : audit.newest();
    const changes = { name, impersonatedApprovals, retentionDays, auditWebhook, auditTold };
    db.update(workspaces).set(changes).run();
    self.forget();
    registered();
    if (retentionDays !== row.retentionDays) outbox.retentionChanged();
    const detail = { fields: Object.keys(given).join(" "), impersonatedApprovals, retentionDays: retentionDays ?? 0 };
    audit.note({ action: "workspace.changed", actor: by, target: row.id, detail });
    return viewOf({ ...row, ...changes });
  },

  limits: ({ limits }) => limits.inUse(),
  leaseOfDay: ({ tokenLeases, directory, row, audit }, asked) => {
    const isRouter = asked.agentId.startsWith("spc_");
    if (isRouter && row.limits.maxTokensPerDay === undefined) {
      return { seq: asked.seq, leased: asked.need, is: "leased", isFree: true };
    }
    if (!isRouter) directory.get(asked.agentId);
    const leased = tokenLeases.lease(asked);
    if (leased.is === "spent") {
      const detail = { day: asked.day, maxTokensPerDay: row.limits.maxTokensPerDay ?? 0 };
      const once = `spent ${asked.day} ${detail.maxTokensPerDay}`;
      audit.note({ action: "tokens.spent", actor: { id: "workspace" }, target: row.id, detail, once });
    }
    return leased;
  },
  noteUsage,
  usage: (services, page) => services.usage.page(page, page.readers && hiddenFrom(services, page.readers)),
  setLimits: ({ limits, row, audit, outbox }, wanted) => {
    const set = limits.set(wanted);
    if (row.limits.maxTokensPerDay !== wanted.maxTokensPerDay) outbox.tokensMetered();
    const detail: Record<string, number> = JSON.parse(JSON.stringify(set.limits));
    audit.note({ action: "workspace.limited", actor: { id: "operator" }, target: row.id, detail });
    return set;
  },

  verifyKey: ({ keys }, keyHash, knowsScopes) => keys.verify(keyHash, knowsScopes),
  keyLives: ({ keys }, keyId, scopes) => keys.isUsed(keyId, scopes),
  addKey: ({ keys, audit }, key) => {
    const added = keys.add(key);
    noteKey(audit, "key.created", key.by, added);
    return added;
  },
  keys: ({ keys }) => keys.all(),
  updateKey: ({ keys, audit }, keyId, changes, by) => {
    const key = keys.update(keyId, changes, by);
    noteKey(audit, "key.changed", by, key);
    return key;
  },
  rollKey: ({ keys, audit }, keyId, successor, overlapMs) => {
    const rolled = keys.roll(keyId, successor, overlapMs);
    const once = `key.rolled ${successor.keyId}`;
    const detail = { successor: rolled.key.id, overlapMs };
    audit.note({ action: "key.rolled", actor: keyActor(successor.by), target: keyId, detail, once });
    return rolled;
  },
  revokeKey: ({ keys, audit }, keyId, by = unknownActor) => {
    keys.revoke(keyId);
    audit.note({ action: "key.revoked", actor: by, target: keyId });
  },

  putSecret: ({ secrets, outbox, audit }, name, sealed, by = unknownActor) => {
    secrets.put(name, sealed);
    outbox.secretsChanged();
    audit.note({ action: "secret.put", actor: by, target: name });
  },
  deleteSecret: ({ secrets, outbox, audit }, name, by = unknownActor) => {
    secrets.delete(name);
    outbox.secretsChanged();
    audit.note({ action: "secret.deleted", actor: by, target: name });
  },
  secretNames: ({ secrets }) => secrets.names(),
  secrets: ({ secrets }) => secrets.list(),
  sealedSecrets: ({ secrets }) => secrets.sealed(),
  beginReseal: ({ resealing, registered }) => {
    // One of before the list comes into it.
    registered();
    return resealing.begin();
  },
  reseal: ({ resealing }) => resealing.describe(),

  putAuth: ({ db, self, outbox, audit, row }, auth, by = unknownActor) => {
    const { id, changedAt } = row.auth ?? auth;
    if (sameJson(row.auth, { ...auth, id, changedAt })) return row.auth ?? auth;
    db.update(workspaces).set({ auth }).run();
    self.forget();
    if (row.auth) outbox.makerEnded(row.auth.id);
    audit.note({ action: "auth.changed", actor: by, target: auth.id, detail: { issuer: auth.issuer } });
    return auth;
  },
  deleteAuth: ({ db, self, outbox, audit, row }, by = unknownActor) => {
    if (!row.auth) return;
    db.update(workspaces).set({ auth: null }).run();
    self.forget();
    outbox.makerEnded(row.auth.id);
    audit.note({ action: "auth.deleted", actor: by, target: row.auth.id });
  },
  auth: ({ row }) => row.auth,
  entityOfSubject: ({ credentials, row }, subject) => credentials.entityOf(subject, row.suspended !== null),
  credentialUntil: ({ credentials, outbox }, credential, socketAt) => {
    if (socketAt !== undefined) outbox.noteSocket(socketAt);
    return credentials.until(credential);
  },
  admitToken: ({ credentials, directory, audit }, entityId, by, minter, isGuest = false) => {
    const [entity] = directory.resolve([entityId]);
    if (!entity || (entity.type === "agent") !== isGuest) {
      throw new ColloquyError("unknown_reference", noTokensOfAgents);
    }
    const admitted = credentials.admit(entity, by);
    if (minter && minter.id !== entityId) {
      // A server mints one for each of its people again and again.
      const once = hourly(systemClock.now(), "token.minted", minter.id, entityId);
      audit.note({ action: "token.minted", actor: minter, target: entityId, once });
    }
    return admitted;
  },
  signOut: (services, id, by = unknownActor) => {
    const entity = services.directory.get(id);
    signOut(services, entity);
    services.audit.note({ action: "entity.signed_out", actor: by, target: id });
  },
  addSignInCode: ({ signInCodes, audit }, code) => {
    const { issuer: id, entityId, madeBy } = code;
    const actor = { id, ...(madeBy !== null && madeBy !== id && { impersonatedBy: madeBy }) };
    const added = signInCodes.add(code);
    if (id !== entityId) audit.note({ action: "link.made", actor, target: entityId });
    return added;
  },
  offeredSession: ({ signInCodes }, hash) => signInCodes.offered(hash),
  useSignInCode: ({ signInCodes, sessions, audit }, hash, session) => {
    const offered = signInCodes.use(hash);
    const { entity, madeBy } = offered;
    sessions.begin({ ...session, entityId: entity.id });
    const actor = { id: entity.id, ...(madeBy !== null && { impersonatedBy: madeBy }) };
    audit.note({ action: "session.began", actor, target: entity.id });
    return offered;
  },
  sessionLives: ({ sessions }, sessionId) => sessions.lives(sessionId),
  endSession: ({ sessions, audit }, sessionId) => {
    const entityId = sessions.end(sessionId);
    if (entityId !== undefined) audit.note({ action: "session.ended", actor: { id: entityId }, target: entityId });
  },

  createEntity: ({ directory, audit, erasures, feed }, id, input, by = unknownActor) => {
    erasures.requireNotErased(id);
    if (!directory.find(id)) feed.add("entity.created", id);
    const entity = directory.create(id, input);
    const made = { actor: by, target: id, detail: { to: entity.role }, once: `made ${id}` };
    if (entity.role === "admin") audit.note({ action: "entity.role_changed", ...made });
    return entity;
  },
  createAgentEntity: ({ directory, audit, outbox, erasures, row, usage, feed }, id, name, importedBy) => {
    erasures.requireNotErased(id);
    if (!directory.find(id)) feed.add("agent.created", id);
    if (!directory.find(id)) requireStorage(row, usage.bytes());
    if (row.limits.maxTokensPerDay !== undefined && !directory.find(id)) outbox.tokensMetered(id);
    const entity = directory.create(id, { type: "agent", name, role: "member" });
    if (!importedBy) return entity;
    audit.note({ action: "agent.imported", actor: importedBy, target: id, once: `imported ${id}` });
    erasures.imported(id);
    return entity;
  },
  entities: ({ directory }, page) => directory.page(page),
  entity: ({ directory }, id) => directory.get(id),
  resolve: ({ directory }, ids, visibleTo) => directory.resolve(ids, visibleTo),
  updateEntity: (services, id, changes, by = unknownActor) => {
    const { directory, outbox, audit, row } = services;
    const before = directory.get(id);
    const entity = directory.update(id, changes);
    services.feed.add(entity.type === "agent" ? "agent.updated" : "entity.updated", id);
    if (entity.name !== before.name) outbox.entityRenamed(id);
    if (entity.role !== before.role) {
      if (before.role === "admin") outbox.makerEnded(id);
      // A key of scope `tokens` signs no admin in.
      else outbox.signedOut(id);
      const detail = { from: before.role, to: entity.role };
      audit.note({ action: "entity.role_changed", actor: by, target: id, detail });
    }
    if (entity.externalId !== before.externalId) {
      // A JWT with the old externalId is somebody else's now.
      if (row.auth && entity.type === "human" && before.externalId !== undefined) signOut(services, entity);
      audit.note({ action: "entity.identified", actor: by, target: id });
    }
    return entity;
  },
  removeEntity: (services, id, by = unknownActor) => {
    const { type, role } = removeEntity(services, id);
    const { audit, outbox } = services;
    if (type === "agent") audit.note({ action: "agent.deleted", actor: by, target: id });
    else audit.note({ action: "entity.removed", actor: by, target: id, detail: { type, role } });
    outbox.entityRemoved(id, type);
  },
  standing: ({ directory }, entityId) => {
    const { role, type } = directory.get(entityId);
    return { role, type };
  },

  shareSpace: ({ spaces }, entityId, otherId) => spaces.share(entityId, otherId),
  admitSpace: ({ spaces, outbox, row, usage }, id, madeBy, until = systemClock.now() + makingSpaceMs) => {
    requireStorage(row, usage.bytes());
    spaces.admit(id, madeBy, until);
    if (spaces.toBeUntil(id) !== undefined) outbox.spaceAdmitted(id, until);
  },
  dismissSpace: ({ spaces, outbox }, id) => {
    spaces.forgetToBe(id);
    outbox.spaceSettled(id);
  },
  follow: ({ spaces, outbox, erasures, requests, endpoints, row }, delivery) => {
    if (delivery.space.workspaceId !== row.id)
      throw new ColloquyError("not_found", "The space is of another workspace.");
    const isAwaited = spaces.toBeUntil(delivery.space.id) !== undefined;
    const joined = spaces.follow(delivery);
    if (joined) {
      outbox.spaceFollowed(delivery, joined);
      erasures.followed(delivery);
      if (delivery.deleted) requests.forgetAt(`/spaces/${delivery.space.id}`);
    }
    if (isAwaited) outbox.spaceSettled(delivery.space.id);
    if (isAwaited && row.retentionDays !== null && !delivery.deleted) outbox.retentionChanged(delivery.space.id);
    return endpoints.following(delivery.space.id);
  },
  spaces: ({ spaces }, page) => spaces.page(page),
  lineOf: ({ spaces, directory, outbox }, entityId) => {
    const entity = directory.get(entityId);
    if (entity.type === "human") outbox.noteSocket(entityId);
    return { entity, spaceIds: spaces.spaceIdsOf(entityId) };
  },

  // The agent may have been deleted a moment ago: then nothing of it waits any more.
  noteToolCall: ({ waitingCalls, directory, feed }, call, waits) => {
    const isNew = waitingCalls.note(call, waits && directory.find(call.agentId) !== undefined);
    if (isNew) feed.add("tool_call.waiting", call.toolCallId);
  },
  toolCalls: ({ waitingCalls }, page) => waitingCalls.page(page),

  ...endpointAnswers,

  overview: (services) => overviewOf(services, services.row),
  suspend: (services, reason) => suspend(services, services.row, reason),
  end: (services) => endSuspended(services, services.row),

  beginErasure: (services, asked, by) => {
    const { erasures, row } = services;
    return asked.kind === "workspace" && asked.id === row.id ? end(services, row, by) : erasures.begin(asked, by);
  },
  erasure: ({ erasures }, id) => erasures.view(id),
  erasures: ({ erasures }, page) => erasures.page(page),

  noteAudit: ({ audit, erasures, feed, row }, note) => {
    // An erased workspace keeps no late notes.
    if (row.deletedAt === null || erasures.view(row.id).state === "running") audit.note(note);
    if (note.action === "agent.changed") feed.add("agent.updated", note.target);
  },
  audit: ({ audit }, page) => audit.page(page),

  beginRequest: ({ requests, timers, pruneRequests }, { bodyHash, ...name }) => {
    const begun = requests.begin(name, bodyHash);
    if (timers.dueAt(requestsTimer) === undefined) pruneRequests();
    return begun;
  },
  forgetAnswers: ({ requests }, path) => requests.forgetAt(path),
  endRequest: ({ requests }, { principal, key, ...end }) =>
    "abandon" in end ? requests.abandon({ principal, key }) : requests.end({ principal, key }, end.status, end.body),
};

/** Answered by objects of this class that are no workspaces: the registry, and shards of figures. */
export const ofDeployment = {
  register: ({ registry }, workspace) => registry.register(workspace),
  registered: ({ registry }, page) => registry.page(page),
  report: ({ meters }, report) => meters.add(report),
  reported: ({ meters }) => meters.all(),
} satisfies Partial<Served<WorkspaceRpc, WorkspaceServices>>;

/** Refused by a suspended workspace. It can be read, and credentials, people and secrets can be taken away. */
export const refusedWhileSuspended = new Set<string>([
  ...(["update", "addKey", "updateKey", "putSecret", "addSignInCode", "putAuth"] as const),
  ...(["createEntity", "createAgentEntity", "updateEntity", "admitSpace", "lineOf"] as const),
  ...(["addEndpoint", "updateEndpoint"] as const),
] satisfies Installed[]);

/** Methods that a workspace answers once it is over: for the operator, and for its spaces and agents as they end. */
export const answeredAfterEnd = new Set<string>([
  ...(["overview", "erasure", "follow", "noteToolCall", "noteAudit"] as const),
] satisfies Installed[]);
