import * as z from "zod";
import { LimitsInUse, SetLimits } from "../protocol/limits.ts";
import type { WorkspaceRpc } from "../protocol/rpc.ts";
import { RegisteredWorkspace, SuspendWorkspace, WorkspaceOverview } from "../protocol/workspace.ts";
import { unwrap } from "../shared/errors.ts";
import type { HttpContext } from "./http-context.ts";
import { Resource } from "./route.ts";
import { badPage, listOf, pageQuery } from "./route-parts.ts";

const OneOverview = z.object({ workspace: WorkspaceOverview });

const at = ({ env }: HttpContext, workspaceId: string): WorkspaceRpc => env.WORKSPACE.getByName(workspaceId);

/** The operator runs the deployment. It may manage workspaces, and sees nothing that is in them. */
export const operator = new Resource("Operator");

operator.route("GET /v1/operator/workspaces", {
  summary: "The deployment's workspaces, newest first",
  description:
    "One that was made before 2026-11-24 is in the list once it is renamed, or suspended and resumed by its id. A change is in the list within seconds.",
  access: "operator",
  query: pageQuery(),
  answers: [listOf(RegisteredWorkspace), "A page"],
  problems: badPage,
  handle: async ({ context: { env }, query }) => unwrap(await env.WORKSPACE.getByName("registry").registered(query)),
});

operator.route("GET /v1/operator/workspaces/{workspaceId}", {
  summary: "One workspace, as it is now",
  access: "operator",
  answers: [OneOverview, "The workspace"],
  problems: ["not_found"],
  handle: async ({ context, params }) => ({ workspace: unwrap(await at(context, params.workspaceId).overview()) }),
});

operator.route("POST /v1/operator/workspaces/{workspaceId}/suspend", {
  summary: "Suspend a workspace",
  description:
    "Posts, triggers, webhooks and all that would be made or changed answer `suspended`. Sockets close with 4503, agents sleep and their plans wait. It can be read, and keys, sessions and people can be taken away. At once here, and then in each space and agent: `waiting` says how many are not told yet.",
  access: "operator",
  body: SuspendWorkspace,
  answers: [OneOverview, "The workspace"],
  problems: ["not_found"],
  handle: async ({ context, params, body }) => ({
    workspace: unwrap(await at(context, params.workspaceId).suspend(body.reason)),
  }),
});

operator.route("POST /v1/operator/workspaces/{workspaceId}/resume", {
  summary: "Resume a suspended workspace",
  description: "Runs that were cut go on, and a plan whose time has passed fires once.",
  access: "operator",
  answers: [OneOverview, "The workspace"],
  problems: ["not_found"],
  handle: async ({ context, params }) => ({
    workspace: unwrap(await at(context, params.workspaceId).suspend(null)),
  }),
});

operator.route("DELETE /v1/operator/workspaces/{workspaceId}", {
  summary: "End a suspended workspace",
  description:
    "Its keys and tokens stop, and each of its spaces and agents is ended by a job: `waiting` says how many are left. It cannot be taken back.",
  access: "operator",
  status: 202,
  answers: [OneOverview, "The workspace, as it ends"],
  problems: ["not_found", "conflict"],
  handle: async ({ context, params }) => ({ workspace: unwrap(await at(context, params.workspaceId).end()) }),
});

const limitsOf = "/v1/operator/workspaces/{workspaceId}/limits";

operator.route(`GET ${limitsOf}`, {
  summary: "What a workspace may use, and what it uses",
  access: "operator",
  answers: [LimitsInUse, "The limits"],
  problems: ["not_found"],
  handle: async ({ context, params: { workspaceId } }) => unwrap(await at(context, workspaceId).limits()),
});

operator.route(`PUT ${limitsOf}`, {
  summary: "Set what a workspace may use",
  description:
    "In place of all limits before: what is left out is bounded by the deployment's own bounds alone. A limit below what is used is a `conflict` that names it, and nothing is set. With `force` it is set all the same: nothing is taken away, and what is new is refused. What would exceed a limit is answered by `limit_reached` with the limit's name and what is used.",
  access: "operator",
  body: SetLimits,
  answers: [LimitsInUse, "The limits"],
  problems: ["not_found", "conflict"],
  handle: async ({ context, params: { workspaceId }, body }) => unwrap(await at(context, workspaceId).setLimits(body)),
});
