import { createRoute, z } from "@hono/zod-openapi";
import type { Context } from "hono";
import { forgetStanding } from "../auth/verdicts.ts";
import { Agent, AgentConfig, AgentListItem, UpdateAgent } from "../protocol/agent.ts";
import type { AgentRpc, WorkspaceRpc } from "../protocol/rpc.ts";
import { ColloquyError, unwrap } from "../shared/errors.ts";
import { log } from "../shared/log.ts";
import { access } from "./access.ts";
import { checkApprovers } from "./approver-check.ts";
import { createRoutes, type House, workspaceOf } from "./house.ts";
import { idempotently } from "./idempotent.ts";
import { checkModels, summaryModelIn } from "./model-check.ts";
import {
  answers,
  badBody,
  badRepeat,
  IdempotencyHeaders,
  idempotencyHeader,
  jsonBody,
  listOf,
  nothing,
  pageQuery,
  pathId,
  problems,
} from "./route-parts.ts";

const OneAgent = z.object({ agent: Agent });
const tags = ["Agents"];
const path = "/v1/agents/{agentId}";
const params = z.object({ agentId: pathId("ent", "the agent: its entity id") });

export const agentAt = (context: Context<House>, agentId: string): AgentRpc => context.env.AGENT.getByName(agentId);

/**
 * Brings an agent that was just made the workspace's secrets. One that was changed on the way came to it before this did,
 * so it is asked again until they are what it has.
 */
const bringSecrets = async (workspace: WorkspaceRpc, agent: AgentRpc, workspaceId: string): Promise<void> => {
  for (let brought = "{}"; ; ) {
    const sealed = unwrap(await workspace.sealedSecrets());
    const now = JSON.stringify(sealed);
    if (now === brought) return;
    unwrap(await agent.setSecrets(workspaceId, sealed));
    brought = now;
  }
};

/** Makes the agent's own object under an entity that the directory has taken in, and brings it the secrets. */
const createAgent = async (context: Context<House>, id: string, config: AgentConfig): Promise<Agent> => {
  const { workspaceId } = context.var.principal;
  const stub = agentAt(context, id);
  const creation = await stub.create({ id, workspaceId, config });
  const isThere = !creation.ok && creation.problem.code === "conflict";
  const agent = unwrap(isThere ? await stub.describe(workspaceId) : creation);
  await bringSecrets(workspaceOf(context), stub, workspaceId);
  return agent;
};

/** Does `act`; where it fails, takes back what the directory was told before it. */
const orTakeBack = async <T>(act: () => Promise<T>, takeBack: () => Promise<unknown>): Promise<T> => {
  try {
    return await act();
  } catch (error) {
    await takeBack().catch((again: unknown) => log.error("directory.not-taken-back", again));
    throw error;
  }
};

const requireAgent = async (context: Context<House>, id: string): Promise<{ name: string }> => {
  const entity = unwrap(await workspaceOf(context).entity(id));
  if (entity.type !== "agent") throw new ColloquyError("not_found", "There is no such agent in this workspace.");
  return entity;
};

export const agents = createRoutes();

agents.openapi(
  createRoute({
    method: "post",
    path: "/v1/agents",
    tags,
    summary: "Create an agent",
    ...access("workspace"),
    request: { headers: IdempotencyHeaders, body: jsonBody(AgentConfig) },
    responses: {
      201: answers(OneAgent, "The agent"),
      ...problems("name_taken", "limit_reached", "unknown_reference", ...badBody, ...badRepeat),
    },
  }),
  async (context) => {
    const config = context.req.valid("json");
    const workspace = workspaceOf(context);
    const answer = await idempotently(context, { body: config, schema: OneAgent }, async (newId) => {
      const { model, embedder, context: input } = config;
      await checkModels(context.env, workspace, { model, embedder, summaries: input.compaction.model });
      await checkApprovers(workspace, config.tools);
      const newAgentId = newId("ent");
      unwrap(await agentAt(context, newAgentId).check(config));
      const { id } = unwrap(await workspace.createAgentEntity(newAgentId, config.name));
      // Under a key the next try finishes what this one began; without one nobody would, so the name is given back.
      const isRepeatable = context.req.valid("header")[idempotencyHeader] !== undefined;
      const agent = await orTakeBack(
        () => createAgent(context, id, config),
        async () => isRepeatable || workspace.removeEntity(id),
      );
      return { agent };
    });
    return context.json(answer, 201);
  },
);

