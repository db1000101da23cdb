import { DurableObject } from "cloudflare:workers";
import { histories } from "../../migrations/histories.ts";
import type { Env } from "../env/env.ts";
import { reportMetrics } from "../env/report-metrics.ts";
import type { WorkspaceRpc } from "../protocol/rpc.ts";
import type { Workspace as WorkspaceView } from "../protocol/workspace.ts";
import { systemClock } from "../shared/clock.ts";
import { createSchema, hasSchema } from "../shared/database.ts";
import { ColloquyError, type Outcome, ok, refusalOf, suspendedError } from "../shared/errors.ts";
import { faultOnceStored } from "../shared/fault.ts";
import { jobsTimer } from "../timers/jobs.ts";
import { answeredAfterEnd, answers, ofDeployment, refusedWhileSuspended, viewOf } from "./answers.ts";
import { auditTimer } from "./audit.ts";
import type { WorkspaceRow } from "./registry.ts";
import { workspaces } from "./schema.ts";
import { createServices, requestsTimer, type WorkspaceServices } from "./services.ts";

const nowhere = (): ColloquyError => new ColloquyError("not_found", "There is no such workspace.");

/** The methods by which other actors tell what they keep. */
const told = new Set(["follow", "noteToolCall", "noteAudit"]);

export interface Workspace extends Omit<WorkspaceRpc, "create"> {}

/**
 * One tenant: its entities, keys, secrets, and the index of its spaces. It is on no hot path.
 *
 * Invariants
 * 1. An object that was never created answers `not_found` and stores no byte.
 * 2. A rename, a removal or a new secret is a job of the outbox by the same transaction that stored it.
 */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the static block installs every method of `Installed`.
export class Workspace extends DurableObject<Env> implements Pick<WorkspaceRpc, "create"> {
  readonly #services: WorkspaceServices;

  static {
    for (const [name, work] of Object.entries(answers)) {
      const value = async function (this: Workspace, ...args: unknown[]): Promise<Outcome<unknown>> {
        const answered = this.#answer((row) => {
          if (row.deletedAt !== null && !answeredAfterEnd.has(name)) throw nowhere();
          if (row.suspended && refusedWhileSuspended.has(name)) throw suspendedError();
          return Reflect.apply(work, undefined, [{ ...this.#services, row }, ...args]);
        });
        if (told.has(name)) await faultOnceStored("workspace.before-answer", this.ctx);
        return answered;
      };
      Object.defineProperty(Workspace.prototype, name, { value, configurable: true, writable: true });
    }
    for (const [name, work] of Object.entries(ofDeployment)) {
      const value = async function (this: Workspace, ...args: unknown[]): Promise<Outcome<unknown>> {
        await this.#makeTables();
        return this.#outcome(() => Reflect.apply(work, undefined, [this.#services, ...args]) ?? null);
      };
      Object.defineProperty(Workspace.prototype, name, { value, configurable: true, writable: true });
    }
  }

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#services = createServices(ctx, env);
    if (hasSchema(ctx.storage))
      void ctx.blockConcurrencyWhile(() => createSchema(this.#services.db, histories.workspace));
  }

  async create(input: { id: string; name: string; keyId: string; keyHash: string }): Promise<Outcome<WorkspaceView>> {
    const { db, self, keys, audit, registered } = this.#services;
    await this.#makeTables();
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
      audit.note({ action: "workspace.created", actor: { id: "operator" }, target: row.id });
      registered();
      return viewOf(row);
    });
  }

  async #makeTables(): Promise<void> {
    const { db } = this.#services;
    if (!hasSchema(this.ctx.storage)) await this.ctx.blockConcurrencyWhile(() => createSchema(db, histories.workspace));
  }

  override async alarm(): Promise<void> {
    const { self, timers, jobs, audit, pruneRequests } = this.#services;
    if (!self.get()) return;
    this.ctx.waitUntil(reportMetrics(this.env, systemClock.now()));
    await timers.fire((name) => {
      if (name === jobsTimer) jobs.onTimer();
      if (name === requestsTimer) pruneRequests();
      if (name === auditTimer) audit.onTimer();
    });
  }

  /** Runs `act` in one transaction, if this workspace exists. */
  #answer<T>(act: (row: WorkspaceRow) => T): Outcome<T | null> {
    return this.#outcome(() => {
      const row = this.#services.self.get();
      if (!row) throw nowhere();
      return act(row) ?? null;
    });
  }

  /** Runs `act` in one transaction; a refusal is answered, a bug is thrown. */
  #outcome<T>(act: () => T): Outcome<T> {
    try {
      return ok(this.#services.db.transaction(act));
    } catch (error) {
      this.#services.noteReached();
      return refusalOf(error);
    }
  }
}
