import type { AgentConfig, UpdateAgent } from "../../protocol/agent.ts";
import type { Env } from "../../shared/env.ts";
import { startHeartbeat } from "../plans/beats.ts";
import { type Mind, reconsider } from "../runtime.ts";
import { checkedConfig } from "../tools/check-config.ts";
import { mergeConfig } from "./merge-config.ts";

/** A config whose tools can be used where this deployment runs. Throws `invalid_request`. */
export const usableConfig = (config: AgentConfig, { ENVIRONMENT }: Env): AgentConfig =>
  checkedConfig(config, { allowLoopback: ENVIRONMENT === "development" });

/** The agent's config as it would be with the changes. Throws `invalid_request` where it would not be one. */
export const changedConfig = ({ parts }: Mind, changes: UpdateAgent): AgentConfig =>
  usableConfig(mergeConfig(parts.identity.get().config, changes), parts.env);

/** Changes the config, and what follows from it. Throws as `changedConfig`. */
export const configure = (mind: Mind, changes: UpdateAgent): void => {
  const { parts, timers } = mind;
  const config = changedConfig(mind, changes);
  parts.transaction(() => {
    const before = parts.identity.get().config.continuity;
    if (before === "consciousness" && config.continuity === "timeline") parts.spaces.settleAll();
    parts.identity.update({ config, updatedAt: parts.clock.now() });
    if (changes.heartbeat !== undefined) startHeartbeat(timers, config.heartbeat, parts.clock.now());
    if (changes.mcp !== undefined) parts.mcp.configured();
    if (changes.embedder !== undefined) parts.search.configured();
  });
  reconsider(mind);
};
