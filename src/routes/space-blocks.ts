import type { BlockPrincipal } from "../protocol/agent-rpc.ts";
import { Block, BlockChange, BlockDetail, EditedBlock, EditSpaceBlock } from "../protocol/block.ts";
import type { Member } from "../protocol/entity.ts";
import type { Space } from "../protocol/space.ts";
import { ColloquyError, unwrap } from "../shared/errors.ts";
import { compartmentId } from "../shared/ids.ts";
import { log } from "../shared/log.ts";
import { blockStream, versionQuery } from "./blocks.ts";
import { type AskedAgent, agentAt, askedAgent, type HttpContext, spaceAt } from "./http-context.ts";
import { callIdOf } from "./idempotent.ts";
import { actingEntityId, inSpace, requireParticipant, requireReaderOf } from "./in-space.ts";
import { noteLook } from "./mind-query.ts";
import { pathId, pathLabel } from "./path-parameters.ts";
import { Resource } from "./route.ts";
import { badPage, listOf, onePage, pageQuery, streamQuery } from "./route-parts.ts";
import { requireUpgrade } from "./stream.ts";

const params = {
  agentId: pathId("ent", "the agent whose block it is"),
  label: pathLabel("The block's label", "shopping"),
};

/** A space with its members, for who may read it. */
const spaceFor = async (context: HttpContext, spaceId: string, isFollowed = false) => {
  const space = await inSpace(context, (principal) => spaceAt(context, spaceId).describe(principal, isFollowed));
  requireReaderOf(space, context.var.principal);
  return { ...space, members: space.members ?? [] };
};

/** The objects with the blocks of an agent that a space may see. Of two of one label, that of its own compartment counts. */
const mindsOf = (context: HttpContext, { id: spaceId, confidential }: Space, agentId: string): string[] =>
  confidential ? [compartmentId(context.get("ids"), agentId, spaceId), agentId] : [agentId];

type Address = { spaceId: string; agentId: string; label: string };

/** The space, where both the agent and the caller are in it: to others, there is no such block. `mindId`: who has the block. */
const spaceWith = async (context: HttpContext, { spaceId, agentId, label }: Address, isFollowed = false) => {
  const space = await spaceFor(context, spaceId, isFollowed);
  if (!space.members.some(({ id, type }) => id === agentId && type === "agent")) {
    throw new ColloquyError("not_found", "There is no such agent in this space.");
  }
  const { workspaceId } = context.var.principal;
  const [first = agentId, ...others] = mindsOf(context, space, agentId);
  const inside =
    others.length === 0 ? undefined : await agentAt(context, first).block(workspaceId, label, undefined, spaceId);
  // Open only if the compartment says it has no such block: words for it go to no open block of that label (C17).
  if (inside?.ok === false && inside.problem.code !== "not_found") unwrap(inside);
  const mindId = inside?.ok === false ? agentId : first;
  const mind: AskedAgent = askedAgent(agentAt(context, mindId), workspaceId);
  return { space, mind, mindId };
};

/** The caller as a member of the space. */
const actorAmong = (context: HttpContext, { members }: { members: Member[] }): { author: string; name: string } => {
  const id = actingEntityId(context.var.principal);
  const member = members.find((each) => each.id === id);
  if (!member) throw new ColloquyError("forbidden", "Only the members of a space use its blocks.");
  return { author: `human:${id}`, name: member.name };
};

/** An admin who is not in the space reads what an agent keeps, as by the agent's own address. */
const noteLooks = async (context: HttpContext, space: { members: Member[] }, agentIds: string[]): Promise<void> => {
  if (space.members.some(({ id }) => id === context.var.principal.entityId)) return;
  for (const id of new Set(agentIds)) await noteLook(context, id);
};

/** The blocks that agents share with the people of a space. */
export const spaceBlocks = new Resource("Blocks");

