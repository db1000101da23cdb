import { createRoute, z } from "@hono/zod-openapi";
import { Goal, Memory, PutGoal, PutMemory } from "../protocol/mind.ts";
import { Label } from "../protocol/text.ts";
import { unwrap } from "../shared/errors.ts";
import { access } from "./access.ts";
import { agentAt } from "./agents.ts";
import { createRoutes } from "./house.ts";
import { answers, badBody, jsonBody, listOf, nothing, onePage, pathId, problems } from "./route-parts.ts";

const tags = ["Mind"];
const params = z.object({ agentId: pathId("ent", "the agent") });
const memoryParams = params.extend({
  key: Label.meta({ description: "The memory's key", example: "favourite_tea" }),
});
const goalParams = params.extend({
  goalId: Label.meta({ description: "The goal's id, the caller's choice", example: "q4" }),
});

/** What an agent keeps by itself: memories and goals. */
export const mind = createRoutes();

mind.openapi(
  createRoute({
    method: "get",
    path: "/v1/agents/{agentId}/memories",
    tags,
    summary: "An agent's memories",
    ...access("workspace"),
    request: { params },
    responses: { 200: answers(listOf(Memory), "All of them"), ...problems("not_found") },
  }),
  async (context) => {
    const stub = agentAt(context, context.req.valid("param").agentId);
    return context.json(onePage(unwrap(await stub.memories(context.var.principal.workspaceId))), 200);
  },
);

mind.openapi(
  createRoute({
    method: "put",
    path: "/v1/agents/{agentId}/memories/{key}",
    tags,
    summary: "Write a memory",
    ...access("workspace"),
    request: { params: memoryParams, body: jsonBody(PutMemory) },
    responses: {
      200: answers(z.object({ memory: Memory }), "The memory"),
      ...problems("not_found", "limit_reached", ...badBody),
    },
  }),
  async (context) => {
    const { agentId, key } = context.req.valid("param");
    const { value } = context.req.valid("json");
    const memory = unwrap(await agentAt(context, agentId).putMemory(context.var.principal.workspaceId, key, value));
    return context.json({ memory }, 200);
  },
);

mind.openapi(
  createRoute({
    method: "delete",
    path: "/v1/agents/{agentId}/memories/{key}",
    tags,
    summary: "Delete a memory",
    ...access("workspace"),
    request: { params: memoryParams },
    responses: { 204: nothing, ...problems("not_found", "invalid_request") },
  }),
  async (context) => {
    const { agentId, key } = context.req.valid("param");
    unwrap(await agentAt(context, agentId).deleteMemory(context.var.principal.workspaceId, key));
    return context.body(null, 204);
  },
);

mind.openapi(
  createRoute({
    method: "get",
    path: "/v1/agents/{agentId}/goals",
    tags,
    summary: "An agent's goals",
    ...access("workspace"),
    request: { params },
    responses: { 200: answers(listOf(Goal), "All of them"), ...problems("not_found") },
  }),
  async (context) => {
    const stub = agentAt(context, context.req.valid("param").agentId);
    return context.json(onePage(unwrap(await stub.goals(context.var.principal.workspaceId))), 200);
  },
);

mind.openapi(
  createRoute({
    method: "put",
    path: "/v1/agents/{agentId}/goals/{goalId}",
    tags,
    summary: "Write a goal",
    description: "What is left out stays as it was; a new goal needs its description.",
    ...access("workspace"),
    request: { params: goalParams, body: jsonBody(PutGoal) },
    responses: {
      200: answers(z.object({ goal: Goal }), "The goal"),
      ...problems("not_found", "limit_reached", ...badBody),
    },
  }),
  async (context) => {
    const { agentId, goalId } = context.req.valid("param");
    const stub = agentAt(context, agentId);
    const goal = unwrap(await stub.putGoal(context.var.principal.workspaceId, goalId, context.req.valid("json")));
    return context.json({ goal }, 200);
  },
);

mind.openapi(
  createRoute({
    method: "delete",
    path: "/v1/agents/{agentId}/goals/{goalId}",
    tags,
    summary: "Delete a goal",
    ...access("workspace"),
    request: { params: goalParams },
    responses: { 204: nothing, ...problems("not_found", "invalid_request") },
  }),
  async (context) => {
    const { agentId, goalId } = context.req.valid("param");
    unwrap(await agentAt(context, agentId).deleteGoal(context.var.principal.workspaceId, goalId));
    return context.body(null, 204);
  },
);
