import { DurableObject } from "cloudflare:workers";
import type { HookSettings, UpdateHook } from "../../protocol/hook.ts";
import type { AgentRpc, HookRotation, NewHook, ProvenDelivery, SealedHook } from "../../protocol/rpc.ts";
import type { Env } from "../../shared/env.ts";
import type { Outcome } from "../../shared/errors.ts";
import { fault, faultOnceStored } from "../../shared/fault.ts";
import { receive } from "../inbox/receive.ts";
import type { Mind } from "../runtime.ts";

type HookRpc = Pick<
  AgentRpc,
  "hooks" | "createHook" | "hook" | "updateHook" | "rotateHook" | "deleteHook" | "sealedHook" | "receive"
>;

/** Work in the mind of an agent of that workspace; of any agent that there is, where none is said. */
export type InMind = <T>(workspaceId: string | undefined, work: (mind: Mind) => T | Promise<T>) => Promise<Outcome<T>>;

/** What of an agent answers for its hooks. A field, not a method: what stands on the prototype is open to RPC. */
export abstract class HookedAgent extends DurableObject<Env> implements HookRpc {
  protected abstract readonly inMind: InMind;

  hooks(workspaceId: string): Promise<Outcome<HookSettings[]>> {
    return this.inMind(workspaceId, ({ parts }) => parts.hooks.list());
  }

  createHook(workspaceId: string, hook: NewHook): Promise<Outcome<HookSettings>> {
    return this.inMind(workspaceId, ({ parts }) => parts.hooks.create(hook));
  }

  hook(workspaceId: string, id: string): Promise<Outcome<HookSettings>> {
    return this.inMind(workspaceId, ({ parts }) => parts.hooks.get(id));
  }

  updateHook(workspaceId: string, id: string, changes: UpdateHook): Promise<Outcome<HookSettings>> {
    return this.inMind(workspaceId, ({ parts }) => parts.hooks.update(id, changes));
  }

  rotateHook(workspaceId: string, id: string, rotation: HookRotation): Promise<Outcome<HookSettings>> {
    return this.inMind(workspaceId, ({ parts }) => parts.hooks.rotate(id, rotation));
  }

  deleteHook(workspaceId: string, id: string): Promise<Outcome<null>> {
    return this.inMind(workspaceId, ({ parts }) => {
      parts.hooks.delete(id);
      return null;
    });
  }

  sealedHook(id: string): Promise<Outcome<SealedHook>> {
    return this.inMind(undefined, ({ parts }) => {
      const { id: agentId, workspaceId } = parts.identity.get();
      return { workspaceId, agentId, ...parts.hooks.sealed(id) };
    });
  }

  receive(workspaceId: string, hookId: string, delivery: ProvenDelivery): Promise<Outcome<{ eventId: string }>> {
    return this.inMind(workspaceId, async ({ parts, loop }) => {
      fault("hook.before-receive", this.ctx);
      const received = receive(parts, hookId, delivery, () => loop.arm());
      await faultOnceStored("hook.after-receive", this.ctx);
      loop.wake();
      return received;
    });
  }
}
