import type { AgentConfig } from "../../protocol/agent.ts";
import type { WorkspaceRpc } from "../../protocol/rpc.ts";
import { unwrap } from "../../shared/errors.ts";

/** The secrets and people that an agent's config names. After an import they may be missing. */
const inText = /\$\{secret\.([A-Za-z0-9_-]{1,64})\}/g;

/** Secrets of models, of signatures, and in templates. */
export const secretsNamed = (config: AgentConfig): string[] => {
  const names = new Set<string>();
  const look = (value: unknown): void => {
    if (typeof value === "string") for (const [, name = ""] of value.matchAll(inText)) names.add(name);
    else if (Array.isArray(value)) value.forEach(look);
    else if (typeof value === "object" && value !== null) Object.values(value).forEach(look);
  };
  look([config.tools, config.mcp]);
  for (const model of [config.model, config.embedder, config.context.compaction.model]) {
    if (model && "apiKeySecret" in model && model.apiKeySecret !== undefined) names.add(model.apiKeySecret);
  }
  for (const tool of config.tools) {
    if (tool.executionType === "external" && tool.execution) names.add(tool.execution.secret);
  }
  return [...names].sort();
};

export const missingSecrets = async (
  workspace: Pick<WorkspaceRpc, "secretNames">,
  config: AgentConfig,
): Promise<string[]> => {
  const named = secretsNamed(config);
  if (named.length === 0) return [];
  const there = unwrap(await workspace.secretNames());
  return named.filter((name) => !there.includes(name));
};

/** Approvers and answerers who are no people of this workspace. */
export const missingPeople = async (
  workspace: Pick<WorkspaceRpc, "entity">,
  config: AgentConfig,
): Promise<string[]> => {
  const named = new Set(
    config.tools.flatMap((tool) =>
      tool.executionType === "space" ? (tool.answer.by ?? []) : (tool.approval?.approvers ?? []),
    ),
  );
  const missing: string[] = [];
  for (const id of named) {
    const found = await workspace.entity(id);
    if (!found.ok && found.problem.code !== "not_found") unwrap(found);
    if (!found.ok || found.value.type !== "human") missing.push(id);
  }
  return missing;
};
