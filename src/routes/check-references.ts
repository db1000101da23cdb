import * as z from "zod";
import type { Env } from "../env/env.ts";
import type { AgentConfig, UpdateAgent } from "../protocol/agent.ts";
import { Compaction } from "../protocol/context-config.ts";
import type { EmbedderConfig, ModelConfig } from "../protocol/model-config.ts";
import type { Principal } from "../protocol/principal.ts";
import type { WorkspaceRpc } from "../protocol/rpc.ts";
import { hostOf } from "../protocol/secret.ts";
import type { ToolConfig } from "../protocol/tool.ts";
import { ColloquyError, unwrap } from "../shared/errors.ts";
import { checkOutgoing } from "../shared/outgoing.ts";
import { sameJson } from "../shared/same-json.ts";
import { secretNames } from "../shared/secret-places.ts";

/** Checks the things that a body refers to: models' addresses, secrets and aliases, people who approve and consent. */
type CheckedEnv = Pick<Env, "MODEL_ALIASES" | "ENVIRONMENT">;
type SecretNames = Pick<WorkspaceRpc, "secretNames">;
type Directory = Pick<WorkspaceRpc, "resolve">;

const Aliases = z.record(z.string(), z.unknown());

const aliasesOf = (env: CheckedEnv): string[] => {
  try {
    return Object.keys(Aliases.parse(JSON.parse(env.MODEL_ALIASES ?? "{}")));
  } catch (cause) {
    const detail = "MODEL_ALIASES of this deployment is not a JSON object: the operator has to correct it.";
    throw new ColloquyError("internal", detail, { cause });
  }
};

/** Refuses a model, or an embedder, that could never be asked. Models stand by their paths in the body. */
export const checkModels = async (env: CheckedEnv, workspace: SecretNames, models: Models): Promise<void> => {
  for (const [path, model] of Object.entries(models)) {
    if (!model) continue;
    if ("alias" in model) {
      if (aliasesOf(env).includes(model.alias)) continue;
      const detail = `The operator has defined no model alias ${JSON.stringify(model.alias)}.`;
      throw new ColloquyError("unknown_reference", detail);
    }
    if (model.provider !== "openai-compatible") continue;
    const verdict = checkOutgoing(model.baseUrl, { allowLoopback: env.ENVIRONMENT === "development" });
    if (!verdict.ok) {
      throw new ColloquyError("invalid_request", `${path}.baseUrl cannot be used: ${verdict.reason}.`, {
        issues: [{ path: `${path}.baseUrl`, message: verdict.reason }],
      });
    }
    const secret = model.apiKeySecret;
    if (secret === undefined || unwrap(await workspace.secretNames()).includes(secret)) continue;
    const detail = `The workspace has no secret ${JSON.stringify(secret)}: write it with PUT /v1/workspace/secrets/${secret}.`;
    throw new ColloquyError("unknown_reference", detail);
  }
};

/** The models of a config, by their paths. */
export const modelsOf = ({ model, embedder, context }: Pick<AgentConfig, "model" | "embedder" | "context">) => ({
  model,
  embedder,
  "context.compaction.model": context.compaction.model,
});

/** The models that a patch names, by their paths; a compaction that is none is refused with the whole config. */
export const modelsIn = ({ model, embedder, context }: UpdateAgent) => ({
  model,
  embedder,
  "context.compaction.model": Compaction.safeParse(context?.compaction).data?.model,
});

/** `request`: of a secret that is no header, where what else is sent says what its host does with it. */
type Send = { secret: string; url: string; request?: object };
type Models = { [path: string]: ModelConfig | EmbedderConfig | null | undefined };

/** Where the things of a config, or of what is changed of one, send secrets. */
export const sendsOf = (config: Pick<UpdateAgent, "tools" | "mcp">, models: Models): Send[] => {
  const ofTools = (config.tools ?? []).flatMap((tool) => {
    if (tool.executionType !== "gateway" && tool.executionType !== "external") return [];
    const { execution } = tool;
    if (!execution) return [];
    const { url, headers } = execution;
    const own = "secret" in execution ? [execution.secret] : [];
    const inside = secretNames({ ...execution, headers: {} }).map((secret) => ({ secret, url, request: execution }));
    return [...[...own, ...secretNames(headers)].map((secret) => ({ secret, url })), ...inside];
  });
  const ofServers = (config.mcp?.servers ?? []).flatMap(({ url, headers }) =>
    secretNames(headers).map((secret) => ({ secret, url })),
  );
  return [...ofTools, ...ofServers, ...ofModels(Object.values(models))];
};

