import type { EntityType } from "../protocol/entity.ts";
import type { KeyPrincipal } from "../protocol/principal.ts";
import type { IndexDelivery } from "../protocol/rpc.ts";
import type { Clock } from "../shared/clock.ts";
import type { Env } from "../shared/env.ts";
import { errorKind, type Outcome, ok } from "../shared/errors.ts";
import { type Crashable, faultOnceStored } from "../shared/fault.ts";
import { log } from "../shared/log.ts";
import { inTime } from "../shared/within.ts";
import type { Timers } from "../timers/timers.ts";
import { carryTimeoutMs, outboxConcurrency } from "./bounds.ts";
import type { Directory } from "./directory.ts";
import type { Errand, ErrandName, Outbox } from "./outbox.ts";
import type { Secrets } from "./secrets.ts";
import type { SpaceIndex } from "./space-index.ts";

/**
 * Carries the outbox to spaces and agents: at once in the background, and by a timer where that failed.
 *
 * Invariants
 * 1. While the outbox holds a row, a timer is set that will carry it.
 * 2. What is told is how things are when it is told, which may be newer than when the row was written.
 * 3. The outbox is carried by one pass at a time.
 */
export type CarrierParts = {
  env: Pick<Env, "SPACE" | "AGENT">;
  directory: Directory;
  secrets: Secrets;
  spaces: SpaceIndex;
  outbox: Outbox;
  timers: Timers;
  clock: Clock;
  /** Keeps the object alive, and crashes it in tests. */
  object: Crashable & Pick<DurableObjectState, "waitUntil">;
};

/** The timer's name. */
export const outboxTimer = "outbox";
/** How long the background pass may take before a timer begins another: its object may have been evicted. */
const passLeaseMs = 10_000;

export class Carrier {
  readonly #parts: CarrierParts;
  #passing: Promise<void> | undefined;

  constructor(parts: CarrierParts) {
    this.#parts = parts;
  }

  /** Call these three in the transaction that makes them true. */
  entityRenamed(workspaceId: string, entityId: string): void {
    this.#post(workspaceId, this.#toSpaces("rename", entityId));
  }

  /** Of an agent its own object is ended too: who removes it may be cut off before it has. */
  entityRemoved(workspaceId: string, entityId: string, type: EntityType): void {
    const own: ErrandName[] = type === "agent" ? [{ kind: "end", target: entityId, subject: "" }] : [];
    this.#post(workspaceId, [...own, ...this.#toSpaces("remove", entityId)]);
  }

  secretsChanged(workspaceId: string): void {
    const targets = this.#parts.directory.agentIds();
    this.#post(
      workspaceId,
      targets.map((target) => ({ kind: "secrets", target, subject: "" })),
    );
  }

  /** A space may have taken in whom the directory has removed or renamed meanwhile: it is told again. */
  spaceFollowed({ space, deleted }: IndexDelivery): void {
    if (deleted) return;
    const errands = space.members.flatMap((member): ErrandName[] => {
      const entity = this.#parts.directory.find(member.id);
      if (entity?.name === member.name) return [];
      return [{ kind: entity ? "rename" : "remove", target: space.id, subject: member.id }];
    });
    this.#post(space.workspaceId, errands);
  }

  /** Carries all that is due. A target's failure only postpones its row. */
  async carry(workspaceId: string): Promise<void> {
    this.#passing ??= this.#pass(workspaceId).finally(() => {
      this.#passing = undefined;
      const next = this.#parts.outbox.nextDueAt();
      if (next === undefined) this.#parts.timers.clear(outboxTimer);
      else this.#parts.timers.set(outboxTimer, next);
    });
    await this.#passing;
  }

  #toSpaces(kind: "rename" | "remove", subject: string): ErrandName[] {
    return this.#parts.spaces.spaceIdsOf(subject).map((target) => ({ kind, target, subject }));
  }

  #post(workspaceId: string, errands: ErrandName[]): void {
    if (errands.length === 0) return;
    const { outbox, timers, clock, object } = this.#parts;
    outbox.add(errands);
    timers.setNoLater(outboxTimer, clock.now() + passLeaseMs);
    object.waitUntil(Promise.resolve().then(() => this.carry(workspaceId)));
  }

  async #pass(workspaceId: string): Promise<void> {
    const { outbox, object } = this.#parts;
    await faultOnceStored("workspace.before-carry", object);
    for (let due = outbox.due(); due.length > 0; due = outbox.due()) {
      const queue = due.values();
      const carrier = async (): Promise<void> => {
        for (const errand of queue) await this.#carryOne(workspaceId, errand);
      };
      await Promise.all(Array.from({ length: outboxConcurrency }, carrier));
    }
  }

  async #carryOne(workspaceId: string, errand: Errand): Promise<void> {
    const { kind, target, attempts } = errand;
    try {
      const outcome = await inTime(carryTimeoutMs, this.#tell(workspaceId, errand));
      if (!outcome.ok && errorKind(outcome.problem.code).retryable) {
        log.warn("outbox.postponed", { kind, target, attempts, code: outcome.problem.code });
        this.#parts.outbox.failed(errand);
        return;
      }
      await faultOnceStored("workspace.after-carry", this.#parts.object);
      // A refusal that trying again cannot change, such as a space that is gone: there is nobody left to tell.
      if (!outcome.ok) log.warn("outbox.refused", { kind, target, code: outcome.problem.code });
      this.#parts.outbox.done(errand);
    } catch (error) {
      log.error("outbox.failed", error, { kind, target, attempts });
      this.#parts.outbox.failed(errand);
    }
  }

  async #tell(workspaceId: string, errand: Errand): Promise<Outcome<null>> {
    const { env, directory, secrets } = this.#parts;
    if (errand.kind === "secrets") return env.AGENT.getByName(errand.target).setSecrets(workspaceId, secrets.sealed());
    if (errand.kind === "end") {
      // It was made anew meanwhile, under the same key.
      if (directory.find(errand.target)) return ok(null);
      const ended = await env.AGENT.getByName(errand.target).remove(workspaceId);
      return !ended.ok && ended.problem.code === "not_found" ? ok(null) : ended;
    }
    const space = env.SPACE.getByName(errand.target);
    const entity = directory.find(errand.subject);
    if (entity) return space.renameMember(workspaceId, entity.id, entity.name);
    const workspaceItself: KeyPrincipal = { kind: "key", workspaceId, keyId: "workspace" };
    return space.removeMember(workspaceItself, errand.subject);
  }
}
