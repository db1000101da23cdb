import { createRoute, z } from "@hono/zod-openapi";
import { Member } from "../protocol/entity.ts";
import { hasWorkspaceRights } from "../protocol/principal.ts";
import { AddMember } from "../protocol/space.ts";
import { ColloquyError, refuse, unwrap } from "../shared/errors.ts";
import { access } from "./access.ts";
import { createRoutes, workspaceOf } from "./house.ts";
import { idempotently } from "./idempotent.ts";
import { inSpace, spaceAt } from "./in-space.ts";
import { answers, badBody, badRepeat, IdempotencyHeaders, jsonBody, nothing, pathId, problems } from "./route-parts.ts";

const OneMember = z.object({ member: Member });
const tags = ["Spaces"];
const params = z.object({ spaceId: pathId("spc", "the space") });

export const members = createRoutes();

members.openapi(
  createRoute({
    method: "post",
    path: "/v1/spaces/{spaceId}/members",
    tags,
    summary: "Add a member",
    description: "By the workspace or an admin. Adding who is a member already changes nothing.",
    ...access("space"),
    request: { params, headers: IdempotencyHeaders, body: jsonBody(AddMember) },
    responses: {
      201: answers(OneMember, "The member"),
      ...problems("not_found", "unknown_reference", "limit_reached", ...badBody, ...badRepeat),
    },
  }),
  async (context) => {
    const stub = spaceAt(context, context.req.valid("param").spaceId);
    const body = context.req.valid("json");
    const answer = await idempotently(context, { body, schema: OneMember }, async () => ({
      member: await inSpace(context, async (principal) => {
        if (!hasWorkspaceRights(principal)) {
          const seen = await stub.describe(principal);
          return seen.ok ? refuse("forbidden", "Only the workspace's secret key or an admin adds members.") : seen;
        }
        const [entity] = unwrap(await workspaceOf(context).resolve([body.entityId]));
        if (!entity) throw new ColloquyError("unknown_reference", `Not in this workspace: ${body.entityId}.`);
        return stub.addMember(principal, { id: entity.id, name: entity.name, type: entity.type });
      }),
    }));
    return context.json(answer, 201);
  },
);

members.openapi(
  createRoute({
    method: "delete",
    path: "/v1/spaces/{spaceId}/members/{entityId}",
    tags,
    summary: "Remove a member, or leave",
    description: "By the workspace, by an admin, or by the member itself. Its sockets are closed with 4403.",
    ...access("space"),
    request: { params: params.extend({ entityId: pathId("ent", "the member") }) },
    responses: { 204: nothing, ...problems("not_found") },
  }),
  async (context) => {
    const { spaceId, entityId } = context.req.valid("param");
    await inSpace(context, (principal) => spaceAt(context, spaceId).removeMember(principal, entityId));
    return context.body(null, 204);
  },
);
