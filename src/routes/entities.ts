import * as z from "zod";
import { mintToken } from "../auth/tokens.ts";
import { forgetCredentials, forgetStanding } from "../auth/verdicts.ts";
import { actorOf } from "../protocol/audit.ts";
import { CreateEntity, Entity, EntityType, UpdateEntity } from "../protocol/entity.ts";
import { admitToken } from "../protocol/last-release.ts";
import { hasWorkspaceRights, madeBy, makerOf, type Principal } from "../protocol/principal.ts";
import { CreateToken, Token } from "../protocol/workspace.ts";
import { isoTime, systemClock } from "../shared/clock.ts";
import { ColloquyError, unwrap } from "../shared/errors.ts";
import { agentAt, type HttpContext, workspaceOf } from "./http-context.ts";
import { Resource } from "./route.ts";
import { badPage, listOf, pageQuery } from "./route-parts.ts";

/** An entity as the caller may see it: where else it has an id is its own and the workspace's to know. */
const shownTo =
  (principal: Principal) =>
  ({ externalId, ...entity }: Entity): Entity =>
    externalId !== undefined && (hasWorkspaceRights(principal) || principal.entityId === entity.id)
      ? { ...entity, externalId }
      : entity;

const OneEntity = z.object({ entity: Entity });

/** An entity that the caller may know of: its workspace's rights, itself, or one it shares a space with. */
const visible = async (context: HttpContext, entityId: string): Promise<Entity> => {
  const { principal } = context.var;
  const workspace = workspaceOf(context);
  const mayKnow =
    hasWorkspaceRights(principal) ||
    principal.entityId === entityId ||
    (principal.entityId !== undefined && unwrap(await workspace.shareSpace(principal.entityId, entityId)));
  if (!mayKnow) throw new ColloquyError("not_found", "There is no such entity in this workspace.");
  return shownTo(principal)(unwrap(await workspace.entity(entityId)));
};

/** The entity, for the workspace's rights alone; who may know of it is refused by name. */
const requireRights = async (context: HttpContext, entityId: string): Promise<Entity> => {
  const entity = await visible(context, entityId);
  if (hasWorkspaceRights(context.var.principal)) return entity;
  throw new ColloquyError("forbidden", "Only the workspace's secret key or an entity of role admin may do that.");
};

/** Refuses to change an entity without the workspace's rights, and an agent, which is changed as an agent. */
const requireChangeable = async (context: HttpContext, entityId: string): Promise<Entity> => {
  const entity = await requireRights(context, entityId);
  if (entity.type === "agent") {
    throw new ColloquyError("conflict", `This entity is an agent: use /v1/agents/${entityId}.`);
  }
  return entity;
};

/** By its JWTs a person is itself: an admin who chose them could approve and read as somebody else (C3, C19). */
const requireIdentifying = (principal: Principal, { type, externalId }: Entity, wanted: string | undefined): void => {
  if (principal.kind === "key" || type !== "human" || wanted === undefined || wanted === externalId) return;
  const detail =
    "Only the workspace's secret key changes a person's externalId: it says whose JWTs the person comes by. Leave it out.";
  throw new ColloquyError("forbidden", detail);
};

export const entities = new Resource("Entities");

entities.route("POST /v1/entities", {
  summary: "Create a person or a service",
  access: "workspace",
  body: CreateEntity,
  idempotent: true,
  status: 201,
  answers: [OneEntity, "The entity"],
  problems: ["limit_reached", "conflict", "gone"],
  handle: ({ context, principal, body, once }) =>
    once(async (newId) => ({
      entity: unwrap(await workspaceOf(context).createEntity(newId("ent"), body, actorOf(principal))),
    })),
});

entities.route("GET /v1/entities", {
  summary: "The workspace's entities, oldest first",
  description: "An entity sees itself and those it shares a space with.",
  access: "entity",
  query: pageQuery().extend({ type: EntityType.optional() }),
  answers: [listOf(Entity), "A page"],
  problems: badPage,
  handle: async ({ context, principal, query }) => {
    const visibleTo = hasWorkspaceRights(principal) ? undefined : principal.entityId;
    const { items, nextCursor } = unwrap(await workspaceOf(context).entities({ ...query, visibleTo }));
    return { items: items.map(shownTo(principal)), nextCursor };
  },
});

