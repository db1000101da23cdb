import type { KeyPrincipal } from "../../protocol/principal.ts";
import type { WorkspaceRpc } from "../../protocol/rpc.ts";
import type { Clock } from "../../shared/clock.ts";
import type { ActorNamespace } from "../../shared/env.ts";
import { log } from "../../shared/log.ts";

/** What a workspace said of one of its keys, and when it was asked. */
export type KeyProof = { lives: boolean; askedAt: number };

type Surroundings = {
  ctx: Pick<DurableObjectState, "waitUntil">;
  workspaces: ActorNamespace<Pick<WorkspaceRpc, "keyLives">>;
  clock: Clock;
};

/** Asks workspaces whether the keys that hold sockets open still live (S5). */
export class KeyProofs {
  readonly #around: Surroundings;

  constructor(surroundings: Surroundings) {
    this.#around = surroundings;
  }

  /** Asks in the background. No answer is no proof: then `heard` is not called, and the key's time runs out. */
  ask({ workspaceId, keyId }: KeyPrincipal, heard: (proof: KeyProof) => void): void {
    const { ctx, workspaces, clock } = this.#around;
    const askedAt = clock.now();
    const asking = async (): Promise<void> => {
      try {
        const outcome = await workspaces.getByName(workspaceId).keyLives(keyId);
        heard({ lives: outcome.ok && outcome.value, askedAt });
      } catch (error) {
        log.warn("key.unproven", { keyId, reason: error instanceof Error ? error.message : String(error) });
      }
    };
    ctx.waitUntil(asking());
  }
}
