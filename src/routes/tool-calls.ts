import { createRoute, z } from "@hono/zod-openapi";
import type { Context } from "hono";
import { AnsweredToolCall, ClaimToolCall, ToolAnswer, WaitingToolCall } from "../protocol/tool-call.ts";
import { unwrap } from "../shared/errors.ts";
import { access } from "./access.ts";
import { agentAt } from "./agents.ts";
import { createRoutes, type House, workspaceOf } from "./house.ts";
import { answers, badBody, jsonBody, listOf, pageQuery, pathId, problems } from "./route-parts.ts";

const tags = ["Tool calls"];
const params = z.object({ toolCallId: pathId("tc", "the tool call") });

/** For servers that execute `external` tools: list what waits, claim it, answer it. */
export const toolCalls = createRoutes();

/** A call's id says which agent made it. */
const callerOf = (context: Context<House>, toolCallId: string) =>
  agentAt(context, context.var.ids.ownerOf("tc", toolCallId));

toolCalls.openapi(
  createRoute({
    method: "get",
    path: "/v1/tool-calls",
    tags,
    summary: "Calls of external tools that wait for a server, oldest first",
    description: "Those whose tool has no address to be sent to. A call may stand here a moment longer than it waits.",
    ...access("workspace"),
    request: {
      query: pageQuery().extend({
        status: z.enum(["waiting"]).default("waiting").meta({ description: "Only `waiting` ones are listed" }),
      }),
    },
    responses: { 200: answers(listOf(WaitingToolCall), "A page"), ...problems("invalid_request", "invalid_cursor") },
  }),
  async (context) => {
    const { limit, cursor } = context.req.valid("query");
    return context.json(unwrap(await workspaceOf(context).toolCalls({ limit, cursor })), 200);
  },
);

toolCalls.openapi(
  createRoute({
    method: "post",
    path: "/v1/tool-calls/{toolCallId}/claim",
    tags,
    summary: "Claim a waiting call",
    description: "Nobody else may claim it until the lease ends. Who holds it may claim it again, to keep it longer.",
    ...access("workspace"),
    request: { params, body: jsonBody(ClaimToolCall) },
    responses: {
      200: answers(z.object({ toolCall: WaitingToolCall }), "The call, with the claim"),
      ...problems("not_found", "conflict", "gone", ...badBody),
    },
  }),
  async (context) => {
    const { toolCallId } = context.req.valid("param");
    const { workspaceId } = context.var.principal;
    const claimed = await callerOf(context, toolCallId).claimToolCall(
      workspaceId,
      toolCallId,
      context.req.valid("json"),
    );
    return context.json({ toolCall: unwrap(claimed) }, 200);
  },
);

toolCalls.openapi(
  createRoute({
    method: "post",
    path: "/v1/tool-calls/{toolCallId}/result",
    tags,
    summary: "Answer a call of an external tool",
    description:
      "The first answer wins; the same again changes nothing. One that comes when the run has gone on reaches the agent through its inbox.",
    ...access("workspace"),
    request: { params, body: jsonBody(ToolAnswer) },
    responses: {
      200: answers(z.object({ toolCall: AnsweredToolCall }), "The call"),
      ...problems("not_found", "conflict", "gone", ...badBody),
    },
  }),
  async (context) => {
    const { toolCallId } = context.req.valid("param");
    const { workspaceId } = context.var.principal;
    const answered = await callerOf(context, toolCallId).answerToolCall(
      workspaceId,
      toolCallId,
      context.req.valid("json"),
    );
    return context.json({ toolCall: unwrap(answered) }, 200);
  },
);
