import type { Context } from "hono";
import type { Env } from "../env/env.ts";
import type { AgentMethods, AgentRpc } from "../protocol/agent-rpc.ts";
import type { Principal } from "../protocol/principal.ts";
import type { SpaceRpc, WorkspaceRpc } from "../protocol/rpc.ts";
import { unwrap } from "../shared/errors.ts";
import type { Ids } from "../shared/ids.ts";

/** A handler's context: the bindings, this deployment's ids and, on a guarded route, the caller. */
export type HttpEnv = { Bindings: Env; Variables: { ids: Ids; principal: Principal; route?: string } };
export type HttpContext = Context<HttpEnv>;

/** The caller's own workspace. */
export const workspaceOf = (context: HttpContext): WorkspaceRpc =>
  context.env.WORKSPACE.getByName(context.get("principal").workspaceId);

export const agentAt = ({ env }: HttpContext, agentId: string): AgentRpc => env.AGENT.getByName(agentId);

export const spaceAt = ({ env }: HttpContext, spaceId: string): SpaceRpc => env.SPACE.getByName(spaceId);

/** An agent of the caller's workspace: its methods without the workspace's id. A refusal is thrown. */
export type AskedAgent = {
  [Name in keyof AgentMethods]: (...args: Parameters<AgentMethods[Name]>) => Promise<ReturnType<AgentMethods[Name]>>;
};

export const askedAgent = (agent: AgentRpc, workspaceId: string): AskedAgent =>
  new Proxy({} as AskedAgent, {
    get:
      (_, name) =>
      async (...args: unknown[]) =>
        unwrap(await Reflect.apply(Reflect.get(agent, name), agent, [workspaceId, ...args])),
  });
