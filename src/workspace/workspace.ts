import { DurableObject } from "cloudflare:workers";
import migrations from "../../migrations/workspace/migrations.js";
import type { Env, Served } from "../env/env.ts";
import type { WorkspaceRpc } from "../protocol/rpc.ts";
import type { Workspace as WorkspaceView } from "../protocol/workspace.ts";
import { isoTime, systemClock } from "../shared/clock.ts";
import { createSchema, hasSchema, openDatabase, Remembered } from "../shared/database.ts";
import { ColloquyError, type Outcome, ok, refusalOf } from "../shared/errors.ts";
import { faultOnceStored } from "../shared/fault.ts";
import { createJobs, jobsTimer } from "../timers/jobs.ts";
import { createTimers } from "../timers/timers.ts";
import { createDirectory } from "./directory.ts";
import { createKeys } from "./keys.ts";
import { createOutbox } from "./outbox.ts";
import { createRequests } from "./requests.ts";
import { workspaces } from "./schema.ts";
import { createSecrets } from "./secrets.ts";
import { createSessions } from "./sessions.ts";
import { createSignInCodes } from "./sign-in-codes.ts";
import { createSpaceIndex } from "./space-index.ts";
import { createWaitingCalls } from "./waiting-calls.ts";

const requestsTimer = "requests";

const createServices = (ctx: DurableObjectState, env: Env) => {
  const clock = systemClock;
  const db = openDatabase(ctx.storage);
  const timers = createTimers(db, ctx.storage, clock);
  const jobs = createJobs({ db, timers, clock, waitUntil: (work) => ctx.waitUntil(work) });
  const directory = createDirectory(db, clock);
  const keys = createKeys(db, clock);
  const secrets = createSecrets(db, clock);
  const spaces = createSpaceIndex(db, clock);
  const requests = createRequests(db, clock, () => ctx.storage.sql.databaseSize);
  /** The workspace's own row. Undefined where it was never created. */
  const self = new Remembered(db, () => (hasSchema(ctx.storage) ? db.select().from(workspaces).get() : undefined));
  const workspaceId = (): string => self.get()?.id ?? "";
  const outbox = createOutbox({ env, directory, secrets, spaces, jobs, workspaceId, object: ctx });
  return {
    ...{ db, timers, jobs, directory, keys, secrets, spaces, requests, self, outbox },
    signInCodes: createSignInCodes(db, clock, directory, keys),
    sessions: createSessions(db, clock, outbox.sessionEnded),
    waitingCalls: createWaitingCalls(db, env.SIGNING_SECRET, workspaceId),
    /** Forgets the requests that are past their time, and sets the timer to when the next will be. */
    pruneRequests(): void {
      const next = requests.prune();
      if (next === undefined) timers.clear(requestsTimer);
      else timers.set(requestsTimer, next);
    },
  };
};

type Services = ReturnType<typeof createServices>;
type Row = typeof workspaces.$inferSelect;

const viewOf = ({ id, name, impersonatedApprovals, createdAt }: Row): WorkspaceView => ({
  ...{ id, name, impersonatedApprovals },
  createdAt: isoTime(createdAt),
});

type Installed = Exclude<keyof WorkspaceRpc, "create">;