agents.openapi(
  createRoute({
    method: "get",
    path: "/v1/agents",
    tags,
    summary: "The workspace's agents, oldest first",
    ...access("workspace"),
    request: { query: pageQuery() },
    responses: { 200: answers(listOf(AgentListItem), "A page"), ...problems("invalid_request", "invalid_cursor") },
  }),
  async (context) => {
    const page = unwrap(await workspaceOf(context).entities({ ...context.req.valid("query"), type: "agent" }));
    const items = page.items.map(({ id, name, createdAt }) => ({ id, name, createdAt }));
    return context.json({ items, nextCursor: page.nextCursor }, 200);
  },
);

agents.openapi(
  createRoute({
    method: "get",
    path,
    tags,
    summary: "One agent, with its config and what it does now",
    ...access("workspace"),
    request: { params },
    responses: { 200: answers(OneAgent, "The agent"), ...problems("not_found") },
  }),
  async (context) => {
    const stub = agentAt(context, context.req.valid("param").agentId);
    return context.json({ agent: unwrap(await stub.describe(context.var.principal.workspaceId)) }, 200);
  },
);

agents.openapi(
  createRoute({
    method: "patch",
    path,
    tags,
    summary: "Change an agent's config",
    description: "It takes effect at the next run. `limits` and `context` merge field by field.",
    ...access("workspace"),
    request: { params, body: jsonBody(UpdateAgent) },
    responses: {
      200: answers(OneAgent, "The agent"),
      ...problems("not_found", "name_taken", "unknown_reference", ...badBody),
    },
  }),
  async (context) => {
    const { agentId } = context.req.valid("param");
    const changes = context.req.valid("json");
    const workspace = workspaceOf(context);
    const before = await requireAgent(context, agentId);
    const { model, embedder } = changes;
    await checkModels(context.env, workspace, {
      model,
      embedder: embedder ?? undefined,
      summaries: summaryModelIn(changes),
    });
    if (changes.tools) await checkApprovers(workspace, changes.tools);
    const { name } = changes;
    // A name is told in every space at once, so nothing else may be wrong by then.
    if (name !== undefined)
      unwrap(await agentAt(context, agentId).checkUpdate(context.var.principal.workspaceId, changes));
    // The directory first: it alone knows whether the name is free.
    if (name !== undefined) unwrap(await workspace.updateEntity(agentId, { name }));
    const agent = await orTakeBack(
      async () => unwrap(await agentAt(context, agentId).update(context.var.principal.workspaceId, changes)),
      async () => name === undefined || workspace.updateEntity(agentId, { name: before.name }),
    );
    return context.json({ agent }, 200);
  },
);

agents.openapi(
  createRoute({
    method: "delete",
    path,
    tags,
    summary: "Delete an agent",
    description: "Its runs end and it leaves all its spaces; its messages stay.",
    ...access("workspace"),
    request: { params },
    responses: { 204: nothing, ...problems("not_found") },
  }),
  async (context) => {
    const { agentId } = context.req.valid("param");
    const { workspaceId } = context.var.principal;
    await requireAgent(context, agentId);
    // The directory first: what is cut off after that, its workspace does.
    unwrap(await workspaceOf(context).removeEntity(agentId));
    forgetStanding(workspaceId, agentId);
    // Here it is ended at once, mostly: whoever deleted it finds it ended.
    await agentAt(context, agentId)
      .remove(workspaceId)
      .catch((error: unknown) => log.warn("agent.ends_later", { agentId, reason: String(error) }));
    return context.body(null, 204);
  },
);
