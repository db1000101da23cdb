import { createRoute, z } from "@hono/zod-openapi";
import type { Context } from "hono";
import { Block, BlockChange, BlockDetail, EditedBlock, EditSpaceBlock } from "../protocol/block.ts";
import type { Member } from "../protocol/entity.ts";
import { Label } from "../protocol/text.ts";
import { ColloquyError, unwrap } from "../shared/errors.ts";
import { log } from "../shared/log.ts";
import { access } from "./access.ts";
import { agentAt } from "./agents.ts";
import { createRoutes, type House } from "./house.ts";
import { callIdOf, idempotently } from "./idempotent.ts";
import { actingEntityId, inSpace, requireParticipant, spaceAt } from "./in-space.ts";
import {
  answers,
  badBody,
  badRepeat,
  IdempotencyHeaders,
  jsonBody,
  listOf,
  onePage,
  pageQuery,
  pathId,
  problems,
  queryNumber,
} from "./route-parts.ts";
import { answeredSocket, requireUpgrade, socketRequest } from "./stream.ts";

const tags = ["Blocks"];
const params = z.object({ spaceId: pathId("spc", "the space") });
const blockParams = params.extend({
  agentId: pathId("ent", "the agent whose block it is"),
  label: Label.meta({ description: "The block's label", example: "shopping" }),
});
const path = "/v1/spaces/{spaceId}/agents/{agentId}/blocks/{label}";
const Version = queryNumber(1, 1_000_000_000).optional();

/** The members of a space, for who may see it. */
const membersOf = async (context: Context<House>, spaceId: string): Promise<Member[]> =>
  (await inSpace(context, (principal) => spaceAt(context, spaceId).describe(principal))).members ?? [];

/** The agent, where both it and the caller are in the space: to who is not, there is no such block. */
const agentIn = async (context: Context<House>, spaceId: string, agentId: string) => {
  const members = await membersOf(context, spaceId);
  if (!members.some(({ id, type }) => id === agentId && type === "agent")) {
    throw new ColloquyError("not_found", "There is no such agent in this space.");
  }
  return { agent: agentAt(context, agentId), members };
};

/** Who acts, as a member of the space. */
const actorAmong = (context: Context<House>, members: Member[]): { author: string; name: string } => {
  const id = actingEntityId(context.var.principal);
  const member = members.find((each) => each.id === id);
  if (!member) throw new ColloquyError("forbidden", "Only the members of a space use its blocks.");
  return { author: `human:${id}`, name: member.name };
};

/** What agents share with the people of a space. */
export const spaceBlocks = createRoutes();

spaceBlocks.openapi(
  createRoute({
    method: "get",
    path: "/v1/spaces/{spaceId}/blocks",
    tags,
    summary: "The blocks that agents share with a space",
    description: "By agent and label; `permission` is that of the space's people. An agent out of reach is left out.",
    ...access("space"),
    request: { params },
    responses: { 200: answers(listOf(Block), "All of them"), ...problems("not_found") },
  }),
  async (context) => {
    const { spaceId } = context.req.valid("param");
    const { workspaceId } = context.var.principal;
    const agents = (await membersOf(context, spaceId)).filter(({ type }) => type === "agent");
    const asked = await Promise.allSettled(
      agents.map(async ({ id }) => unwrap(await agentAt(context, id).spaceBlocks(workspaceId, spaceId))),
    );
    const items = asked.flatMap((one) => {
      if (one.status === "fulfilled") return one.value;
      log.warn("space-blocks.unreachable", { reason: String(one.reason) });
      return [];
    });
    return context.json(onePage(items), 200);
  },
);

spaceBlocks.openapi(
  createRoute({
    method: "get",
    path,
    tags,
    summary: "One block that is shared with a space, now or at an earlier version",
    ...access("space"),
    request: { params: blockParams, query: z.object({ version: Version }) },
    responses: { 200: answers(BlockDetail, "The block"), ...problems("not_found", "invalid_request") },
  }),
  async (context) => {
    const { spaceId, agentId, label } = context.req.valid("param");
    const { version } = context.req.valid("query");
    const { agent } = await agentIn(context, spaceId, agentId);
    return context.json(
      unwrap(await agent.spaceBlock(context.var.principal.workspaceId, spaceId, label, version)),
      200,
    );
  },
);

spaceBlocks.openapi(
  createRoute({
    method: "post",
    path: `${path}/operations`,
    tags,
    summary: "Edit a block that is shared with a space: all operations or none",
    description:
      "As a member of the space, with the permission that its people have. With `onVersion` the edit merges with what came after that version.",
    ...access("space"),
    request: { params: blockParams, headers: IdempotencyHeaders, body: jsonBody(EditSpaceBlock) },
    responses: {
      200: answers(EditedBlock, "What it holds now"),
      ...problems("not_found", "edit_refused", "text_too_long", "limit_reached", "conflict", ...badBody, ...badRepeat),
    },
  }),
  async (context) => {
    const { spaceId, agentId, label } = context.req.valid("param");
    await requireParticipant(context);
    const { agent, members } = await agentIn(context, spaceId, agentId);
    const editor = { spaceId, ...actorAmong(context, members) };
    const edit = context.req.valid("json");
    const { workspaceId } = context.var.principal;
    const answer = await idempotently(context, { body: edit, schema: EditedBlock, status: 200 }, async (newId) => {
      const callId = callIdOf(context, newId);
      return unwrap(await agent.editSpaceBlock(workspaceId, label, edit, { ...editor, callId }));
    });
    return context.json(answer, 200);
  },
);

spaceBlocks.openapi(
  createRoute({
    method: "get",
    path: `${path}/history`,
    tags,
    summary: "Such a block's versions, newest first, with who made them",
    ...access("space"),
    request: { params: blockParams, query: pageQuery() },
    responses: {
      200: answers(listOf(BlockChange), "A page"),
      ...problems("not_found", "invalid_request", "invalid_cursor"),
    },
  }),
  async (context) => {
    const { spaceId, agentId, label } = context.req.valid("param");
    const { agent } = await agentIn(context, spaceId, agentId);
    const page = context.req.valid("query");
    const history = await agent.spaceBlockHistory(context.var.principal.workspaceId, spaceId, label, page);
    return context.json(unwrap(history), 200);
  },
);

spaceBlocks.openapi(
  createRoute({
    method: "get",
    path: `${path}/stream`,
    tags,
    summary: "Such a block's changes over WebSocket, as they are stored",
    description:
      "The frames are those of `GET /v1/agents/{agentId}/blocks/{label}/stream`. Who leaves the space is closed with 4403, as is everybody once the block is not shared with it any more.",
    ...access("stream"),
    request: { params: blockParams },
    responses: {
      101: { description: "The socket" },
      ...problems("not_found", "upgrade_required", "acting_entity_required", "invalid_request"),
    },
  }),
  async (context) => {
    requireUpgrade(context, "read the block again");
    const { spaceId, agentId, label } = context.req.valid("param");
    await requireParticipant(context);
    const { members } = await agentIn(context, spaceId, agentId);
    actorAmong(context, members);
    const url = new URL("https://agent/stream");
    url.searchParams.set("label", label);
    url.searchParams.set("space", spaceId);
    const asked = socketRequest(context, url, context.var.principal);
    return unwrap(await answeredSocket(await context.env.AGENT.getByName(agentId).fetch(asked)));
  },
);
