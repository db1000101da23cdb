import * as z from "zod";
import { ArchivalEntry, CreateArchival } from "../protocol/archival.ts";
import { Goal, Memory, PutGoal, PutMemory } from "../protocol/mind.ts";
import { Resource } from "./route.ts";
import { badPage, listOf, onePage, pageQuery } from "./route-parts.ts";

/** An agent's memories and goals, and its archival entries: facts beyond its context, which search finds. */
export const memoryState = new Resource("Memory state");

memoryState.route("GET /v1/agents/{agentId}/memories", {
  summary: "An agent's memories",
  access: "workspace",
  mind: true,
  answers: [listOf(Memory), "All of them"],
  problems: ["not_found"],
  handle: async ({ agent }) => onePage(await agent.memories()),
});

memoryState.route("PUT /v1/agents/{agentId}/memories/{key}", {
  summary: "Write a memory",
  access: "workspace",
  mind: true,
  body: PutMemory,
  answers: [z.object({ memory: Memory }), "The memory"],
  problems: ["not_found", "limit_reached"],
  handle: async ({ agent, params, body }) => ({ memory: await agent.putMemory(params.key, body.value) }),
});

memoryState.route("DELETE /v1/agents/{agentId}/memories/{key}", {
  summary: "Delete a memory",
  access: "workspace",
  mind: true,
  problems: ["not_found", "invalid_request"],
  handle: async ({ agent, params }) => agent.deleteMemory(params.key),
});

memoryState.route("GET /v1/agents/{agentId}/goals", {
  summary: "An agent's goals",
  access: "workspace",
  mind: true,
  answers: [listOf(Goal), "All of them"],
  problems: ["not_found"],
  handle: async ({ agent }) => onePage(await agent.goals()),
});

memoryState.route("PUT /v1/agents/{agentId}/goals/{goalId}", {
  summary: "Write a goal",
  description: "What is left out stays as it was; a new goal needs its description.",
  access: "workspace",
  mind: true,
  body: PutGoal,
  answers: [z.object({ goal: Goal }), "The goal"],
  problems: ["not_found", "limit_reached"],
  handle: async ({ agent, params, body }) => ({ goal: await agent.putGoal(params.goalId, body) }),
});

memoryState.route("DELETE /v1/agents/{agentId}/goals/{goalId}", {
  summary: "Delete a goal",
  access: "workspace",
  mind: true,
  problems: ["not_found", "invalid_request"],
  handle: async ({ agent, params }) => agent.deleteGoal(params.goalId),
});

memoryState.route("POST /v1/agents/{agentId}/archival", {
  summary: "Keep a fact in an agent's archive",
  description: "With who said it, where and with which message, as far as that is known. Search finds it.",
  access: "workspace",
  mind: true,
  body: CreateArchival,
  idempotent: true,
  status: 201,
  answers: [ArchivalEntry, "The entry"],
  problems: ["not_found", "limit_reached", "text_too_long"],
  handle: ({ context, agent, mindId, body, once }) =>
    once(async (newId) => {
      const id = context.var.ids.deriveOwned("arch", mindId, newId("key"));
      return agent.archive(id, body);
    }),
});

memoryState.route("GET /v1/agents/{agentId}/archival", {
  summary: "An agent's archival entries, newest first",
  access: "workspace",
  mind: true,
  query: pageQuery(),
  answers: [listOf(ArchivalEntry), "A page"],
  problems: ["not_found", ...badPage],
  handle: async ({ agent, query }) => agent.archival(query),
});

memoryState.route("DELETE /v1/agents/{agentId}/archival/{archivalId}", {
  summary: "Delete an archival entry",
  access: "workspace",
  mind: true,
  problems: ["not_found"],
  handle: async ({ agent, params }) => agent.deleteArchival(params.archivalId),
});
