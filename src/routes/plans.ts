import { createRoute, z } from "@hono/zod-openapi";
import { Plan, PutPlan } from "../protocol/plan.ts";
import { Label } from "../protocol/text.ts";
import { unwrap } from "../shared/errors.ts";
import { access } from "./access.ts";
import { agentAt } from "./agents.ts";
import { createRoutes } from "./house.ts";
import { answers, badBody, jsonBody, listOf, nothing, onePage, pathId, problems } from "./route-parts.ts";

const tags = ["Plans"];
const params = z.object({ agentId: pathId("ent", "the agent") });
const planParams = params.extend({
  planId: Label.meta({ description: "The plan's id, the caller's choice", example: "daily-report" }),
});

/** When an agent wakes by itself. */
export const plans = createRoutes();

plans.openapi(
  createRoute({
    method: "get",
    path: "/v1/agents/{agentId}/plans",
    tags,
    summary: "An agent's plans",
    description: "Those still to come first, by when they are due; then the last few that are over.",
    ...access("workspace"),
    request: { params },
    responses: { 200: answers(listOf(Plan), "All of them"), ...problems("not_found") },
  }),
  async (context) => {
    const stub = agentAt(context, context.req.valid("param").agentId);
    return context.json(onePage(unwrap(await stub.plans(context.var.principal.workspaceId))), 200);
  },
);

plans.openapi(
  createRoute({
    method: "put",
    path: "/v1/agents/{agentId}/plans/{planId}",
    tags,
    summary: "Set a plan",
    description:
      "Exactly one of `runAfter`, `scheduledAt` and `cron` says when. A plan of that id is replaced; `runAfter` counts from this request. Each time that it is due wakes the agent once, as a message of a person would.",
    ...access("workspace"),
    request: { params: planParams, body: jsonBody(PutPlan) },
    responses: {
      200: answers(z.object({ plan: Plan }), "The plan, with when it is due next"),
      ...problems("not_found", "limit_reached", "invalid_time", ...badBody),
    },
  }),
  async (context) => {
    const { agentId, planId } = context.req.valid("param");
    const stub = agentAt(context, agentId);
    const plan = unwrap(await stub.putPlan(context.var.principal.workspaceId, planId, context.req.valid("json")));
    return context.json({ plan }, 200);
  },
);

plans.openapi(
  createRoute({
    method: "delete",
    path: "/v1/agents/{agentId}/plans/{planId}",
    tags,
    summary: "Delete a plan",
    ...access("workspace"),
    request: { params: planParams },
    responses: { 204: nothing, ...problems("not_found", "invalid_request") },
  }),
  async (context) => {
    const { agentId, planId } = context.req.valid("param");
    unwrap(await agentAt(context, agentId).deletePlan(context.var.principal.workspaceId, planId));
    return context.body(null, 204);
  },
);
