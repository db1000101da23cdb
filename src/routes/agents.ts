import * as z from "zod";
import { forgetStanding } from "../auth/verdicts.ts";
import { Agent, AgentConfig, AgentListItem, Compartment, UpdateAgent } from "../protocol/agent.ts";
import { actorOf } from "../protocol/audit.ts";
import { limitsOf } from "../protocol/last-release.ts";
import { mayRead } from "../protocol/principal.ts";
import { ColloquyError, unwrap } from "../shared/errors.ts";
import { log } from "../shared/log.ts";
import { checkApprovers, checkModels, checkSends, modelsIn, modelsOf, sendsOf } from "./check-references.ts";
import { agentAt, type HttpContext, workspaceOf } from "./http-context.ts";
import { requireReaderOfAll } from "./in-space.ts";
import { mindIdOf } from "./mind-query.ts";
import { pathId } from "./path-parameters.ts";
import { Resource } from "./route.ts";
import { badPage, listOf, pageQuery } from "./route-parts.ts";

const OneAgent = z.object({ agent: Agent });
const params = { agentId: pathId("ent", "the agent: its entity id") };

/**
 * Makes the agent's own object under an entity of the directory, and gives it the workspace's secrets. A secret may
 * change on the way, so it is given them again until they are those that it has.
 */
