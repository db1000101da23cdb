import { DurableObject } from "cloudflare:workers";
import migrations from "../../migrations/workspace/migrations.js";
import type { Env } from "../env.ts";
import type { CreateEntity, Entity, EntityType, Role, UpdateEntity } from "../protocol/entity.ts";
import type { BegunRequest, IndexDelivery, Page, PageRequest, RequestName, WorkspaceRpc } from "../protocol/rpc.ts";
import type { Space } from "../protocol/space.ts";
import type { WaitingToolCall } from "../protocol/tool-call.ts";
import type { Key, Workspace as WorkspaceView } from "../protocol/workspace.ts";
import { isoTime, systemClock } from "../shared/clock.ts";
import { createSchema, hasSchema, openDatabase } from "../shared/database.ts";
import { ColloquyError, type Outcome, ok, refusalOf } from "../shared/errors.ts";
import { faultOnceStored } from "../shared/fault.ts";
import { Jobs, jobsTimer } from "../timers/jobs.ts";
import { Timers } from "../timers/timers.ts";
import { Directory } from "./directory.ts";
import { Keys } from "./keys.ts";
import { Outbox } from "./outbox.ts";
import { pruneRequests, Requests, requestsTimer } from "./requests.ts";
import { workspaces } from "./schema.ts";
import { Secrets } from "./secrets.ts";
import { SpaceIndex } from "./space-index.ts";
import { WaitingCalls } from "./waiting-calls.ts";

/**
 * One tenant: its entities, keys, secrets, and the index of its spaces. It is on no hot path.
 *
 * Invariants
 * 1. An object that was never created answers `not_found` and stores no byte.
 * 2. A rename, a removal or a new secret is a job of the outbox by the same transaction that stored it.
 */