const ofModels = (models: (ModelConfig | EmbedderConfig | null | undefined)[]) =>
  models.flatMap((model) =>
    model && "apiKeySecret" in model && model.apiKeySecret !== undefined
      ? [{ secret: model.apiKeySecret, url: model.baseUrl }]
      : [],
  );

/**
 * An admin may not read secrets, so no setting of an admin's sends one where it did not go before (L9). That is a host
 * that the secret does not name, or a body or an address, which a host may keep and show. Throws `forbidden`.
 */
export const checkSends = async (
  principal: Principal,
  workspace: Pick<WorkspaceRpc, "secrets">,
  sends: Send[],
  before: Send[] = [],
): Promise<void> => {
  if (principal.kind === "key" || sends.length === 0) return;
  const secrets = unwrap(await workspace.secrets());
  for (const { secret, url, request } of sends) {
    const host = hostOf(url);
    const isSame = (each: Send) => request === undefined || sameJson(each.request, request);
    if (before.some((each) => each.secret === secret && hostOf(each.url) === host && isSame(each))) continue;
    if (!request && secrets.find(({ name }) => name === secret)?.hosts?.includes(host)) continue;
    const where = request ? "in a body or an address: put it in a header, or" : `to ${host}:`;
    const other = request ? "" : `, or to write the secret's hosts with PUT /v1/workspace/secrets/${secret}`;
    const detail = `An admin cannot have the secret "${secret}" sent ${where} ask for a secret key to set this${other}.`;
    throw new ColloquyError("forbidden", detail);
  }
};

/** Refuses agents that are none of this workspace. */
export const checkAgents = async (workspace: Directory, ids: string[]): Promise<void> => {
  const found = unwrap(await workspace.resolve([...new Set(ids)]));
  const other = found.find(({ type }) => type !== "agent");
  if (other) throw new ColloquyError("unknown_reference", `${other.id} is no agent: name agents of this workspace.`);
};

type Named = { id: string; path: string };

/** Refuses entities that are not there, or are no people. */
const requirePeople = async (workspace: Directory, named: Named[], detail: string): Promise<void> => {
  if (named.length === 0) return;
  const entities = unwrap(await workspace.resolve([...new Set(named.map(({ id }) => id))]));
  const people = new Set(entities.flatMap(({ id, type }) => (type === "human" ? [id] : [])));
  const issues = named.filter(({ id }) => !people.has(id)).map(({ path }) => ({ path, message: "must be a person" }));
  if (issues.length > 0) throw new ColloquyError("invalid_request", detail, { issues });
};

const approversOf = (tool: ToolConfig, index: number): Named[] => {
  const [ids = [], place] =
    tool.executionType === "space" ? [tool.answer.by, "answer.by"] : [tool.approval?.approvers, "approval.approvers"];
  return ids.map((id, at) => ({ id, path: `tools.${index}.${place}.${at}` }));
};

/** Refuses tools that ask somebody who could never answer. */
export const checkApprovers = (workspace: Directory, tools: ToolConfig[]): Promise<void> =>
  requirePeople(
    workspace,
    tools.flatMap(approversOf),
    "Only people can approve and answer: name people of this workspace.",
  );

/** Refuses a partner that could never consent. */
export const checkPartner = (workspace: Directory, partnerId: string | null | undefined): Promise<void> =>
  requirePeople(
    workspace,
    partnerId ? [{ id: partnerId, path: "partnerEntityId" }] : [],
    "Only people can consent: name a person of this workspace.",
  );

/** The secrets that a config names: of models, of signatures, and in templates. */
export const secretsNamed = (config: AgentConfig): string[] => {
  const { tools, mcp } = config;
  const inTexts = secretNames([tools, mcp]);
  const ofItsModels = Object.values(modelsOf(config)).map((one) => one && "apiKeySecret" in one && one.apiKeySecret);
  const ofTools = tools.map((tool) => tool.executionType === "external" && tool.execution?.secret);
  return [...new Set([...inTexts, ...ofItsModels, ...ofTools].filter((name) => typeof name === "string"))].sort();
};

/** Names in an imported config that its new workspace lacks: secrets, and people who approve and answer. */
export const missingIn = async (
  workspace: Pick<WorkspaceRpc, "secretNames" | "entity">,
  config: AgentConfig,
): Promise<{ secrets: string[]; people: string[] }> => {
  const there = new Set(unwrap(await workspace.secretNames()));
  const people: string[] = [];
  for (const id of new Set(config.tools.flatMap(approversOf).map((named) => named.id))) {
    const found = await workspace.entity(id);
    if (!found.ok && found.problem.code !== "not_found") unwrap(found);
    if (!found.ok || found.value.type !== "human") people.push(id);
  }
  return { secrets: secretsNamed(config).filter((name) => !there.has(name)), people };
};
