import { createHmac } from "node:crypto";
import type { Env } from "../env/env.ts";
import { systemClock } from "../shared/clock.ts";
import { hasSchema, openDatabase, Remembered } from "../shared/database.ts";
import { createIds, deriveKey, type Ids } from "../shared/ids.ts";
import { ringOf } from "../shared/secret-ring.ts";
import { createJobs } from "../timers/jobs.ts";
import { createTimers } from "../timers/timers.ts";
import { createAudit } from "./audit.ts";
import { createAuditWebhook } from "./audit-webhook.ts";
import { createCredentials } from "./credentials.ts";
import { createDirectory } from "./directory.ts";
import { createEndpoints } from "./endpoints.ts";
import { createErasures } from "./erasures.ts";
import { createFeed } from "./feed.ts";
import { createKeys } from "./keys.ts";
import { createLimits, type Reached, roomWithin } from "./limits.ts";
import { createMeters } from "./meters.ts";
import { createOutbox } from "./outbox.ts";
import { purge, removeEntity } from "./purge.ts";
import { createRegistration, createRegistry, registeredOf } from "./registry.ts";
import { createRequests } from "./requests.ts";
import { createResealing } from "./resealing.ts";
import { workspaces } from "./schema.ts";
import { createSecrets } from "./secrets.ts";
import { createSessions } from "./sessions.ts";
import { createSignInCodes } from "./sign-in-codes.ts";
import { createSpaceIndex } from "./space-index.ts";
import { createTokenLeases, dayOf } from "./token-leases.ts";
import { createUsage } from "./usage.ts";
import { createWaitingCalls } from "./waiting-calls.ts";

export const requestsTimer = "requests";

/** The parts of a workspace over its database. */
export const createServices = (ctx: DurableObjectState, env: Env) => {
  const clock = systemClock;
  const db = openDatabase(ctx.storage);
  const timers = createTimers(db, ctx.storage, clock);
  const jobs = createJobs({ db, timers, clock, waitUntil: (work) => ctx.waitUntil(work), object: ctx.id.toString() });
  const audit = createAudit(db, clock, timers, undefined, (position) => {
    auditWebhook.noted();
    feed.add("audit.entry", String(position));
  });
  /** The workspace's own row. Undefined where it was never created. */
  const self = new Remembered(db, () => (hasSchema(ctx.storage) ? db.select().from(workspaces).get() : undefined));
  const workspaceId = (): string => self.get()?.id ?? "";
  const reached: Reached[] = [];
  const requireRoom = roomWithin(
    () => self.get()?.limits ?? {},
    (limit) => void reached.push(limit),
  );
  const directory = createDirectory(db, clock, requireRoom, (hash) => {
    const key = deriveKey(ringOf(env).ids.secret, `removed-subjects:${workspaceId()}`);
    return createHmac("sha256", key).update(hash).digest("base64url");
  });
  const secrets = createSecrets(db, clock);
  const auditWebhook = createAuditWebhook({ env, db, clock, jobs, self, audit, secrets, object: ctx });
  const spaces = createSpaceIndex(db, clock, requireRoom);
  const requests = createRequests(db, clock, () => ctx.storage.sql.databaseSize);
  const ids = (): Ids => createIds(ringOf(env).ids.secret);
  const waitingCalls = createWaitingCalls(db, env, workspaceId);
  const feed = createFeed({
    ...{ env, db, clock, jobs, ids, workspaceId, audit, directory, waitingCalls },
    endpoints: () => endpoints,
  });
  const endpoints = createEndpoints({
    ...{ env, db, clock, self, newest: feed.newest },
    changed: (id, spaceIds) => outbox.endpointChanged(id, spaceIds),
  });
  const resealing = createResealing({
    ...{ env, db, clock, jobs, audit, directory, secrets, requests, endpoints, self, object: ctx },
  });
  const maxTokens = (): number | undefined => self.get()?.limits.maxTokensPerDay;
  const usage = createUsage(db, clock, () => ctx.storage.sql.databaseSize);
  const tokenLeases = createTokenLeases(db, clock, maxTokens);
  const retentionDays = (): number | null => self.get()?.retentionDays ?? null;
  const isMetered = (): boolean => maxTokens() !== undefined;
  const isSuspended = (): boolean => (self.get()?.suspended ?? null) !== null;
  const outbox = createOutbox({
    ...{
      env,
      ids,
      db,
      directory,
      secrets,
      spaces,
      endpoints,
      jobs,
      clock,
      workspaceId,
      isSuspended,
      isMetered,
      retentionDays,
    },
    object: ctx,
  });
  const keys = createKeys(db, clock, outbox.makerEnded);
  const sessions = createSessions(db, clock, outbox.sessionEnded);
  const credentials = createCredentials(clock, directory, keys, sessions, () => self.get()?.auth ?? null);
  const current = () => {
    const row = self.get();
    if (!row) throw new Error("a workspace registers once it was created");
    return registeredOf(row);
  };
  const erasures = createErasures({
    ...{ env, db, clock, jobs, audit, directory, spaces, endpoints, workspaceId, ending: outbox.ending, object: ctx },
    removed: (id) => {
      // Its objects are visited one after the other, and its sockets close at once.
      outbox.signedOut(id);
      removeEntity(services, id);
    },
    purge: (...of) => purge(services, ...of),
  });
  const services = {
    ...{ db, clock, timers, jobs, audit, auditWebhook, directory, keys, secrets, spaces, requests, self },
    ...{ outbox, resealing, erasures, sessions, credentials, ids, endpoints, feed, waitingCalls },
    registry: createRegistry(db),
    meters: createMeters(db, clock),
    registered: createRegistration(jobs, env, current, ctx),
    databaseBytes: (): number => ctx.storage.sql.databaseSize,
    signInCodes: createSignInCodes(db, clock, directory, keys, credentials),
    tokenLeases,
    usage,
    limits: createLimits(db, self, {
      maxAgents: directory.agents,
      maxEntities: directory.others,
      maxSpaces: spaces.used,
      maxStorageBytes: usage.bytes,
      maxTokensPerDay: tokenLeases.today,
    }),
    /** The limits that have just refused something are noted for admins, once a day. The refusal undid its own transaction. */
    noteReached(): void {
      const day = dayOf(clock.now());
      for (const { name, most, used } of reached.splice(0)) {
        const once = `reached ${name} ${most} ${day}`;
        const detail = { day, [name]: most, used };
        audit.note({ action: "limit.reached", actor: { id: "workspace" }, target: workspaceId(), detail, once });
      }
    },
    /** Forgets the requests that are past their time, and sets the timer to when the next will be. */
    pruneRequests(): void {
      const next = requests.prune();
      if (next === undefined) timers.clear(requestsTimer);
      else timers.set(requestsTimer, next);
    },
  };
  return services;
};

export type WorkspaceServices = ReturnType<typeof createServices>;
