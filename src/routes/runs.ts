import * as z from "zod";
import { Knowledge, PastThing } from "../protocol/knowledge.ts";
import { ContextView, Run, RunStatus } from "../protocol/run.ts";
import { Resource } from "./route.ts";
import { badPage, listOf, pageQuery } from "./route-parts.ts";

const OneRun = z.object({ run: Run });

export const runs = new Resource("Runs");

runs.route("GET /v1/agents/{agentId}/runs", {
  summary: "An agent's runs, newest first",
  description: "Without the steps' inputs: those are in the single run.",
  access: "workspace",
  mind: true,
  query: pageQuery().extend({ status: RunStatus.optional() }),
  answers: [listOf(Run), "A page"],
  problems: ["not_found", ...badPage],
  handle: async ({ agent, query }) => agent.runs(query),
});

runs.route("GET /v1/agents/{agentId}/runs/{runId}", {
  summary: "One run: steps, calls, usage, timings and the exact input of each step",
  description:
    "The first step's input is whole; a later one says which step it continues, how many of its messages it begins with, and what follows. Where one answer does not hold all steps, `nextStep` is the `fromStep` of the next.",
  access: "workspace",
  mind: true,
  query: z.object({ fromStep: z.coerce.number().int().min(0).max(1000).default(0) }),
  answers: [OneRun, "The run"],
  problems: ["not_found", "invalid_request"],
  handle: async ({ agent, params, query }) => ({ run: await agent.run(params.runId, query.fromStep) }),
});

runs.route("POST /v1/agents/{agentId}/runs/{runId}/cancel", {
  summary: "Cancel a run",
  description: "It stops generating at once and nothing of it appears afterwards; its events are acknowledged.",
  access: "workspace",
  mind: "told",
  answers: [OneRun, "The run"],
  problems: ["not_found", "conflict", "gone"],
  handle: async ({ agent, params }) => ({ run: await agent.cancelRun(params.runId) }),
});

runs.route("GET /v1/agents/{agentId}/context", {
  summary: "What the next run's input would be, section by section with tokens",
  description:
    "As of now: what waits is taken as the next run would take it, and nothing is changed. A `timeline` answers the first event that may wake it, be it a message, a plan that came due or a service event; `trigger` says which.",
  access: "workspace",
  mind: true,
  answers: [ContextView, "The input"],
  problems: ["not_found"],
  handle: async ({ agent }) => agent.context(),
});

runs.route("GET /v1/agents/{agentId}/knows", {
  summary: "Where a past message, call or event stands in what the next run would be given",
  description:
    "`known: false` says that the next run would find it nowhere, or that the agent was never given it. Tools are tried with the words of what is asked for.",
  access: "workspace",
  mind: true,
  query: PastThing,
  answers: [Knowledge, "Its places"],
  problems: ["not_found", "invalid_request"],
  handle: async ({ agent, query }) => agent.knows(query),
});