entities.route("GET /v1/entities/{entityId}", {
  summary: "One entity",
  access: "entity",
  answers: [OneEntity, "The entity"],
  problems: ["not_found"],
  handle: async ({ context, params }) => ({ entity: await visible(context, params.entityId) }),
});

entities.route("PATCH /v1/entities/{entityId}", {
  summary: "Change a person or a service",
  description:
    "A new name is carried to all its spaces. A person's `externalId` is changed by a secret key alone: it says whose JWTs the person comes by.",
  access: "entity",
  body: UpdateEntity,
  answers: [OneEntity, "The entity"],
  problems: ["not_found", "conflict", "name_taken"],
  handle: async ({ context, principal, workspaceId, params: { entityId }, body }) => {
    requireIdentifying(principal, await requireChangeable(context, entityId), body.externalId);
    const entity = unwrap(await workspaceOf(context).updateEntity(entityId, body, actorOf(principal)));
    forgetStanding(workspaceId, entityId);
    if (body.role !== undefined || body.externalId !== undefined) forgetCredentials(workspaceId);
    return { entity };
  },
});

entities.route("DELETE /v1/entities/{entityId}", {
  summary: "Remove a person or a service",
  description: "It leaves all its spaces, and its tokens stop as by a sign-out; its messages stay.",
  access: "entity",
  problems: ["not_found", "conflict"],
  handle: async ({ context, principal, workspaceId, params: { entityId } }) => {
    await requireChangeable(context, entityId);
    unwrap(await workspaceOf(context).removeEntity(entityId, actorOf(principal)));
    forgetStanding(workspaceId, entityId);
    forgetCredentials(workspaceId);
  },
});

entities.route("POST /v1/entities/{entityId}/sign-out", {
  summary: "Sign a person, a service or a guest agent out everywhere",
  description:
    "All its tokens, sessions and unused sign-in links end, and those that it made for others: at once here and within 60 s everywhere. Its sockets close within a second. By itself, an admin or a secret key.",
  access: "entity",
  scope: "tokens",
  problems: ["not_found", "conflict"],
  handle: async ({ context, workspaceId, principal, params: { entityId } }) => {
    if (principal.entityId !== entityId) await requireRights(context, entityId);
    unwrap(await workspaceOf(context).signOut(entityId, actorOf(principal)));
    forgetCredentials(workspaceId);
  },
});

/** Whether it is an agent that a program from outside thinks for. */
const isGuest = async (context: HttpContext, entityId: string): Promise<boolean> => {
  if (!context.get("ids").isIssued("ent", entityId)) return false;
  const agent = await agentAt(context, entityId).describe(context.var.principal.workspaceId);
  return agent.ok && agent.value.config.runtime === "guest";
};

entities.route("POST /v1/tokens", {
  summary: "Mint a token for a person, a service or a guest agent",
  description:
    "A guest agent's token is for its runs alone. A token that an admin mints for another entity is impersonated: it may do all but answer approvals, unless the workspace's `impersonatedApprovals` allows that. A secret key's tokens are the entity's own. A token ends before its time with the key or the admin that made it, and when its entity signs out everywhere.",
  access: "workspace",
  scope: "tokens",
  body: CreateToken,
  status: 201,
  answers: [Token, "The token"],
  problems: ["unknown_reference"],
  handle: async ({ context, workspaceId, principal, body: { entityId, expiresInSeconds } }) => {
    const admit = (guest?: boolean) =>
      admitToken(workspaceOf(context), entityId, makerOf(principal), actorOf(principal), guest);
    const admitted = await admit();
    const guest = !admitted.ok && admitted.problem.code === "unknown_reference" && (await isGuest(context, entityId));
    const { generation } = unwrap(guest ? await admit(true) : admitted);
    const issuedAt = systemClock.now();
    const expiresAt = issuedAt + expiresInSeconds * 1000;
    const claims = {
      workspaceId,
      entityId,
      generation,
      issuedAt,
      expiresAt,
      ...madeBy(principal, entityId),
      ...(guest && { guest }),
    };
    const token = await mintToken(context.env, claims);
    return { token, expiresAt: isoTime(expiresAt) };
  },
});