export class Workspace extends DurableObject<Env> implements WorkspaceRpc {
  readonly #db = openDatabase(this.ctx.storage);
  readonly #timers = new Timers(this.#db, this.ctx.storage, systemClock);
  readonly #directory = new Directory(this.#db, systemClock);
  readonly #keys = new Keys(this.#db, systemClock);
  readonly #secrets = new Secrets(this.#db, systemClock);
  readonly #spaces = new SpaceIndex(this.#db);
  readonly #waitingCalls = new WaitingCalls(this.#db);
  readonly #requests = new Requests(this.#db, systemClock, () => this.ctx.storage.sql.databaseSize);
  readonly #jobs = new Jobs({
    db: this.#db,
    timers: this.#timers,
    clock: systemClock,
    waitUntil: (work) => this.ctx.waitUntil(work),
  });
  readonly #outbox = new Outbox({
    env: this.env,
    directory: this.#directory,
    secrets: this.#secrets,
    spaces: this.#spaces,
    jobs: this.#jobs,
    workspaceId: () => this.#row()?.id ?? "",
    object: this.ctx,
  });
  #self: typeof workspaces.$inferSelect | undefined;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    if (hasSchema(ctx.storage)) void ctx.blockConcurrencyWhile(() => createSchema(this.#db, migrations));
  }

  async create(input: { id: string; name: string; keyId: string; keyHash: string }): Promise<Outcome<WorkspaceView>> {
    if (!hasSchema(this.ctx.storage)) await this.ctx.blockConcurrencyWhile(() => createSchema(this.#db, migrations));
    try {
      return ok(
        this.#db.transaction(() => {
          if (this.#row()) throw new ColloquyError("conflict", "The workspace exists already.");
          const row = { id: input.id, name: input.name, createdAt: systemClock.now() };
          this.#db.insert(workspaces).values(row).run();
          this.#keys.add(input.keyId, input.keyHash);
          return { id: row.id, name: row.name, createdAt: isoTime(row.createdAt) };
        }),
      );
    } catch (error) {
      return refusalOf(error);
    }
  }

  describe(): Promise<Outcome<WorkspaceView>> {
    return this.#answer(({ id, name, createdAt }) => ({ id, name, createdAt: isoTime(createdAt) }));
  }

  rename(name: string): Promise<Outcome<WorkspaceView>> {
    return this.#answer(({ id, createdAt }) => {
      this.#db.update(workspaces).set({ name }).run();
      this.#self = undefined;
      return { id, name, createdAt: isoTime(createdAt) };
    });
  }

  verifyKey(keyHash: string): Promise<Outcome<{ keyId: string }>> {
    return this.#answer(() => this.#keys.verify(keyHash));
  }

  keyLives(keyId: string): Promise<Outcome<boolean>> {
    return this.#answer(() => this.#keys.lives(keyId));
  }

  addKey(input: { keyId: string; keyHash: string }): Promise<Outcome<Key>> {
    return this.#answer(() => this.#keys.add(input.keyId, input.keyHash));
  }

  revokeKey(keyId: string): Promise<Outcome<null>> {
    return this.#perform(() => this.#keys.revoke(keyId));
  }

  putSecret(name: string, sealed: string): Promise<Outcome<null>> {
    return this.#perform(() => {
      this.#secrets.put(name, sealed);
      this.#outbox.secretsChanged();
    });
  }

  deleteSecret(name: string): Promise<Outcome<null>> {
    return this.#perform(() => {
      this.#secrets.delete(name);
      this.#outbox.secretsChanged();
    });
  }

  secretNames(): Promise<Outcome<string[]>> {
    return this.#answer(() => this.#secrets.names());
  }

  sealedSecrets(): Promise<Outcome<Record<string, string>>> {
    return this.#answer(() => this.#secrets.sealed());
  }

  createEntity(id: string, input: CreateEntity): Promise<Outcome<Entity>> {
    return this.#answer(() => this.#directory.create(id, input));
  }

  createAgentEntity(id: string, name: string): Promise<Outcome<Entity>> {
    return this.#answer(() => this.#directory.createAgent(id, name));
  }

  entities(
    page: PageRequest & { type?: EntityType | undefined; visibleTo?: string | undefined },
  ): Promise<Outcome<Page<Entity>>> {
    return this.#answer(() => this.#directory.page(page));
  }

  entity(id: string): Promise<Outcome<Entity>> {
    return this.#answer(() => this.#directory.get(id));
  }

  resolve(ids: string[], visibleTo?: string): Promise<Outcome<Entity[]>> {
    return this.#answer(() => this.#directory.resolve(ids, visibleTo));
  }

  updateEntity(id: string, changes: UpdateEntity): Promise<Outcome<Entity>> {
    return this.#answer(() => {
      const before = this.#directory.get(id);
      const entity = this.#directory.update(id, changes);
      if (entity.name !== before.name) this.#outbox.entityRenamed(id);
      return entity;
    });
  }

  removeEntity(id: string): Promise<Outcome<null>> {
    return this.#perform(() => {
      const { type } = this.#directory.get(id);
      this.#directory.remove(id);
      this.#waitingCalls.forgetAgent(id);
      this.#outbox.entityRemoved(id, type);
    });
  }

  standing(entityId: string): Promise<Outcome<{ role: Role; type: EntityType }>> {
    return this.#answer(() => {
      const { role, type } = this.#directory.get(entityId);
      return { role, type };
    });
  }

  shareSpace(entityId: string, otherId: string): Promise<Outcome<boolean>> {
    return this.#answer(() => this.#spaces.share(entityId, otherId));
  }

  admitSpace(id: string): Promise<Outcome<null>> {
    return this.#perform(() => this.#spaces.requireRoom(id));
  }

  async follow(delivery: IndexDelivery): Promise<Outcome<null>> {
    const followed = await this.#answer(({ id }) => {
      if (delivery.space.workspaceId !== id) throw new ColloquyError("not_found", "The space is of another workspace.");
      if (this.#spaces.follow(delivery)) this.#outbox.spaceFollowed(delivery);
      return null;
    });
    await faultOnceStored("workspace.before-answer", this.ctx);
    return followed;
  }

  spaces(page: PageRequest & { entityId?: string | undefined }): Promise<Outcome<Page<Space>>> {
    return this.#answer(() => this.#spaces.page(page));
  }

  async noteToolCall(call: WaitingToolCall, waits: boolean): Promise<Outcome<null>> {
    // The agent may have been deleted a moment ago: then nothing of it waits any more.
    const noted = await this.#perform(() =>
      this.#waitingCalls.note(call, waits && this.#directory.find(call.agentId) !== undefined),
    );
    await faultOnceStored("workspace.before-answer", this.ctx);
    return noted;
  }

  toolCalls(page: PageRequest): Promise<Outcome<Page<WaitingToolCall>>> {
    return this.#answer(() => this.#waitingCalls.page(page));
  }

  beginRequest({ bodyHash, ...name }: RequestName & { bodyHash: string }): Promise<Outcome<BegunRequest>> {
    return this.#answer(() => {
      const begun = this.#requests.begin(name, bodyHash);
      if (this.#timers.dueAt(requestsTimer) === undefined) pruneRequests(this.#requests, this.#timers);
      return begun;
    });
  }

  endRequest(input: RequestName & ({ status: number; body: string } | { abandon: true })): Promise<Outcome<null>> {
    const name = { principal: input.principal, key: input.key };
    return this.#perform(() =>
      "abandon" in input ? this.#requests.abandon(name) : this.#requests.end(name, input.status, input.body),
    );
  }

  override async alarm(): Promise<void> {
    if (!this.#row()) return;
    await this.#timers.fire((name) => {
      if (name === jobsTimer) this.#jobs.onTimer();
      if (name === requestsTimer) pruneRequests(this.#requests, this.#timers);
    });
  }

  /** Runs `act` in one transaction, if this workspace exists; a refusal is answered, a bug is thrown. */
  async #answer<T>(act: (self: typeof workspaces.$inferSelect) => T): Promise<Outcome<T>> {
    try {
      const self = this.#row();
      if (!self) throw new ColloquyError("not_found", "There is no such workspace.");
      return ok(this.#db.transaction(() => act(self)));
    } catch (error) {
      return refusalOf(error);
    }
  }

  #perform(act: (self: typeof workspaces.$inferSelect) => void): Promise<Outcome<null>> {
    return this.#answer((self) => {
      act(self);
      return null;
    });
  }

  #row(): typeof workspaces.$inferSelect | undefined {
    if (!this.#self && hasSchema(this.ctx.storage)) this.#self = this.#db.select().from(workspaces).get();
    return this.#self;
  }
}
