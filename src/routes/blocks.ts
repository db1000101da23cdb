import * as z from "zod";
import type { BlockGrant } from "../protocol/agent-rpc.ts";
import {
  Block,
  BlockChange,
  BlockDetail,
  BlockShare,
  BlockSpace,
  BlockType,
  CreateBlock,
  EditBlock,
  EditedBlock,
  PutBlockShare,
  PutBlockSpace,
  UpdateBlock,
} from "../protocol/block.ts";
import { ColloquyError, unwrap } from "../shared/errors.ts";
import { checkPartner } from "./check-references.ts";
import { type HttpContext, workspaceOf } from "./http-context.ts";
import { callIdOf } from "./idempotent.ts";
import { asReaderOfAll } from "./in-space.ts";
import { noteLook } from "./mind-query.ts";
import { Resource } from "./route.ts";
import { badPage, listOf, onePage, pageQuery, queryNumber, streamQuery } from "./route-parts.ts";
import { requireUpgrade, socketFrom } from "./stream.ts";

const OneBlock = z.object({ block: BlockDetail });
export const versionQuery = z.object({ version: queryNumber(1, 1_000_000_000).optional() });

/** The author for the block's history: the person who acts, or the workspace's key. */
export const authorOf = ({ var: { principal } }: HttpContext): string =>
  principal.entityId === undefined ? "system" : `human:${principal.entityId}`;

const shareOf = ({ granteeId, ...grant }: BlockGrant): BlockShare => ({ agentId: granteeId, ...grant });
const spaceOf = ({ granteeId, ...grant }: BlockGrant): BlockSpace => BlockSpace.parse({ spaceId: granteeId, ...grant });

/** The documents of agents. */
export const blocks = new Resource("Blocks");

blocks.route("POST /v1/agents/{agentId}/blocks", {
  summary: "Create a block",
  access: "workspace",
  mind: true,
  body: CreateBlock,
  idempotent: true,
  status: 201,
  answers: [OneBlock, "The block"],
  problems: ["not_found", "name_taken", "limit_reached", "edit_refused", "text_too_long", "unknown_reference"],
  handle: async ({ context, agent, body, once }) => {
    await checkPartner(workspaceOf(context), body.partnerEntityId);
    return once(async (newId) => ({
      block: await agent.createBlock(body, authorOf(context), callIdOf(context, newId)),
    }));
  },
});

blocks.route("GET /v1/agents/{agentId}/blocks", {
  summary: "An agent's blocks, and those that others share with it",
  access: "workspace",
  mind: true,
  query: z.object({ type: BlockType.optional() }),
  answers: [listOf(Block), "All of them, or those of one type, by label"],
  problems: ["not_found", "invalid_request"],
  handle: async ({ agent, query: { type } }) =>
    onePage((await agent.blocks()).filter((block) => type === undefined || block.type === type)),
});

blocks.route("GET /v1/agents/{agentId}/blocks/{label}", {
  summary: "One block with what it holds, now or at an earlier version",
  access: "workspace",
  mind: true,
  query: versionQuery,
  answers: [BlockDetail, "The block"],
  problems: ["not_found", "invalid_request"],
  handle: async ({ agent, params, query }) => agent.block(params.label, query.version),
});

blocks.route("PATCH /v1/agents/{agentId}/blocks/{label}", {
  summary: "Change how a block is kept and shown",
  description:
    'What is left out stays as it was. What it holds is changed by operations. `confidential: "allowed"` takes who is in each confidential space that writes it then, or a secret key.',
  access: "workspace",
  mind: "told",
  body: UpdateBlock,
  answers: [OneBlock, "The block"],
  problems: ["not_found", "conflict", "edit_refused", "unknown_reference"],
  handle: async ({ context, agent, params, body }) => {
    await checkPartner(workspaceOf(context), body.partnerEntityId);
    const author = authorOf(context);
    const update = (readable?: string[]) => agent.updateBlock(params.label, body, author, readable);
    return { block: await asReaderOfAll(context, update) };
  },
});

blocks.route("DELETE /v1/agents/{agentId}/blocks/{label}", {
  summary: "Delete a block",
  description: "Its label can be used again. `as=agent`: only where the block's permission is `Admin`.",
  access: "workspace",
  mind: true,
  query: z.object({ as: EditBlock.shape.as }),
  problems: ["not_found", "forbidden", "invalid_request"],
  handle: async ({ context, agent, params, query }) => agent.deleteBlock(params.label, query.as, authorOf(context)),
});

blocks.route("POST /v1/agents/{agentId}/blocks/{label}/operations", {
  summary: "Edit a block: all operations or none",
  description:
    "`as: agent` edits with the block's permission, as the agent's own tools do. With `onVersion` the edit merges with what came after that version.",
  access: "workspace",
  mind: "told",
  body: EditBlock,
  idempotent: true,
  answers: [EditedBlock, "What it holds now"],
  problems: ["not_found", "forbidden", "edit_refused", "text_too_long", "limit_reached", "conflict"],
  handle: ({ context, agent, params, body, once }) =>
    once(async (newId) => {
      const callId = callIdOf(context, newId);
      return agent.editBlock(params.label, body, authorOf(context), callId);
    }),
});