/** The methods that need the services, and the workspace's own row. */
const answers: Served<Pick<WorkspaceRpc, Installed>, Services & { row: Row }> = {
  describe: ({ row }) => viewOf(row),
  update: ({ db, self, row }, { name = row.name, impersonatedApprovals = row.impersonatedApprovals }) => {
    const changes = { name, impersonatedApprovals };
    db.update(workspaces).set(changes).run();
    self.forget();
    return viewOf({ ...row, ...changes });
  },

  verifyKey: ({ keys }, keyHash) => keys.verify(keyHash),
  keyLives: ({ keys }, keyId) => keys.isUsed(keyId),
  addKey: ({ keys }, key) => keys.add(key),
  keys: ({ keys }) => keys.all(),
  updateKey: ({ keys }, keyId, changes, by) => keys.update(keyId, changes, by),
  rollKey: ({ keys }, keyId, successor, overlapMs) => keys.roll(keyId, successor, overlapMs),
  revokeKey: ({ keys }, keyId) => keys.revoke(keyId),

  putSecret: ({ secrets, outbox }, name, sealed) => {
    secrets.put(name, sealed);
    outbox.secretsChanged();
  },
  deleteSecret: ({ secrets, outbox }, name) => {
    secrets.delete(name);
    outbox.secretsChanged();
  },
  secretNames: ({ secrets }) => secrets.names(),
  sealedSecrets: ({ secrets }) => secrets.sealed(),

  admitToken: ({ signInCodes }, entityId, by) => signInCodes.admitToken(entityId, by),
  addSignInCode: ({ signInCodes }, code) => signInCodes.add(code),
  offeredSession: ({ signInCodes }, hash) => signInCodes.offered(hash),
  useSignInCode: ({ signInCodes, sessions }, hash, session) => {
    const offered = signInCodes.use(hash);
    sessions.begin({ ...session, entityId: offered.entity.id });
    return offered;
  },
  sessionLives: ({ sessions }, sessionId) => sessions.lives(sessionId),
  endSession: ({ sessions }, sessionId) => sessions.end(sessionId),

  createEntity: ({ directory }, id, input) => directory.create(id, input),
  createAgentEntity: ({ directory }, id, name) => directory.create(id, { type: "agent", name, role: "member" }),
  entities: ({ directory }, page) => directory.page(page),
  entity: ({ directory }, id) => directory.get(id),
  resolve: ({ directory }, ids, visibleTo) => directory.resolve(ids, visibleTo),
  updateEntity: ({ directory, outbox }, id, changes) => {
    const before = directory.get(id);
    const entity = directory.update(id, changes);
    if (entity.name !== before.name) outbox.entityRenamed(id);
    return entity;
  },
  removeEntity: ({ directory, signInCodes, sessions, waitingCalls, outbox }, id) => {
    const { type } = directory.get(id);
    directory.remove(id);
    signInCodes.forgetEntity(id);
    sessions.forgetEntity(id);
    waitingCalls.forgetAgent(id);
    outbox.entityRemoved(id, type);
  },
  standing: ({ directory }, entityId) => {
    const { role, type } = directory.get(entityId);
    return { role, type };
  },

  shareSpace: ({ spaces }, entityId, otherId) => spaces.share(entityId, otherId),
  admitSpace: ({ spaces }, id, madeBy) => spaces.requireRoom(id, madeBy),
  follow: ({ spaces, outbox, row }, delivery) => {
    if (delivery.space.workspaceId !== row.id)
      throw new ColloquyError("not_found", "The space is of another workspace.");
    if (spaces.follow(delivery)) outbox.spaceFollowed(delivery);
  },
  spaces: ({ spaces }, page) => spaces.page(page),

  // The agent may have been deleted a moment ago: then nothing of it waits any more.
  noteToolCall: ({ waitingCalls, directory }, call, waits) =>
    waitingCalls.note(call, waits && directory.find(call.agentId) !== undefined),
  toolCalls: ({ waitingCalls }, page) => waitingCalls.page(page),

  beginRequest: ({ requests, timers, pruneRequests }, { bodyHash, ...name }) => {
    const begun = requests.begin(name, bodyHash);
    if (timers.dueAt(requestsTimer) === undefined) pruneRequests();
    return begun;
  },
  endRequest: ({ requests }, { principal, key, ...end }) =>
    "abandon" in end ? requests.abandon({ principal, key }) : requests.end({ principal, key }, end.status, end.body),
};

/** The methods by which other actors tell what they keep. */
const told = new Set(["follow", "noteToolCall"]);

export interface Workspace extends Pick<WorkspaceRpc, Installed> {}

/**
 * One tenant: its entities, keys, secrets, and the index of its spaces. It is on no hot path.
 *
 * Invariants
 * 1. An object that was never created answers `not_found` and stores no byte.
 * 2. A rename, a removal or a new secret is a job of the outbox by the same transaction that stored it.
 */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the static block installs every method of `Installed`.
export class Workspace extends DurableObject<Env> implements Pick<WorkspaceRpc, "create"> {
  readonly #services: Services;

  static {
    for (const [name, work] of Object.entries(answers)) {
      const value = async function (this: Workspace, ...args: unknown[]): Promise<Outcome<unknown>> {
        const answered = this.#answer((row) => Reflect.apply(work, undefined, [{ ...this.#services, row }, ...args]));
        if (told.has(name)) await faultOnceStored("workspace.before-answer", this.ctx);
        return answered;
      };
      Object.defineProperty(Workspace.prototype, name, { value, configurable: true, writable: true });
    }
  }

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#services = createServices(ctx, env);
    if (hasSchema(ctx.storage)) void ctx.blockConcurrencyWhile(() => createSchema(this.#services.db, migrations));
  }

  async create(input: { id: string; name: string; keyId: string; keyHash: string }): Promise<Outcome<WorkspaceView>> {
    const { db, self, keys } = this.#services;
    if (!hasSchema(this.ctx.storage)) await this.ctx.blockConcurrencyWhile(() => createSchema(db, migrations));
    self.forget();
    return this.#outcome(() => {
      if (self.get()) throw new ColloquyError("conflict", "The workspace exists already.");
      const row = db
        .insert(workspaces)
        .values({ id: input.id, name: input.name, createdAt: systemClock.now() })
        .returning()
        .get();
      self.forget();
      keys.add(input);
      return viewOf(row);
    });
  }

  override async alarm(): Promise<void> {
    const { self, timers, jobs, pruneRequests } = this.#services;
    if (!self.get()) return;
    await timers.fire((name) => {
      if (name === jobsTimer) jobs.onTimer();
      if (name === requestsTimer) pruneRequests();
    });
  }

  /** Runs `act` in one transaction, if this workspace exists. */
  #answer<T>(act: (row: Row) => T): Outcome<T | null> {
    return this.#outcome(() => {
      const row = this.#services.self.get();
      if (!row) throw new ColloquyError("not_found", "There is no such workspace.");
      return act(row) ?? null;
    });
  }

  /** Runs `act` in one transaction; a refusal is answered, a bug is thrown. */
  #outcome<T>(act: () => T): Outcome<T> {
    try {
      return ok(this.#services.db.transaction(act));
    } catch (error) {
      return refusalOf(error);
    }
  }
}
