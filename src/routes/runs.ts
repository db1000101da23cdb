import { createRoute, z } from "@hono/zod-openapi";
import { ContextView, Run, RunStatus } from "../protocol/run.ts";
import { unwrap } from "../shared/errors.ts";
import { access } from "./access.ts";
import { agentAt } from "./agents.ts";
import { createRoutes } from "./house.ts";
import { answers, listOf, pageQuery, pathId, problems } from "./route-parts.ts";

const OneRun = z.object({ run: Run });
const tags = ["Runs"];
const params = z.object({ agentId: pathId("ent", "the agent") });
const runParams = params.extend({ runId: pathId("run", "the run") });

export const runs = createRoutes();

runs.openapi(
  createRoute({
    method: "get",
    path: "/v1/agents/{agentId}/runs",
    tags,
    summary: "An agent's runs, newest first",
    description: "Without the steps' inputs: those are in the single run.",
    ...access("workspace"),
    request: { params, query: pageQuery().extend({ status: RunStatus.optional() }) },
    responses: { 200: answers(listOf(Run), "A page"), ...problems("not_found", "invalid_request", "invalid_cursor") },
  }),
  async (context) => {
    const stub = agentAt(context, context.req.valid("param").agentId);
    return context.json(unwrap(await stub.runs(context.var.principal.workspaceId, context.req.valid("query"))), 200);
  },
);

runs.openapi(
  createRoute({
    method: "get",
    path: "/v1/agents/{agentId}/runs/{runId}",
    tags,
    summary: "One run: steps, calls, usage, timings and the exact input of each step",
    description:
      "The first step's input is whole; a later one says which step it continues, how many of its messages it begins with, and what follows. Where one answer does not hold all steps, `nextStep` is the `fromStep` of the next.",
    ...access("workspace"),
    request: { params: runParams, query: z.object({ fromStep: z.coerce.number().int().min(0).max(1000).default(0) }) },
    responses: { 200: answers(OneRun, "The run"), ...problems("not_found", "invalid_request") },
  }),
  async (context) => {
    const { agentId, runId } = context.req.valid("param");
    const { fromStep } = context.req.valid("query");
    const run = unwrap(await agentAt(context, agentId).run(context.var.principal.workspaceId, runId, fromStep));
    return context.json({ run }, 200);
  },
);

runs.openapi(
  createRoute({
    method: "post",
    path: "/v1/agents/{agentId}/runs/{runId}/cancel",
    tags,
    summary: "Cancel a run",
    description: "It stops generating at once and nothing of it appears afterwards; its events are acknowledged.",
    ...access("workspace"),
    request: { params: runParams },
    responses: { 200: answers(OneRun, "The run"), ...problems("not_found", "conflict", "gone") },
  }),
  async (context) => {
    const { agentId, runId } = context.req.valid("param");
    const run = unwrap(await agentAt(context, agentId).cancelRun(context.var.principal.workspaceId, runId));
    return context.json({ run }, 200);
  },
);

runs.openapi(
  createRoute({
    method: "get",
    path: "/v1/agents/{agentId}/context",
    tags,
    summary: "What the next run's input would be, section by section with tokens",
    description:
      "As of now: what waits is taken as the next run would take it, and nothing is changed. A `timeline` answers the first event that may wake it, be it a message, a plan that came due or a service event; `trigger` says which.",
    ...access("workspace"),
    request: { params },
    responses: { 200: answers(ContextView, "The input"), ...problems("not_found") },
  }),
  async (context) => {
    const stub = agentAt(context, context.req.valid("param").agentId);
    return context.json(unwrap(await stub.context(context.var.principal.workspaceId)), 200);
  },
);
