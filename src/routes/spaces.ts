import { createRoute, z } from "@hono/zod-openapi";
import type { Context } from "hono";
import { hasWorkspaceRights, type Principal } from "../protocol/principal.ts";
import { CreateSpace, maxMembers, Space, SpaceListItem, UpdateSpace } from "../protocol/space.ts";
import { ColloquyError, unwrap } from "../shared/errors.ts";
import { log } from "../shared/log.ts";
import { inTime } from "../shared/within.ts";
import { access } from "./access.ts";
import { createRoutes, type House, workspaceOf } from "./house.ts";
import { idempotently } from "./idempotent.ts";
import { inSpace, mayOwn, spaceAt } from "./in-space.ts";
import { checkModel } from "./model-check.ts";
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

const OneSpace = z.object({ space: Space });
const tags = ["Spaces"];
const path = "/v1/spaces/{spaceId}";
const params = z.object({ spaceId: pathId("spc", "the space") });
/** A page of spaces asks each of them for its latest, so it is no longer than that may cost. */
const maxSpacesAsked = 50;
/** How long such a page waits for each of them. */
const latestWaitMs = 2000;

/** A router may name a secret of the workspace together with an address of its own choice. */
const routerForbidden = (): ColloquyError =>
  new ColloquyError("forbidden", "Only an admin or a secret key may set a space's router: leave `router` out.");

const createSpace = async (context: Context<House>, id: string, input: CreateSpace): Promise<Space> => {
  const { principal } = context.var;
  const { workspaceId, entityId: createdBy } = principal;
  const { members, ...settings } = input;
  if (settings.router && !hasWorkspaceRights(principal)) throw routerForbidden();
  const entityIds = [
    ...new Set([...(createdBy === undefined ? [] : [createdBy]), ...members.map((one) => one.entityId)]),
  ];
  if (entityIds.length > maxMembers) {
    throw new ColloquyError("limit_reached", `A space has at most ${maxMembers} members (maxMembers).`);
  }
  const workspace = workspaceOf(context);
  if (settings.router) await checkModel(context.env, workspace, settings.router.model, "router.model");
  // Nobody learns of somebody, or takes somebody in, by an id alone.
  const visibleTo = hasWorkspaceRights(principal) ? undefined : principal.entityId;
  const entities = entityIds.length === 0 ? [] : unwrap(await workspace.resolve(entityIds, visibleTo));
  unwrap(await workspace.admitSpace(id));
  const stub = spaceAt(context, id);
  const refs = entities.map(({ id: entityId, name, type }) => ({ id: entityId, name, type }));
  const creation = await stub.create({ id, workspaceId, settings, members: refs, createdBy });
  const isThere = !creation.ok && creation.problem.code === "conflict";
  const space = unwrap(isThere ? await stub.describe(principal) : creation);
  // The creator's next list is to hold it, however late the space's own word comes; any word of it is newer.
  const { name, shareOrigin, wakePolicy, createdAt } = space;
  const known = { id, workspaceId, name, shareOrigin, wakePolicy, createdAt, version: 0, members: space.members ?? [] };
  unwrap(await workspace.follow({ space: known, createdBy, cursor: 0, deleted: false }));
  return space;
};

/** A space's newest message and how much the caller has not read; neither, where it cannot be reached. */
const withLatest = async (context: Context<House>, principal: Principal, space: Space): Promise<SpaceListItem> => {
  try {
    const latest = await inTime(latestWaitMs, spaceAt(context, space.id).latest(principal));
    return latest.ok ? { ...space, ...latest.value } : space;
  } catch (error) {
    log.error("space.unreachable", error, { spaceId: space.id });
    return space;
  }
};

export const spaces = createRoutes();

spaces.openapi(
  createRoute({
    method: "post",
    path: "/v1/spaces",
    tags,
    summary: "Create a space",
    description:
      "Who creates it as an entity is its first member, and takes in whom it shares a space with already; a secret key or an admin takes in anyone.",
    ...access("entity"),
    request: { headers: IdempotencyHeaders, body: jsonBody(CreateSpace) },
    responses: {
      201: answers(OneSpace, "The space"),
      ...problems("unknown_reference", "limit_reached", ...badBody, ...badRepeat),
    },
  }),
  async (context) => {
    const body = context.req.valid("json");
    const answer = await idempotently(context, { body, schema: OneSpace }, async (newId) => ({
      space: await createSpace(context, newId("spc"), body),
    }));
    return context.json(answer, 201);
  },
);

spaces.openapi(
  createRoute({
    method: "get",
    path: "/v1/spaces",
    tags,
    summary: "Spaces, newest first",
    description:
      "An entity's own, with its unread count (at most 99) and the newest message; a secret key without X-Entity-Id sees all, without these.",
    ...access("entity"),
    request: { query: pageQuery(maxSpacesAsked) },
    responses: { 200: answers(listOf(SpaceListItem), "A page"), ...problems("invalid_request", "invalid_cursor") },
  }),
  async (context) => {
    const { principal } = context.var;
    const { entityId } = principal;
    const page = unwrap(await workspaceOf(context).spaces({ ...context.req.valid("query"), entityId }));
    const items =
      entityId === undefined
        ? page.items
        : await Promise.all(page.items.map((space) => withLatest(context, principal, space)));
    return context.json({ items, nextCursor: page.nextCursor }, 200);
  },
);

spaces.openapi(
  createRoute({
    method: "get",
    path,
    tags,
    summary: "One space, with its members",
    ...access("space"),
    request: { params },
    responses: { 200: answers(OneSpace, "The space"), ...problems("not_found") },
  }),
  async (context) => {
    const stub = spaceAt(context, context.req.valid("param").spaceId);
    return context.json({ space: await inSpace(context, (principal) => stub.describe(principal)) }, 200);
  },
);

spaces.openapi(
  createRoute({
    method: "patch",
    path,
    tags,
    summary: "Change a space",
    description:
      "By the workspace, by an admin, or by who created it; its `router` by the workspace or an admin alone.",
    ...access("space"),
    request: { params, body: jsonBody(UpdateSpace) },
    responses: { 200: answers(OneSpace, "The space"), ...problems("not_found", "unknown_reference", ...badBody) },
  }),
  async (context) => {
    const stub = spaceAt(context, context.req.valid("param").spaceId);
    const changes = context.req.valid("json");
    if (changes.router) {
      if (!(await mayOwn(context))) throw routerForbidden();
      await checkModel(context.env, workspaceOf(context), changes.router.model, "router.model");
    }
    return context.json({ space: await inSpace(context, (principal) => stub.update(principal, changes)) }, 200);
  },
);

spaces.openapi(
  createRoute({
    method: "delete",
    path,
    tags,
    summary: "Delete a space and all that was said in it",
    description: "By the workspace or an admin. Its sockets are closed with 4404.",
    ...access("space"),
    request: { params },
    responses: { 204: nothing, ...problems("not_found") },
  }),
  async (context) => {
    const stub = spaceAt(context, context.req.valid("param").spaceId);
    await inSpace(context, (principal) => stub.remove(principal));
    return context.body(null, 204);
  },
);
