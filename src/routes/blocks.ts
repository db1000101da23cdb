import { createRoute, z } from "@hono/zod-openapi";
import type { Context } from "hono";
import {
  Block,
  BlockChange,
  BlockDetail,
  BlockShare,
  BlockSpace,
  CreateBlock,
  EditBlock,
  EditedBlock,
  PutBlockShare,
  PutBlockSpace,
  UpdateBlock,
} from "../protocol/block.ts";
import { Label } from "../protocol/text.ts";
import { ColloquyError, unwrap } from "../shared/errors.ts";
import { access } from "./access.ts";
import { agentAt } from "./agents.ts";
import { checkPartner } from "./approver-check.ts";
import { createRoutes, type House, workspaceOf } from "./house.ts";
import { callIdOf, idempotently } from "./idempotent.ts";
import {
  answers,
  badBody,
  badRepeat,
  IdempotencyHeaders,
  jsonBody,
  listOf,
  nothing,
  onePage,
  pageQuery,
  pathId,
  problems,
  queryNumber,
} from "./route-parts.ts";
import { answeredSocket, requireUpgrade, socketRequest } from "./stream.ts";

const tags = ["Blocks"];
const params = z.object({ agentId: pathId("ent", "the agent") });
const blockParams = params.extend({ label: Label.meta({ description: "The block's label", example: "notes" }) });
const shareParams = blockParams.extend({ otherAgentId: pathId("ent", "the agent that it is shared with") });
const spaceParams = blockParams.extend({ spaceId: pathId("spc", "the space") });
const path = "/v1/agents/{agentId}/blocks";
const onePath = `${path}/{label}`;

const OneBlock = z.object({ block: BlockDetail });
const Version = queryNumber(1, 1_000_000_000).optional();
const AsQuery = z.object({ as: EditBlock.shape.as });

/** Whom the block's history names: the person who acts, or the workspace's key alone. */
const authorOf = ({ var: { principal } }: Context<House>): string =>
  principal.entityId === undefined ? "system" : `human:${principal.entityId}`;

const edited = ["not_found", "forbidden", "edit_refused", "text_too_long", "limit_reached", "conflict"] as const;

/** What agents keep as documents. */
export const blocks = createRoutes();

blocks.openapi(
  createRoute({
    method: "post",
    path,
    tags,
    summary: "Create a block",
    ...access("workspace"),
    request: { params, headers: IdempotencyHeaders, body: jsonBody(CreateBlock) },
    responses: {
      201: answers(OneBlock, "The block"),
      ...problems(
        "not_found",
        "name_taken",
        "limit_reached",
        "edit_refused",
        "text_too_long",
        "unknown_reference",
        ...badBody,
        ...badRepeat,
      ),
    },
  }),
  async (context) => {
    const { workspaceId } = context.var.principal;
    const stub = agentAt(context, context.req.valid("param").agentId);
    const body = context.req.valid("json");
    await checkPartner(workspaceOf(context), body.partnerEntityId);
    const answer = await idempotently(context, { body, schema: OneBlock }, async (newId) => {
      const block = unwrap(await stub.createBlock(workspaceId, body, authorOf(context), callIdOf(context, newId)));
      return { block };
    });
    return context.json(answer, 201);
  },
);

blocks.openapi(
  createRoute({
    method: "get",
    path,
    tags,
    summary: "An agent's blocks, and those that others share with it",
    ...access("workspace"),
    request: { params },
    responses: { 200: answers(listOf(Block), "All of them, by label"), ...problems("not_found") },
  }),
  async (context) => {
    const stub = agentAt(context, context.req.valid("param").agentId);
    return context.json(onePage(unwrap(await stub.blocks(context.var.principal.workspaceId))), 200);
  },
);

blocks.openapi(
  createRoute({
    method: "get",
    path: onePath,
    tags,
    summary: "One block with what it holds, now or at an earlier version",
    ...access("workspace"),
    request: { params: blockParams, query: z.object({ version: Version }) },
    responses: { 200: answers(BlockDetail, "The block"), ...problems("not_found", "invalid_request") },
  }),
  async (context) => {
    const { agentId, label } = context.req.valid("param");
    const { version } = context.req.valid("query");
    const stub = agentAt(context, agentId);
    return context.json(unwrap(await stub.block(context.var.principal.workspaceId, label, version)), 200);
  },
);

