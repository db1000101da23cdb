import type { ModelMessage } from "ai";
import type { AgentConfig } from "../../protocol/agent.ts";
import type { Member } from "../../protocol/entity.ts";
import type { Goal, Memory } from "../../protocol/mind.ts";
import type { DeliveredMessage } from "../../protocol/rpc.ts";

/** One event of a batch, as the inbox keeps it. */
export type InboxEvent =
  | { type: "space_message"; eventId: string; spaceName: string; delivered: DeliveredMessage }
  | { type: "service"; eventId: string; serviceName: string; payload: unknown };

export type KnownSpace = { id: string; name: string; members: Member[] };

/** What an agent knows of itself and its surroundings, as data. */
export type AgentState = {
  agentId: string;
  spaces: KnownSpace[];
  goals: Goal[];
  memories: Memory[];
};

/**
 * What the model was last told of that state: section → the lines by their key. Kept with each run, so that the
 * next one is told only what changed since.
 */
export type ToldState = Record<string, Record<string, string>>;

/** One earlier cycle that the agent lived through: its model messages, untouched. */
export type Cycle = { runId: string; messages: ModelMessage[] };

/** A stretch of consciousness between two compactions (or changes of config): what its inputs begin with. */
export type Window = { instructions: string; summary: string | null };

/** All that `compose` needs. The same snapshot always gives the same bytes. */
export type Snapshot = {
  config: AgentConfig;
  window: Window;
  past: Cycle[];
  /** The running cycle so far, its inbox message first. */
  own: ModelMessage[];
};