const createAgent = async (context: HttpContext, id: string, config: AgentConfig): Promise<Agent> => {
  const { workspaceId } = context.var.principal;
  const stub = agentAt(context, id);
  const creation = await stub.create({ id, workspaceId, config });
  const isThere = !creation.ok && creation.problem.code === "conflict";
  const agent = unwrap(isThere ? await stub.describe(workspaceId) : creation);
  const { limits } = unwrap(await limitsOf(workspaceOf(context)));
  if (limits?.maxTokensPerDay !== undefined) unwrap(await stub.meterTokens(workspaceId, true));
  for (let given = "{}"; ; ) {
    const sealed = unwrap(await workspaceOf(context).sealedSecrets());
    const now = JSON.stringify(sealed);
    if (now === given) return agent;
    unwrap(await stub.setSecrets(workspaceId, sealed));
    given = now;
  }
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

const requireAgent = async (context: HttpContext, id: string): Promise<{ name: string }> => {
  const entity = unwrap(await workspaceOf(context).entity(id));
  if (entity.type !== "agent") throw new ColloquyError("not_found", "There is no such agent in this workspace.");
  return entity;
};

export const agents = new Resource("Agents");

agents.route("POST /v1/agents", {
  summary: "Create an agent",
  access: "workspace",
  body: AgentConfig,
  idempotent: true,
  status: 201,
  answers: [OneAgent, "The agent"],
  problems: ["name_taken", "limit_reached", "unknown_reference"],
  handle: ({ context, principal, body: config, idempotencyKey, once }) =>
    once(async (newId) => {
      const workspace = workspaceOf(context);
      await checkSends(principal, workspace, sendsOf(config, modelsOf(config)));
      await checkModels(context.env, workspace, modelsOf(config));
      await checkApprovers(workspace, config.tools);
      const newAgentId = newId("ent");
      unwrap(await agentAt(context, newAgentId).check(config));
      const { id } = unwrap(await workspace.createAgentEntity(newAgentId, config.name));
      // Under a key the next try finishes what this one began; without one nobody would, so the name is given back.
      const agent = await orTakeBack(
        () => createAgent(context, id, config),
        async () => idempotencyKey !== undefined || workspace.removeEntity(id),
      );
      return { agent };
    }),
});

agents.route("GET /v1/agents", {
  summary: "The workspace's agents, oldest first",
  access: "workspace",
  query: pageQuery(),
  answers: [listOf(AgentListItem), "A page"],
  problems: badPage,
  handle: async ({ context, query }) => {
    const page = unwrap(await workspaceOf(context).entities({ ...query, type: "agent" }));
    const items = page.items.map(({ id, name, createdAt }) => ({ id, name, createdAt }));
    return { items, nextCursor: page.nextCursor };
  },
});

agents.route("GET /v1/agents/{agentId}", {
  summary: "One agent, with its config and what it does now",
  access: "workspace",
  mind: true,
  params,
  answers: [OneAgent, "The agent"],
  problems: ["not_found"],
  handle: async ({ agent }) => ({ agent: await agent.describe() }),
});

agents.route("GET /v1/agents/{agentId}/compartments", {
  summary: "What an agent has from confidential spaces: one compartment for each that it is or was in",
  description: "`?space=` of the mind's routes takes their `spaceId`. An admin sees those that the agent is in.",
  access: "workspace",
  params,
  query: pageQuery(),
  answers: [listOf(Compartment), "A page"],
  problems: ["not_found", ...badPage],
  handle: async ({ context, agent, principal, workspaceId, params: { agentId }, query }) => {
    const { items, nextCursor } = await agent.compartments(query);
    const shown = items.filter(({ left }) => principal.kind === "key" || !left);
    const views = shown.map(async ({ space: { id, name, members }, left }) => {
      const isReader = mayRead({ confidential: true, members }, principal);
      const begun = isReader && (await agentAt(context, mindIdOf(context, agentId, id)).describe(workspaceId));
      const since = begun && (begun.ok || begun.problem.code !== "not_found") ? unwrap(begun).createdAt : undefined;
      return { spaceId: id, name, state: left ? ("resting" as const) : ("active" as const), ...(since && { since }) };
    });
    return { items: await Promise.all(views), nextCursor };
  },
});

agents.route("PATCH /v1/agents/{agentId}", {
  summary: "Change an agent's config",
  description:
    'It takes effect at the next run. `limits` and `context` merge field by field. Models, and tools and MCP servers of `confidential: "allowed"`, are told what is said in the agent\'s confidential spaces: an admin sets them, and loosens `toolRules` of such tools, who is in each of these, or a secret key.',
  access: "workspace",
  params,
  body: UpdateAgent,
  answers: [OneAgent, "The agent"],
  problems: ["not_found", "name_taken", "unknown_reference"],
  handle: async ({ context, agent, principal, params: { agentId }, body: changes }) => {
    const workspace = workspaceOf(context);
    const before = await requireAgent(context, agentId);
    const { name } = changes;
    await checkModels(context.env, workspace, modelsIn(changes));
    if (changes.tools) await checkApprovers(workspace, changes.tools);
    const sends = sendsOf(changes, modelsIn(changes));
    if (principal.kind !== "key" && sends.length > 0) {
      const { config } = await agent.describe();
      await checkSends(principal, workspace, sends, sendsOf(config, modelsOf(config)));
    }
    // A name is told in every space at once, so nothing else may be wrong by then.
    const exposure = await agent.checkUpdate(changes);
    await requireReaderOfAll(context, exposure);
    if (name !== undefined) {
      // The directory first: it alone knows whether the name is free.
      unwrap(await workspace.updateEntity(agentId, { name }));
    }
    const updated = await orTakeBack(
      async () => agent.update(changes, principal.kind === "key" ? undefined : exposure.spaces, actorOf(principal)),
      async () => name === undefined || workspace.updateEntity(agentId, { name: before.name }),
    );
    return { agent: updated };
  },
});

agents.route("DELETE /v1/agents/{agentId}", {
  summary: "Delete an agent",
  description: "Its runs end and it leaves all its spaces; its messages stay.",
  access: "workspace",
  params,
  problems: ["not_found"],
  handle: async ({ context, principal, workspaceId, params: { agentId } }) => {
    await requireAgent(context, agentId);
    // The directory first: what is cut off after that, its workspace does.
    unwrap(await workspaceOf(context).removeEntity(agentId, actorOf(principal)));
    forgetStanding(workspaceId, agentId);
    // Here it is ended at once, mostly: whoever deleted it finds it ended.
    await agentAt(context, agentId)
      .remove(workspaceId)
      .catch((error: unknown) => log.warn("agent.ends_later", { agentId, reason: String(error) }));
  },
});
