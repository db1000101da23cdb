import { z } from "zod";
import type { Env } from "../env.ts";
import type { EntityType } from "../protocol/entity.ts";
import type { KeyPrincipal } from "../protocol/principal.ts";
import type { IndexDelivery } from "../protocol/rpc.ts";
import { errorKind, type Outcome, ok, unwrap } from "../shared/errors.ts";
import { type Crashable, faultOnceStored } from "../shared/fault.ts";
import { log } from "../shared/log.ts";
import { withTimeout } from "../shared/timeouts.ts";
import type { Jobs } from "../timers/jobs.ts";
import { maxTellsAtOnce, tellTimeoutMs } from "./bounds.ts";
import type { Directory } from "./directory.ts";
import type { Secrets } from "./secrets.ts";
import type { SpaceIndex } from "./space-index.ts";

/**
 * Tells spaces and agents of changes in the workspace: renames, removals, secrets, the end of an agent.
 *
 * Invariants
 * 1. A job is set in the transaction that makes it necessary.
 * 2. A job names what it is about, never the content: that is read when it is told, so the last word wins.
 */
const kind = "tell";

const Told = z.object({
  about: z.enum(["rename", "remove", "secrets", "end"]),
  /** The space or the agent that is told. */
  target: z.string(),
  /** The entity that it is about; empty where it is about the target itself. */
  subject: z.string(),
});
type Told = z.infer<typeof Told>;

type Surroundings = {
  env: Pick<Env, "SPACE" | "AGENT">;
  directory: Directory;
  secrets: Secrets;
  spaces: SpaceIndex;
  jobs: Jobs;
  /** Known once the workspace was created. */
  workspaceId: () => string;
  /** Crashes it in tests. */
  object: Crashable;
};

export class Outbox {
  readonly #around: Surroundings;

  constructor(surroundings: Surroundings) {
    this.#around = surroundings;
    surroundings.jobs.handle(kind, {
      atOnce: maxTellsAtOnce,
      run: async ({ payload }) => {
        await faultOnceStored("workspace.before-tell", surroundings.object);
        await this.#deliver(Told.parse(payload));
        return undefined;
      },
    });
  }

  /** Call these four in the transaction that makes them true. */
  entityRenamed(entityId: string): void {
    this.#tellSpaces("rename", entityId);
  }

  /** An agent's own object is ended too: its caller may be cut off before it has done so. */
  entityRemoved(entityId: string, type: EntityType): void {
    if (type === "agent") this.#tell({ about: "end", target: entityId, subject: "" });
    this.#tellSpaces("remove", entityId);
  }

  secretsChanged(): void {
    for (const target of this.#around.directory.agentIds()) this.#tell({ about: "secrets", target, subject: "" });
  }

  /** A space may have added somebody whom the directory has removed or renamed meanwhile: it is told again. */
  spaceFollowed({ space, deleted }: IndexDelivery): void {
    if (deleted) return;
    for (const member of space.members) {
      const entity = this.#around.directory.find(member.id);
      if (entity?.name === member.name) continue;
      this.#tell({ about: entity ? "rename" : "remove", target: space.id, subject: member.id });
    }
  }

  #tellSpaces(about: "rename" | "remove", subject: string): void {
    for (const target of this.#around.spaces.spaceIdsOf(subject)) this.#tell({ about, target, subject });
  }

  #tell(told: Told): void {
    this.#around.jobs.set({ kind, key: `${told.about} ${told.target} ${told.subject}`, payload: told });
  }

  async #deliver(told: Told): Promise<void> {
    const outcome = await withTimeout(tellTimeoutMs, this.#ask(told));
    if (!outcome.ok && errorKind(outcome.problem.code).retryable) unwrap(outcome);
    await faultOnceStored("workspace.after-tell", this.#around.object);
    // Trying again cannot change this refusal. The space is gone, for example: there is nobody left to tell.
    if (!outcome.ok) log.warn("outbox.refused", { about: told.about, target: told.target, code: outcome.problem.code });
  }

  async #ask({ about, target, subject }: Told): Promise<Outcome<null>> {
    const { env, directory, secrets } = this.#around;
    const workspaceId = this.#around.workspaceId();
    if (about === "secrets") return env.AGENT.getByName(target).setSecrets(workspaceId, secrets.sealed());
    if (about === "end") {
      // It was made anew meanwhile, under the same key.
      if (directory.find(target)) return ok(null);
      const ended = await env.AGENT.getByName(target).remove(workspaceId);
      return !ended.ok && ended.problem.code === "not_found" ? ok(null) : ended;
    }
    const space = env.SPACE.getByName(target);
    const entity = directory.find(subject);
    if (entity) return space.renameMember(workspaceId, entity.id, entity.name);
    const workspaceItself: KeyPrincipal = { kind: "key", workspaceId, keyId: "workspace" };
    return space.removeMember(workspaceItself, subject);
  }
}
