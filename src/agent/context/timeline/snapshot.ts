import type { ModelMessage } from "ai";
import type { Message } from "../../../protocol/message.ts";
import type { RunStatus } from "../../../protocol/run.ts";
import type { Answers, InboxData } from "../../records.ts";
import type { AgentState, InputParts, SpaceRef } from "../agent-state.ts";

/** A tool call of this agent, with its output if that is known. */
export type Action = { toolName: string; input: unknown; output?: unknown };

/** One entry of a space's history as this agent reads it. */
export type HistoryEntry =
  /** `seen`: acknowledged by a committed run. The agent's own messages count as seen anyway. */
  | { kind: "message"; message: Message; seen: boolean }
  /** A silent action of the agent, which only it sees. `at` is ISO 8601. */
  | { kind: "action"; at: string; action: Action };

/** A model's summary of `messages` messages of a space, of which the last is the space's `upTo`th. */
export type HistorySummary = { text: string; messages: number; upTo: number };

/** The newest entries of a space, oldest first, of `total` messages that it has in all. */
export type History = { space: SpaceRef; entries: HistoryEntry[]; total: number; summary?: HistorySummary | undefined };

/** A run of this agent that is under way or waits. */
export type ActiveRun = {
  runId: string;
  status: RunStatus;
  isThis: boolean;
  /** The sender, plan or service that it answers, with the message's text, the instruction or the payload's JSON. */
  begunBy: { type: InboxData["type"]; name: string; spaceName?: string | undefined; text: string };
  /** Its question and whose answers it waits for, or its call and what that waits for. */
  waiting?:
    | { text: string; spaceName: string; names: string[] }
    | { call: Action; spaceName: string | undefined; awaits: "approval" | "answer" | "server" }
    | undefined;
};

/** A run that goes on after a wait, in a fresh invocation. */
export type Resume = Answers & {
  /** Its earlier calls, oldest first. */
  soFar: Action[];
};

/** `why`: the trigger's space, where the run was when it began to wait, or where the call was made whose result came. */
export type ActiveSpace = SpaceRef & { why: "trigger" | "wait" | "call" };

/** The data of one invocation's input. `now` is when it began, so that its steps share a prefix. */
export type TimelineSnapshot = InputParts & {
  continuity: "timeline";
  /** ISO 8601. */
  now: string;
  state: AgentState;
  /** The history of the trigger's space, and of the space where it waited, if another. Empty for a plan or a service. */
  histories: History[];
  /** This one too. */
  activeRuns: ActiveRun[];
  /** How many more runs wait for tools. */
  moreRuns?: number;
  /** The event that this run is for. */
  trigger: InboxData;
  activeSpace: ActiveSpace | null;
  resume: Resume | null;
  /** The model messages of this invocation so far: its steps and their results. */
  own: ModelMessage[];
  /** Estimated tokens of the input that the model refused as too long, where this one is composed instead. */
  refused?: number | undefined;
};
