import * as z from "zod";
import { Member } from "../protocol/entity.ts";
import { spaceId } from "../protocol/ids.ts";
import { makingSpaceMs } from "../protocol/limits.ts";
import { Message } from "../protocol/message.ts";
import { hasWorkspaceRights, type Principal } from "../protocol/principal.ts";
import { AddMember, CreateSpace, maxMembers, Space, SpaceListItem, UpdateSpace } from "../protocol/space.ts";
import { systemClock } from "../shared/clock.ts";
import { ColloquyError, refuse, unwrap } from "../shared/errors.ts";
import { log } from "../shared/log.ts";
import { withTimeout } from "../shared/timeouts.ts";
import { checkModels, checkSends, sendsOf } from "./check-references.ts";
import { type HttpContext, spaceAt, workspaceOf } from "./http-context.ts";
import { actingEntityId, inSpace, mayOwn, requireReaderOf } from "./in-space.ts";
import { pathId, requireIssued } from "./path-parameters.ts";
import { Resource } from "./route.ts";
import { badPage, listOf, onePage, pageQuery } from "./route-parts.ts";

const OneSpace = z.object({ space: Space });
/** A page of spaces asks each of them for its latest, so it is no longer than that may cost. */
const maxSpacesAsked = 50;
/** The most that such a page waits for each of them. */
const latestWaitMs = 2000;

/** A router may name a secret of the workspace together with an address of its own choice. */
const routerForbidden = (): ColloquyError =>
  new ColloquyError("forbidden", "Only an admin or a secret key may set a space's router: leave `router` out.");

const createSpace = async (context: HttpContext, id: string, input: CreateSpace): Promise<Space> => {
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
  if (settings.router) {
    await checkModels(context.env, workspace, { "router.model": settings.router.model });
    await checkSends(principal, workspace, sendsOf({}, { model: settings.router.model }));
  }
  // Nobody learns of somebody, or takes somebody in, by an id alone.
  const visibleTo = hasWorkspaceRights(principal) ? undefined : principal.entityId;
  const entities = entityIds.length === 0 ? [] : unwrap(await workspace.resolve(entityIds, visibleTo));
  if (settings.router || settings.release) requireReaderOf({ ...settings, members: entities }, principal);
  // A secret key is nobody's: what it makes is bounded for its workspace alone.
  const until = systemClock.now() + makingSpaceMs;
  unwrap(await workspace.admitSpace(id, principal.kind === "entity" ? principal.entityId : undefined, until));
  const stub = spaceAt(context, id);
  const refs = entities.map(({ id: entityId, name, type }) => ({ id: entityId, name, type }));
  const creation = await stub.create({ id, workspaceId, settings, members: refs, createdBy, until });
  const isThere = !creation.ok && creation.problem.code === "conflict";
  if (!creation.ok && !isThere) unwrap(await workspace.dismissSpace(id));
  const space = unwrap(isThere ? await stub.describe(principal) : creation);
  // The creator's next list is to hold it, however late the space's own word comes; any word of it is newer.
  const { name, shareOrigin, wakePolicy, confidential, createdAt } = space;
  const facts = { id, workspaceId, name, shareOrigin, wakePolicy, confidential, createdAt };
  const known = { ...facts, version: 0, members: space.members ?? [] };
  unwrap(await workspace.follow({ space: known, createdBy, cursor: 0, deleted: false }));
  return space;
};

/** A space's newest message and how much the caller has not read; neither, where it cannot be reached. */
const withLatest = async (context: HttpContext, principal: Principal, space: Space): Promise<SpaceListItem> => {
  try {
    const latest = await withTimeout(latestWaitMs, spaceAt(context, space.id).latest(principal));
    return latest.ok ? { ...space, ...latest.value } : space;
  } catch (error) {
    log.error("space.unreachable", error, { spaceId: space.id });
    return space;
  }
};

const unlessRefused = (error: unknown): Message[] => {
  if (error instanceof ColloquyError && ["not_found", "forbidden"].includes(error.code)) return [];
  throw error;
};

export const spaces = new Resource("Spaces");

spaces.route("POST /v1/spaces", {
  summary: "Create a space",
  description:
    "Who creates it as an entity is its first member, and takes in whom it shares a space with already; a secret key or an admin takes in anyone. What is said in a `confidential` space stays in it: its agents know nothing of it elsewhere.",
  access: "entity",
  body: CreateSpace,
  idempotent: true,
  status: 201,
  answers: [OneSpace, "The space"],
  problems: ["unknown_reference", "limit_reached", "name_taken"],
  handle: ({ context, body, once }) =>
    once(async (newId) => ({ space: await createSpace(context, newId("spc"), body) })),
});

