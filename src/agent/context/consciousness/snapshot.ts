import type { ModelMessage } from "ai";
import type { DeliveredMessage } from "../../../protocol/rpc.ts";
import type { Dropped, HeadBlocks, ToldState } from "../../records.ts";
import type { InputParts } from "../input-parts.ts";

/** One event of a batch, as the inbox keeps it. */
export type InboxEvent =
  | { type: "space_message"; eventId: string; spaceName: string; delivered: DeliveredMessage }
  | { type: "plan"; eventId: string; planName: string; instruction: string }
  | { type: "service"; eventId: string; serviceName: string; payload: unknown }
  | { type: "tool_result"; eventId: string; tool: string; toolCallId: string; result: unknown };

/** One earlier cycle that the agent lived through: its model messages, untouched. */
export type Cycle = { runId: string; messages: ModelMessage[] };

/** A stretch of consciousness between two compactions (or changes of config): what its inputs begin with. */
export type Window = {
  instructions: string;
  summary: string | null;
  /** The core blocks that are in the instructions, as they were when it began: their texts by key. */
  blocks?: HeadBlocks;
};

/** A message of the running cycle that tells of others: the section that it is. */
export type Telling = { section: "shared_blocks" | "activity"; message: ModelMessage };

/** All that one step is given. What the agent is, has and knows is in its window and in its cycle as they were begun. */
export type ConsciousnessSnapshot = InputParts & {
  continuity: "consciousness";
  window: Window;
  /** The state that the running cycle was told, or left out where none was. */
  told?: ToldState | undefined;
  /** What of its blocks, and of what it was told of others, did not fit. */
  withheld?: Dropped[];
  /** Those of `own` that tell of others. */
  tellings?: Telling[];
  past: Cycle[];
  /** The running cycle so far, its inbox message first. */
  own: ModelMessage[];
};
