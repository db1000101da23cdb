import * as z from "zod";
import { openRoot, rootHeader } from "../auth/root-header.ts";
import { Plan, PutPlan } from "../protocol/plan.ts";
import { systemClock } from "../shared/clock.ts";
import { Resource } from "./route.ts";
import { listOf, onePage, RootHeaders } from "./route-parts.ts";

/** When an agent wakes by itself. */
export const plans = new Resource("Plans");

plans.route("GET /v1/agents/{agentId}/plans", {
  summary: "An agent's plans",
  description: "Those still to come first, by when they are due; then the last few that are over.",
  access: "workspace",
  mind: true,
  answers: [listOf(Plan), "All of them"],
  problems: ["not_found"],
  handle: async ({ agent }) => onePage(await agent.plans()),
});

plans.route("PUT /v1/agents/{agentId}/plans/{planId}", {
  summary: "Set a plan",
  description:
    "Exactly one of `runAfter`, `scheduledAt` and `cron` says when. A plan of that id is replaced; `runAfter` counts from this request. Each time that it is due wakes the agent once, as a message of a person would. What a tool's request set off passes its `Colloquy-Root` on.",
  access: "workspace",
  mind: true,
  headers: RootHeaders,
  body: PutPlan,
  answers: [z.object({ plan: Plan }), "The plan, with when it is due next"],
  problems: ["not_found", "limit_reached", "invalid_time"],
  handle: async ({ context, agent, workspaceId, params, body, headers }) => {
    const root = await openRoot(context.env, workspaceId, headers[rootHeader], systemClock.now());
    return { plan: await agent.putPlan(params.planId, body, root) };
  },
});

plans.route("DELETE /v1/agents/{agentId}/plans/{planId}", {
  summary: "Delete a plan",
  access: "workspace",
  mind: true,
  problems: ["not_found", "invalid_request"],
  handle: async ({ agent, params }) => agent.deletePlan(params.planId),
});
