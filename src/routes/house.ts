import { OpenAPIHono } from "@hono/zod-openapi";
import type { Context } from "hono";
import type { Principal } from "../protocol/principal.ts";
import type { WorkspaceRpc } from "../protocol/rpc.ts";
import type { Env } from "../shared/env.ts";
import type { Ids } from "../shared/ids.ts";
import { answerInvalid } from "./problems.ts";

/** What every handler finds: the bindings, this deployment's ids and, past `access`, who is calling. */
export type House = { Bindings: Env; Variables: { ids: Ids; principal: Principal } };

/** A resource's routes. What does not fit their schemas is answered as a problem document. */
export const createRoutes = (): OpenAPIHono<House> => new OpenAPIHono<House>({ defaultHook: answerInvalid });

/** The caller's own workspace. */
export const workspaceOf = (context: Context<House>): WorkspaceRpc =>
  context.env.WORKSPACE.getByName(context.var.principal.workspaceId);
