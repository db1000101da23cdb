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

/** The beginning of all inputs between two compactions or changes of config. */
export type Window = {
  instructions: string;
  summary: string | null;
  /** The core blocks that are in the instructions, as they were when it began: their texts by key. */
  blocks?: HeadBlocks;
};

/** A message of the running cycle that tells of other agents, and its section. */
export type Telling = { section: "shared_blocks" | "activity"; message: ModelMessage };

/** The data of one step's input. The agent's state is in its window and its cycle, as of their beginning. */
export type ConsciousnessSnapshot = InputParts & {
  continuity: "consciousness";
  window: Window;
  /** The state that the running cycle was told. */
  told?: ToldState | undefined;
  /** Blocks and tellings that did not fit. */
  withheld?: Dropped[];
  /** The messages of `own` that tell of other agents. */
  tellings?: Telling[];
  past: Cycle[];
  /** The running cycle so far, its inbox message first. */
  own: ModelMessage[];
};
