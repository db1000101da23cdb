import { z } from "zod";
import { Goal, Memory, PutGoal, PutMemory } from "../protocol/mind.ts";
import { unwrap } from "../shared/errors.ts";
import { Resource } from "./route.ts";
import { listOf, onePage } from "./route-parts.ts";

/** An agent's memories and goals. */
export const mind = new Resource("Mind");

mind.route("GET /v1/agents/{agentId}/memories", {
  summary: "An agent's memories",
  access: "workspace",
  answers: [listOf(Memory), "All of them"],
  problems: ["not_found"],
  handle: async ({ agent, workspaceId }) => onePage(unwrap(await agent.memories(workspaceId))),
});

mind.route("PUT /v1/agents/{agentId}/memories/{key}", {
  summary: "Write a memory",
  access: "workspace",
  body: PutMemory,
  answers: [z.object({ memory: Memory }), "The memory"],
  problems: ["not_found", "limit_reached"],
  handle: async ({ agent, workspaceId, params, body }) => ({
    memory: unwrap(await agent.putMemory(workspaceId, params.key, body.value)),
  }),
});

mind.route("DELETE /v1/agents/{agentId}/memories/{key}", {
  summary: "Delete a memory",
  access: "workspace",
  problems: ["not_found", "invalid_request"],
  handle: async ({ agent, workspaceId, params }) => unwrap(await agent.deleteMemory(workspaceId, params.key)),
});

mind.route("GET /v1/agents/{agentId}/goals", {
  summary: "An agent's goals",
  access: "workspace",
  answers: [listOf(Goal), "All of them"],
  problems: ["not_found"],
  handle: async ({ agent, workspaceId }) => onePage(unwrap(await agent.goals(workspaceId))),
});

mind.route("PUT /v1/agents/{agentId}/goals/{goalId}", {
  summary: "Write a goal",
  description: "What is left out stays as it was; a new goal needs its description.",
  access: "workspace",
  body: PutGoal,
  answers: [z.object({ goal: Goal }), "The goal"],
  problems: ["not_found", "limit_reached"],
  handle: async ({ agent, workspaceId, params, body }) => ({
    goal: unwrap(await agent.putGoal(workspaceId, params.goalId, body)),
  }),
});

mind.route("DELETE /v1/agents/{agentId}/goals/{goalId}", {
  summary: "Delete a goal",
  access: "workspace",
  problems: ["not_found", "invalid_request"],
  handle: async ({ agent, workspaceId, params }) => unwrap(await agent.deleteGoal(workspaceId, params.goalId)),
});