blocks.openapi(
  createRoute({
    method: "patch",
    path: onePath,
    tags,
    summary: "Change how a block is kept and shown",
    description: "What is left out stays as it was. What it holds is changed by operations.",
    ...access("workspace"),
    request: { params: blockParams, body: jsonBody(UpdateBlock) },
    responses: {
      200: answers(OneBlock, "The block"),
      ...problems("not_found", "conflict", "edit_refused", "unknown_reference", ...badBody),
    },
  }),
  async (context) => {
    const { agentId, label } = context.req.valid("param");
    const { workspaceId } = context.var.principal;
    const changes = context.req.valid("json");
    await checkPartner(workspaceOf(context), changes.partnerEntityId);
    const block = unwrap(await agentAt(context, agentId).updateBlock(workspaceId, label, changes, authorOf(context)));
    return context.json({ block }, 200);
  },
);

blocks.openapi(
  createRoute({
    method: "delete",
    path: onePath,
    tags,
    summary: "Delete a block",
    description: "Its label can be used again. `as=agent`: only where the block's permission is `Admin`.",
    ...access("workspace"),
    request: { params: blockParams, query: AsQuery },
    responses: { 204: nothing, ...problems("not_found", "forbidden", "invalid_request") },
  }),
  async (context) => {
    const { agentId, label } = context.req.valid("param");
    const { as } = context.req.valid("query");
    const { workspaceId } = context.var.principal;
    unwrap(await agentAt(context, agentId).deleteBlock(workspaceId, label, as, authorOf(context)));
    return context.body(null, 204);
  },
);

blocks.openapi(
  createRoute({
    method: "post",
    path: `${onePath}/operations`,
    tags,
    summary: "Edit a block: all operations or none",
    description:
      "`as: agent` edits with the block's permission, as the agent's own tools do. With `onVersion` the edit merges with what came after that version.",
    ...access("workspace"),
    request: { params: blockParams, headers: IdempotencyHeaders, body: jsonBody(EditBlock) },
    responses: { 200: answers(EditedBlock, "What it holds now"), ...problems(...edited, ...badBody, ...badRepeat) },
  }),
  async (context) => {
    const { agentId, label } = context.req.valid("param");
    const { workspaceId } = context.var.principal;
    const edit = context.req.valid("json");
    const stub = agentAt(context, agentId);
    const answer = await idempotently(context, { body: edit, schema: EditedBlock, status: 200 }, async (newId) =>
      unwrap(await stub.editBlock(workspaceId, label, edit, authorOf(context), callIdOf(context, newId))),
    );
    return context.json(answer, 200);
  },
);

blocks.openapi(
  createRoute({
    method: "get",
    path: `${onePath}/history`,
    tags,
    summary: "A block's versions, newest first, with who made them",
    ...access("workspace"),
    request: { params: blockParams, query: pageQuery() },
    responses: {
      200: answers(listOf(BlockChange), "A page"),
      ...problems("not_found", "invalid_request", "invalid_cursor"),
    },
  }),
  async (context) => {
    const { agentId, label } = context.req.valid("param");
    const stub = agentAt(context, agentId);
    const page = await stub.blockHistory(context.var.principal.workspaceId, label, context.req.valid("query"));
    return context.json(unwrap(page), 200);
  },
);

blocks.openapi(
  createRoute({
    method: "get",
    path: `${onePath}/shares`,
    tags,
    summary: "The agents that a block is shared with",
    ...access("workspace"),
    request: { params: blockParams },
    responses: { 200: answers(listOf(BlockShare), "All of them"), ...problems("not_found", "invalid_request") },
  }),
  async (context) => {
    const { agentId, label } = context.req.valid("param");
    const shares = await agentAt(context, agentId).blockShares(context.var.principal.workspaceId, label);
    return context.json(onePage(unwrap(shares)), 200);
  },
);

