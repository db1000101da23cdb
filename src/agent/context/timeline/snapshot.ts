import type { ModelMessage } from "ai";
import type { EntityType } from "../../../protocol/entity.ts";
import type { Message } from "../../../protocol/message.ts";
import type { TriggerSource } from "../../../protocol/rpc.ts";
import type { RunStatus } from "../../../protocol/run.ts";
import type { Answers } from "../../records.ts";
import type { AgentState, SpaceRef } from "../agent-state.ts";
import type { InputParts } from "../input-parts.ts";

/** A tool that this agent called, with what came of it where that is known. */
export type Action = { toolName: string; input: unknown; output?: unknown };

/** One entry of a space's history as this agent reads it. */
export type HistoryEntry =
  /** `seen`: acknowledged by a committed run. The agent's own messages count as seen anyway. */
  | { kind: "message"; message: Message; seen: boolean }
  /** What the agent did there in silence. Only it sees that. `at` is ISO 8601. */
  | { kind: "action"; at: string; action: Action };

/** What a model made of `messages` of a space, the last of which is the `upTo`th that it has. */
export type HistorySummary = { text: string; messages: number; upTo: number };

/** The newest entries of a space, oldest first, of `total` messages that it has in all. */
export type History = { space: SpaceRef; entries: HistoryEntry[]; total: number; summary?: HistorySummary | undefined };

/** Why a run runs. Times are ISO 8601. */
export type Trigger =
  | {
      type: "space_message";
      triggerSource: Exclude<TriggerSource, "none">;
      space: SpaceRef;
      sender: { id: string; name: string; type: EntityType };
      text: string;
      messageId: string;
      timestamp: string;
      /** Shown where messaging is threaded; never true for `proactive_router`. */
      senderExpectsReply: boolean;
    }
  | { type: "plan"; plan: { id: string; name: string }; instruction: string; scheduledAt: string }
  | { type: "service"; serviceName: string; payload: unknown }
  /** What came of a call that an earlier run made. */
  | { type: "tool_result"; tool: string; toolCallId: string; result: unknown };

/** A run of this agent that is under way or waits. */
export type ActiveRun = {
  runId: string;
  status: RunStatus;
  isThis: boolean;
  /** The sender, plan or service that it answers, with the message's text, the instruction or the payload's JSON. */
  begunBy: { type: Trigger["type"]; name: string; spaceName?: string | undefined; text: string };
  /** What it said and whose answers it waits for; or what it called, and what has to come before it goes on. */
  waiting?:
    | { text: string; spaceName: string; names: string[] }
    | { call: Action; spaceName: string | undefined; awaits: "approval" | "answer" | "server" }
    | undefined;
};

/** A run that goes on after a wait, in a fresh invocation. */
export type Resume = Answers & {
  /** What it had done before, oldest first. */
  soFar: Action[];
};

/** `why`: the trigger's space, where the run was when it began to wait, or where the call was made whose result came. */
export type ActiveSpace = SpaceRef & { why: "trigger" | "wait" | "call" };

/** All that one invocation of a timeline run is given. `now` is when it began, so that its steps share a prefix. */
export type TimelineSnapshot = InputParts & {
  continuity: "timeline";
  /** ISO 8601. */
  now: string;
  state: AgentState;
  /** Of the trigger's space; then, where it waited in another one, of that. Empty for a plan or a service. */
  histories: History[];
  /** This one too. */
  activeRuns: ActiveRun[];
  /** How many more wait for tools, beside those. */
  moreRuns?: number;
  trigger: Trigger;
  activeSpace: ActiveSpace | null;
  resume: Resume | null;
  /** The model messages of this invocation so far: its steps and their results. */
  own: ModelMessage[];
  /** Estimated tokens of the input that the model refused as too long, where this one is composed instead. */
  refused?: number | undefined;
};
