import { Reseal } from "../protocol/workspace.ts";
import { unwrap } from "../shared/errors.ts";
import type { HttpContext } from "./http-context.ts";
import { Resource } from "./route.ts";

/** What the operator does after a rotation of the deployment's secrets, workspace by workspace. */
export const resealing = new Resource("Operator");

const workspaceAt = ({ env }: HttpContext, workspaceId: string) => env.WORKSPACE.getByName(workspaceId);

resealing.route("POST /v1/operator/workspaces/{workspaceId}/reseal", {
  summary: "Have what a workspace has sealed sealed by the first secret",
  description:
    "Its secrets, its agents' copies of them, their hooks' secrets and the kept answers that hold one, by a job that goes on after any crash. While one is under way it is answered as it is.",
  access: "operator",
  status: 202,
  answers: [Reseal, "How far it is"],
  problems: ["not_found"],
  handle: async ({ context, params }) => unwrap(await workspaceAt(context, params.workspaceId).beginReseal()),
});

resealing.route("GET /v1/operator/workspaces/{workspaceId}/reseal", {
  summary: "What of a workspace hangs on a secret that is not the first",
  access: "operator",
  answers: [Reseal, "How far it is"],
  problems: ["not_found"],
  handle: async ({ context, params }) => unwrap(await workspaceAt(context, params.workspaceId).reseal()),
});