spaces.route("GET /v1/spaces", {
  summary: "Spaces, newest first",
  description:
    "An entity's own, with its unread count (at most 99) and the newest message; a secret key without X-Entity-Id sees all, without these.",
  access: "entity",
  query: pageQuery(maxSpacesAsked),
  answers: [listOf(SpaceListItem), "A page"],
  problems: badPage,
  handle: async ({ context, principal, query }) => {
    const { entityId } = principal;
    const page = unwrap(await workspaceOf(context).spaces({ ...query, entityId }));
    if (entityId === undefined) return page;
    const items = await Promise.all(page.items.map((space) => withLatest(context, principal, space)));
    return { items, nextCursor: page.nextCursor };
  },
});

spaces.route("GET /v1/needs-you", {
  summary: "What waits for the caller: approvals, forms, choices, agents' questions, mentions and replies",
  description:
    "Messages, oldest first in each space: those that show a call that the person may answer and has not, those by which an agent waits for them, and unread ones that mention them or reply to them. A line's `needsYou` is the same. A page asks `limit` spaces, so one without any item may have a `nextCursor`. With `spaceId`, of that space alone.",
  access: "entity",
  query: pageQuery(maxSpacesAsked).extend({ spaceId: spaceId.optional() }),
  answers: [listOf(Message), "Of a page of spaces"],
  problems: ["not_found", ...badPage],
  handle: async ({ context, principal, query: { spaceId: only, ...query } }) => {
    const entityId = actingEntityId(principal);
    if (only !== undefined) requireIssued(context.var.ids, { spaceId: only });
    const askedIn = (id: string) => inSpace(context, (as) => spaceAt(context, id).asked(as));
    if (only !== undefined) return onePage(await askedIn(only));
    const { items, nextCursor } = unwrap(await workspaceOf(context).spaces({ ...query, entityId }));
    // The workspace's index may be a moment late: of one that they have just left nothing waits for them.
    const asked = items.map(({ id }) => askedIn(id).catch(unlessRefused));
    return { items: (await Promise.all(asked)).flat(), nextCursor };
  },
});

spaces.route("GET /v1/spaces/{spaceId}", {
  summary: "One space, with its members",
  access: "space",
  answers: [OneSpace, "The space"],
  problems: ["not_found"],
  handle: async ({ context, space }) => ({
    space: await inSpace(context, (principal) => space.describe(principal)),
  }),
});

spaces.route("PATCH /v1/spaces/{spaceId}", {
  summary: "Change a space",
  description:
    "By the workspace, by an admin, or by who created it; its `router` by the workspace or an admin alone. In a confidential space its `router` and `release` are set by who reads it, and taken away by any admin; who does not read it is not shown the router. It becomes `confidential` from then on, and never open again.",
  access: "space",
  body: UpdateSpace,
  answers: [OneSpace, "The space"],
  problems: ["not_found", "unknown_reference", "conflict"],
  handle: async ({ context, space, body: changes }) => {
    if (changes.router) {
      if (!(await mayOwn(context))) throw routerForbidden();
      await checkModels(context.env, workspaceOf(context), { "router.model": changes.router.model });
      const before = await inSpace(context, (principal) => space.describe(principal));
      const [now, then] = [changes, before].map(({ router }) => sendsOf({}, { model: router?.model }));
      await checkSends(context.var.principal, workspaceOf(context), now ?? [], then);
    }
    return { space: await inSpace(context, (principal) => space.update(principal, changes)) };
  },
});

spaces.route("DELETE /v1/spaces/{spaceId}", {
  summary: "Delete a space and all that was said in it",
  description:
    "By the workspace, by an admin, or by who created it. Its sockets are closed with 4404. Each agent that ever was in it forgets it: words, name and what waits, in the background. What a model wrote in its own words stays.",
  access: "space",
  problems: ["not_found"],
  handle: ({ context, space }) => inSpace(context, (principal) => space.remove(principal)),
});

spaces.route("POST /v1/spaces/{spaceId}/members", {
  summary: "Add a member",
  description:
    "By the workspace or an admin. Adding who is a member already changes nothing. A name that looks like a member's is refused.",
  access: "space",
  body: AddMember,
  idempotent: true,
  status: 201,
  answers: [z.object({ member: Member }), "The member"],
  problems: ["not_found", "unknown_reference", "limit_reached", "name_taken"],
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

spaces.route("DELETE /v1/spaces/{spaceId}/members/{entityId}", {
  summary: "Remove a member, or leave",
  description: "By the workspace, by an admin, or by the member itself. Its sockets are closed with 4403.",
  access: "space",
  params: { entityId: pathId("ent", "the member") },
  problems: ["not_found"],
  handle: ({ context, space, params }) =>
    inSpace(context, (principal) => space.removeMember(principal, params.entityId)),
});
