import { z } from "zod";
import { Member } from "../protocol/entity.ts";
import { hasWorkspaceRights } from "../protocol/principal.ts";
import { AddMember } from "../protocol/space.ts";
import { ColloquyError, refuse, unwrap } from "../shared/errors.ts";
import { workspaceOf } from "./http-context.ts";
import { inSpace } from "./in-space.ts";
import { pathId } from "./path-parameters.ts";
import { Resource } from "./route.ts";

export const members = new Resource("Spaces");

members.route("POST /v1/spaces/{spaceId}/members", {
  summary: "Add a member",
  description: "By the workspace or an admin. Adding who is a member already changes nothing.",
  access: "space",
  body: AddMember,
  idempotent: true,
  status: 201,
  answers: [z.object({ member: Member }), "The member"],
  problems: ["not_found", "unknown_reference", "limit_reached"],
  handle: ({ context, space, body, once }) =>
    once(async () => ({
      member: await inSpace(context, async (principal) => {
        if (!hasWorkspaceRights(principal)) {
          const seen = await space.describe(principal);
          return seen.ok ? refuse("forbidden", "Only the workspace's secret key or an admin adds members.") : seen;
        }
        const [entity] = unwrap(await workspaceOf(context).resolve([body.entityId]));
        if (!entity) throw new ColloquyError("unknown_reference", `Not in this workspace: ${body.entityId}.`);
        return space.addMember(principal, { id: entity.id, name: entity.name, type: entity.type });
      }),
    })),
});

members.route("DELETE /v1/spaces/{spaceId}/members/{entityId}", {
  summary: "Remove a member, or leave",
  description: "By the workspace, by an admin, or by the member itself. Its sockets are closed with 4403.",
  access: "space",
  params: { entityId: pathId("ent", "the member") },
  problems: ["not_found"],
  handle: ({ context, space, params }) =>
    inSpace(context, (principal) => space.removeMember(principal, params.entityId)),
});