blocks.openapi(
  createRoute({
    method: "put",
    path: `${onePath}/shares/{otherAgentId}`,
    tags,
    summary: "Share a block with another agent",
    ...access("workspace"),
    request: { params: shareParams, body: jsonBody(PutBlockShare) },
    responses: {
      200: answers(z.object({ share: BlockShare }), "The share"),
      ...problems("not_found", "limit_reached", ...badBody),
    },
  }),
  async (context) => {
    const { agentId, label, otherAgentId } = context.req.valid("param");
    const { permission } = context.req.valid("json");
    const stub = agentAt(context, agentId);
    const wanted = { agentId: otherAgentId, permission };
    const share = unwrap(await stub.shareBlock(context.var.principal.workspaceId, label, wanted));
    return context.json({ share }, 200);
  },
);

blocks.openapi(
  createRoute({
    method: "delete",
    path: `${onePath}/shares/{otherAgentId}`,
    tags,
    summary: "Stop sharing a block with an agent, at once",
    ...access("workspace"),
    request: { params: shareParams },
    responses: { 204: nothing, ...problems("not_found", "invalid_request") },
  }),
  async (context) => {
    const { agentId, label, otherAgentId } = context.req.valid("param");
    unwrap(await agentAt(context, agentId).unshareBlock(context.var.principal.workspaceId, label, otherAgentId));
    return context.body(null, 204);
  },
);

blocks.openapi(
  createRoute({
    method: "get",
    path: `${onePath}/spaces`,
    tags,
    summary: "The spaces whose people may use a block",
    ...access("workspace"),
    request: { params: blockParams },
    responses: { 200: answers(listOf(BlockSpace), "All of them"), ...problems("not_found", "invalid_request") },
  }),
  async (context) => {
    const { agentId, label } = context.req.valid("param");
    const spaces = await agentAt(context, agentId).blockSpaces(context.var.principal.workspaceId, label);
    return context.json(onePage(unwrap(spaces)), 200);
  },
);

blocks.openapi(
  createRoute({
    method: "put",
    path: `${onePath}/spaces/{spaceId}`,
    tags,
    summary: "Share a block with the people of a space that the agent is in",
    description: "They read it and edit it, as far as `permission` says, while the agent does.",
    ...access("workspace"),
    request: { params: spaceParams, body: jsonBody(PutBlockSpace) },
    responses: {
      200: answers(z.object({ space: BlockSpace }), "How it is shared"),
      ...problems("not_found", "limit_reached", ...badBody),
    },
  }),
  async (context) => {
    const { agentId, label, spaceId } = context.req.valid("param");
    const { permission } = context.req.valid("json");
    const { principal } = context.var;
    const { members } = unwrap(await context.env.SPACE.getByName(spaceId).describe(principal));
    if (!members?.some(({ id }) => id === agentId))
      throw new ColloquyError("not_found", "The agent is not in that space.");
    const opened = await agentAt(context, agentId).openBlock(principal.workspaceId, label, { spaceId, permission });
    return context.json({ space: unwrap(opened) }, 200);
  },
);

blocks.openapi(
  createRoute({
    method: "delete",
    path: `${onePath}/spaces/{spaceId}`,
    tags,
    summary: "Stop sharing a block with the people of a space, at once",
    ...access("workspace"),
    request: { params: spaceParams },
    responses: { 204: nothing, ...problems("not_found", "invalid_request") },
  }),
  async (context) => {
    const { agentId, label, spaceId } = context.req.valid("param");
    unwrap(await agentAt(context, agentId).closeBlock(context.var.principal.workspaceId, label, spaceId));
    return context.body(null, 204);
  },
);

blocks.openapi(
  createRoute({
    method: "get",
    path: `${onePath}/stream`,
    tags,
    summary: "A block's changes over WebSocket, as they are stored",
    description:
      "Frames are JSON objects with `type`: `welcome`, then `block.changed` with all that the block is then and `cursor`, its version; `block.deleted` is the last. `ping` is answered `pong`.",
    ...access("watch"),
    request: { params: blockParams },
    responses: {
      101: { description: "The socket" },
      ...problems("not_found", "upgrade_required", "invalid_request"),
    },
  }),
  async (context) => {
    requireUpgrade(context, "read the block again");
    const { agentId, label } = context.req.valid("param");
    const url = new URL("https://agent/stream");
    url.searchParams.set("label", label);
    const asked = socketRequest(context, url, context.var.principal);
    return unwrap(await answeredSocket(await context.env.AGENT.getByName(agentId).fetch(asked)));
  },
);