blocks.route("GET /v1/agents/{agentId}/blocks/{label}/history", {
  summary: "A block's versions, newest first, with who made them",
  access: "workspace",
  mind: true,
  query: pageQuery(),
  answers: [listOf(BlockChange), "A page"],
  problems: ["not_found", ...badPage],
  handle: async ({ agent, params, query }) => agent.blockHistory(params.label, query),
});

blocks.route("GET /v1/agents/{agentId}/blocks/{label}/shares", {
  summary: "The agents that a block is shared with",
  access: "workspace",
  answers: [listOf(BlockShare), "All of them"],
  problems: ["not_found", "invalid_request"],
  handle: async ({ agent, params }) => {
    const grants = await agent.blockGrants(params.label);
    return onePage(grants.filter(({ granteeId }) => granteeId.startsWith("ent_")).map(shareOf));
  },
});

blocks.route("PUT /v1/agents/{agentId}/blocks/{label}/shares/{otherAgentId}", {
  summary: "Share a block with another agent",
  description:
    'Where the block is `confidential: "allowed"` and the permission more than `ReadOnly`, the other agent writes it in its confidential spaces too: an admin shares it so who is in each of these, or a secret key.',
  access: "workspace",
  body: PutBlockShare,
  answers: [z.object({ share: BlockShare }), "The share"],
  problems: ["not_found", "limit_reached", "conflict"],
  handle: async ({ context, agent, params: { label, otherAgentId }, body }) => {
    const share = (readable?: string[]) => agent.shareBlock(label, { granteeId: otherAgentId, ...body }, readable);
    return { share: shareOf(await asReaderOfAll(context, share)) };
  },
});

blocks.route("DELETE /v1/agents/{agentId}/blocks/{label}/shares/{otherAgentId}", {
  summary: "Stop sharing a block with an agent, at once",
  access: "workspace",
  problems: ["not_found", "invalid_request"],
  handle: async ({ agent, params }) => agent.unshareBlock(params.label, params.otherAgentId),
});

blocks.route("GET /v1/agents/{agentId}/blocks/{label}/spaces", {
  summary: "The spaces whose people may use a block",
  access: "workspace",
  answers: [listOf(BlockSpace), "All of them"],
  problems: ["not_found", "invalid_request"],
  handle: async ({ agent, params }) => {
    const grants = await agent.blockGrants(params.label);
    return onePage(grants.filter(({ granteeId }) => granteeId.startsWith("spc_")).map(spaceOf));
  },
});

blocks.route("PUT /v1/agents/{agentId}/blocks/{label}/spaces/{spaceId}", {
  summary: "Share a block with the people of a space that the agent is in",
  description:
    "They read it and edit it, as far as `permission` says, while the agent does. With a confidential space an admin who is in it shares a block that is `confidential: allowed`, or a secret key.",
  access: "workspace",
  body: PutBlockSpace,
  answers: [z.object({ space: BlockSpace }), "How it is shared"],
  problems: ["not_found", "limit_reached", "conflict"],
  handle: async ({ context, agent, space, principal, params: { agentId, label, spaceId }, body }) => {
    const { members } = unwrap(await space.describe(principal));
    if (!members?.some(({ id }) => id === agentId)) {
      throw new ColloquyError("not_found", "The agent is not in that space.");
    }
    const share = (readable?: string[]) => agent.shareBlock(label, { granteeId: spaceId, ...body }, readable);
    return { space: spaceOf(await asReaderOfAll(context, share)) };
  },
});

blocks.route("DELETE /v1/agents/{agentId}/blocks/{label}/spaces/{spaceId}", {
  summary: "Stop sharing a block with the people of a space, at once",
  access: "workspace",
  problems: ["not_found", "invalid_request"],
  handle: async ({ agent, params }) => agent.unshareBlock(params.label, params.spaceId),
});

/** A block's stream, from its agent; with `spaceId`, as that space's people may read it. */
export const blockStream = async (
  context: HttpContext,
  { agentId, label, spaceId }: { agentId: string; label: string; spaceId?: string },
): Promise<Response> => {
  const url = new URL("https://agent/stream");
  url.searchParams.set("label", label);
  if (spaceId !== undefined) url.searchParams.set("space", spaceId);
  return unwrap(await socketFrom(context.env.AGENT.getByName(agentId), context, url, context.var.principal));
};

blocks.route("GET /v1/agents/{agentId}/blocks/{label}/stream", {
  summary: "A block's changes over WebSocket, as they are stored",
  description:
    "Frames are JSON objects with `type`: `welcome`, then `block.changed` with all that the block is then and `cursor`, its version; `block.deleted` is the last. `ping` is answered `pong`.",
  access: "watch",
  query: streamQuery,
  responses: { 101: { description: "The socket" } },
  problems: ["not_found", "upgrade_required", "invalid_request"],
  handle: async ({ context, params }) => {
    requireUpgrade(context, "read the block again");
    const socket = await blockStream(context, params);
    await noteLook(context, params.agentId);
    return socket;
  },
});
