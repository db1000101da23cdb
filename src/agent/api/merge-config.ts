import { AgentConfig, type UpdateAgent } from "../../protocol/agent.ts";
import { ColloquyError } from "../../shared/errors.ts";

const withoutNull = (fields: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));

/** A config with a patch's parts in it; `limits` and `context` merge field by field. All is parsed again. */
export const mergeConfig = (config: AgentConfig, changes: UpdateAgent): AgentConfig => {
  const merged = AgentConfig.safeParse({
    ...config,
    ...changes,
    heartbeat: changes.heartbeat === undefined ? config.heartbeat : (changes.heartbeat ?? undefined),
    embedder: changes.embedder === undefined ? config.embedder : (changes.embedder ?? undefined),
    limits: { ...config.limits, ...changes.limits },
    context: withoutNull({ ...config.context, ...changes.context }),
  });
  if (merged.success) return merged.data;
  const issues = merged.error.issues.map(({ path, message }) => ({ path: path.join("."), message }));
  throw new ColloquyError("invalid_request", "the config would not be valid with these changes", { issues });
};
