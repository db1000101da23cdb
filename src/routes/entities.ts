import { createRoute, z } from "@hono/zod-openapi";
import type { Context } from "hono";
import { forgetStanding } from "../auth/verdicts.ts";
import { CreateEntity, Entity, EntityType, UpdateEntity } from "../protocol/entity.ts";
import { hasWorkspaceRights } from "../protocol/principal.ts";
import { ColloquyError, unwrap } from "../shared/errors.ts";
import { access } from "./access.ts";
import { createRoutes, type House, workspaceOf } from "./house.ts";
import { idempotently } from "./idempotent.ts";
import {
  answers,
  badBody,
  badRepeat,
  IdempotencyHeaders,
  jsonBody,
  listOf,
  nothing,
  pageQuery,
  pathId,
  problems,
} from "./route-parts.ts";

const OneEntity = z.object({ entity: Entity });
const tags = ["Entities"];
const path = "/v1/entities/{entityId}";
const params = z.object({ entityId: pathId("ent", "the entity") });

/** An entity that the caller may know of: its workspace's rights, itself, or one it shares a space with. */
const visible = async (context: Context<House>, entityId: string): Promise<Entity> => {
  const { principal } = context.var;
  const workspace = workspaceOf(context);
  const mayKnow =
    hasWorkspaceRights(principal) ||
    principal.entityId === entityId ||
    (principal.entityId !== undefined && unwrap(await workspace.shareSpace(principal.entityId, entityId)));
  if (!mayKnow) throw new ColloquyError("not_found", "There is no such entity in this workspace.");
  return unwrap(await workspace.entity(entityId));
};

/** Changing is for the workspace's rights only; an agent is changed as an agent. */
const changeable = async (context: Context<House>, entityId: string): Promise<Entity> => {
  const entity = await visible(context, entityId);
  if (!hasWorkspaceRights(context.var.principal)) {
    throw new ColloquyError("forbidden", "Only the workspace's secret key or an entity of role admin may do that.");
  }
  if (entity.type === "agent") {
    throw new ColloquyError("conflict", `This entity is an agent: use /v1/agents/${entityId}.`);
  }
  return entity;
};

export const entities = createRoutes();

entities.openapi(
  createRoute({
    method: "post",
    path: "/v1/entities",
    tags,
    summary: "Create a person or a service",
    ...access("workspace"),
    request: { headers: IdempotencyHeaders, body: jsonBody(CreateEntity) },
    responses: { 201: answers(OneEntity, "The entity"), ...problems("limit_reached", ...badBody, ...badRepeat) },
  }),
  async (context) => {
    const body = context.req.valid("json");
    const answer = await idempotently(context, { body, schema: OneEntity }, async (newId) => ({
      entity: unwrap(await workspaceOf(context).createEntity(newId("ent"), body)),
    }));
    return context.json(answer, 201);
  },
);

entities.openapi(
  createRoute({
    method: "get",
    path: "/v1/entities",
    tags,
    summary: "The workspace's entities, oldest first",
    description: "An entity sees itself and those it shares a space with.",
    ...access("entity"),
    request: { query: pageQuery().extend({ type: EntityType.optional() }) },
    responses: { 200: answers(listOf(Entity), "A page"), ...problems("invalid_request", "invalid_cursor") },
  }),
  async (context) => {
    const { principal } = context.var;
    const visibleTo = hasWorkspaceRights(principal) ? undefined : principal.entityId;
    const page = await workspaceOf(context).entities({ ...context.req.valid("query"), visibleTo });
    return context.json(unwrap(page), 200);
  },
);

entities.openapi(
  createRoute({
    method: "get",
    path,
    tags,
    summary: "One entity",
    ...access("entity"),
    request: { params },
    responses: { 200: answers(OneEntity, "The entity"), ...problems("not_found") },
  }),
  async (context) => context.json({ entity: await visible(context, context.req.valid("param").entityId) }, 200),
);

entities.openapi(
  createRoute({
    method: "patch",
    path,
    tags,
    summary: "Change a person or a service",
    description: "A new name is carried to all its spaces.",
    ...access("entity"),
    request: { params, body: jsonBody(UpdateEntity) },
    responses: { 200: answers(OneEntity, "The entity"), ...problems("not_found", "conflict", ...badBody) },
  }),
  async (context) => {
    const { id } = await changeable(context, context.req.valid("param").entityId);
    const entity = unwrap(await workspaceOf(context).updateEntity(id, context.req.valid("json")));
    forgetStanding(context.var.principal.workspaceId, id);
    return context.json({ entity }, 200);
  },
);

entities.openapi(
  createRoute({
    method: "delete",
    path,
    tags,
    summary: "Remove a person or a service",
    description: "It leaves all its spaces and its tokens stop; its messages stay.",
    ...access("entity"),
    request: { params },
    responses: { 204: nothing, ...problems("not_found", "conflict") },
  }),
  async (context) => {
    const { id } = await changeable(context, context.req.valid("param").entityId);
    unwrap(await workspaceOf(context).removeEntity(id));
    forgetStanding(context.var.principal.workspaceId, id);
    return context.body(null, 204);
  },
);