spaceBlocks.route("GET /v1/spaces/{spaceId}/blocks", {
  summary: "The blocks that agents share with a space",
  description: "By agent and label; `permission` is that of the space's people. An agent out of reach is left out.",
  access: "space",
  answers: [listOf(Block), "All of them"],
  problems: ["not_found"],
  handle: async ({ context, workspaceId, params: { spaceId } }) => {
    const space = await spaceFor(context, spaceId);
    const agents = space.members.filter(({ type }) => type === "agent");
    const minds = agents.flatMap(({ id }) => mindsOf(context, space, id));
    const asked = await Promise.allSettled(
      minds.map(async (id) => {
        const answer = await agentAt(context, id).spaceBlocks(workspaceId, spaceId);
        // A compartment begins with what is said first.
        return space.confidential && !answer.ok && answer.problem.code === "not_found" ? [] : unwrap(answer);
      }),
    );
    const items = asked.flatMap((one) => {
      if (one.status === "fulfilled") return one.value;
      log.warn("space-blocks.unreachable", { reason: String(one.reason) });
      return [];
    });
    const owners = items.flatMap(({ sharedFrom }) => sharedFrom?.agentId ?? []);
    await noteLooks(context, space, owners);
    const byName = Map.groupBy(items, ({ sharedFrom, label }) => `${sharedFrom?.agentId} ${label}`);
    return onePage([...byName.values()].flatMap(([first]) => first ?? []));
  },
});

spaceBlocks.route("GET /v1/spaces/{spaceId}/agents/{agentId}/blocks/{label}", {
  summary: "One block that is shared with a space, now or at an earlier version",
  access: "space",
  params,
  query: versionQuery,
  answers: [BlockDetail, "The block"],
  problems: ["not_found", "invalid_request"],
  handle: async ({ context, params, query }) => {
    const { space, mind } = await spaceWith(context, params);
    const block = await mind.block(params.label, query.version, params.spaceId);
    await noteLooks(context, space, [params.agentId]);
    return block;
  },
});

spaceBlocks.route("POST /v1/spaces/{spaceId}/agents/{agentId}/blocks/{label}/operations", {
  summary: "Edit a block that is shared with a space: all operations or none",
  description:
    "As a member of the space, with the permission that its people have. With `onVersion` the edit merges with what came after that version. In a confidential space a block that is read outside of it is refused, unless it says `confidential: allowed`.",
  access: "space",
  params,
  body: EditSpaceBlock,
  idempotent: true,
  answers: [EditedBlock, "What it holds now"],
  problems: ["not_found", "edit_refused", "text_too_long", "limit_reached", "conflict"],
  handle: async ({ context, params, body, once }) => {
    await requireParticipant(context);
    const { space, mind } = await spaceWith(context, params);
    const confidential = space.confidential === true;
    const by: BlockPrincipal = { kind: "person", spaceId: space.id, confidential, ...actorAmong(context, space) };
    return once(async (newId) => {
      const callId = callIdOf(context, newId);
      return mind.editSharedBlock(params.label, { ...body, by, callId });
    });
  },
});

spaceBlocks.route("GET /v1/spaces/{spaceId}/agents/{agentId}/blocks/{label}/history", {
  summary: "Such a block's versions, newest first, with who made them",
  access: "space",
  params,
  query: pageQuery(),
  answers: [listOf(BlockChange), "A page"],
  problems: ["not_found", ...badPage],
  handle: async ({ context, params, query }) => {
    const { space, mind } = await spaceWith(context, params);
    const history = await mind.blockHistory(params.label, query, params.spaceId);
    await noteLooks(context, space, [params.agentId]);
    return history;
  },
});

spaceBlocks.route("GET /v1/spaces/{spaceId}/agents/{agentId}/blocks/{label}/stream", {
  summary: "Such a block's changes over WebSocket, as they are stored",
  description:
    "The frames are those of `GET /v1/agents/{agentId}/blocks/{label}/stream`. Who leaves the space is closed with 4403, as is everybody once the block is not shared with it any more.",
  access: "stream",
  params,
  query: streamQuery,
  responses: { 101: { description: "The socket" } },
  problems: ["not_found", "upgrade_required", "acting_entity_required", "invalid_request"],
  handle: async ({ context, params }) => {
    requireUpgrade(context, "read the block again");
    await requireParticipant(context);
    const { space, mindId } = await spaceWith(context, params, true);
    actorAmong(context, space);
    return blockStream(context, { ...params, agentId: mindId });
  },
});
