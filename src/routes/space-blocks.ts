import type { BlockPrincipal } from "../protocol/agent-rpc.ts";
import { Block, BlockChange, BlockDetail, EditedBlock, EditSpaceBlock } from "../protocol/block.ts";
import type { Member } from "../protocol/entity.ts";
import { ColloquyError, unwrap } from "../shared/errors.ts";
import { log } from "../shared/log.ts";
import { blockStream, versionQuery } from "./blocks.ts";
import { agentAt, type HttpContext, spaceAt } from "./http-context.ts";
import { callIdOf } from "./idempotent.ts";
import { actingEntityId, inSpace, requireParticipant, requireReaderOf } from "./in-space.ts";
import { pathId, pathLabel } from "./path-parameters.ts";
import { Resource } from "./route.ts";
import { badPage, listOf, onePage, pageQuery, streamQuery } from "./route-parts.ts";
import { requireUpgrade } from "./stream.ts";

const params = {
  agentId: pathId("ent", "the agent whose block it is"),
  label: pathLabel("The block's label", "shopping"),
};

/** The members of a space, for who may read it. */
const membersOf = async (context: HttpContext, spaceId: string): Promise<Member[]> => {
  const space = await inSpace(context, (principal) => spaceAt(context, spaceId).describe(principal));
  requireReaderOf(space, context.var.principal);
  return space.members ?? [];
};

/** The space's members, where both the agent and the caller are among them: to others, there is no such block. */
const membersWith = async (
  context: HttpContext,
  { spaceId, agentId }: { spaceId: string; agentId: string },
): Promise<Member[]> => {
  const members = await membersOf(context, spaceId);
  if (members.some(({ id, type }) => id === agentId && type === "agent")) return members;
  throw new ColloquyError("not_found", "There is no such agent in this space.");
};

/** The caller as a member of the space. */
const actorAmong = (context: HttpContext, members: Member[]): { author: string; name: string } => {
  const id = actingEntityId(context.var.principal);
  const member = members.find((each) => each.id === id);
  if (!member) throw new ColloquyError("forbidden", "Only the members of a space use its blocks.");
  return { author: `human:${id}`, name: member.name };
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
    const agents = (await membersOf(context, spaceId)).filter(({ type }) => type === "agent");
    const asked = await Promise.allSettled(
      agents.map(async ({ id }) => unwrap(await agentAt(context, id).spaceBlocks(workspaceId, spaceId))),
    );
    const items = asked.flatMap((one) => {
      if (one.status === "fulfilled") return one.value;
      log.warn("space-blocks.unreachable", { reason: String(one.reason) });
      return [];
    });
    return onePage(items);
  },
});

spaceBlocks.route("GET /v1/spaces/{spaceId}/agents/{agentId}/blocks/{label}", {
  summary: "One block that is shared with a space, now or at an earlier version",
  access: "space",
  params,
  query: versionQuery,
  answers: [BlockDetail, "The block"],
  problems: ["not_found", "invalid_request"],
  handle: async ({ context, agent, params, query }) => {
    await membersWith(context, params);
    return agent.block(params.label, query.version, params.spaceId);
  },
});

spaceBlocks.route("POST /v1/spaces/{spaceId}/agents/{agentId}/blocks/{label}/operations", {
  summary: "Edit a block that is shared with a space: all operations or none",
  description:
    "As a member of the space, with the permission that its people have. With `onVersion` the edit merges with what came after that version.",
  access: "space",
  params,
  body: EditSpaceBlock,
  idempotent: true,
  answers: [EditedBlock, "What it holds now"],
  problems: ["not_found", "edit_refused", "text_too_long", "limit_reached", "conflict"],
  handle: async ({ context, agent, params, body, once }) => {
    await requireParticipant(context);
    const actor = actorAmong(context, await membersWith(context, params));
    const by: BlockPrincipal = { kind: "person", spaceId: params.spaceId, ...actor };
    return once(async (newId) => {
      const callId = callIdOf(context, newId);
      return agent.editSharedBlock(params.label, { ...body, by, callId });
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
  handle: async ({ context, agent, params, query }) => {
    await membersWith(context, params);
    return agent.blockHistory(params.label, query, params.spaceId);
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
    actorAmong(context, await membersWith(context, params));
    return blockStream(context, params);
  },
});
