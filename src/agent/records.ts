import type { ModelMessage } from "ai";
import type { AgentConfig } from "../protocol/agent.ts";
import type { ContextLimits } from "../protocol/context-config.ts";
import type { DeliveredMessage, Root } from "../protocol/rpc.ts";
import type { Usage } from "../protocol/run.ts";
import type { ErrorCode } from "../shared/errors.ts";

/** What the agent's tables hold as JSON. */
export type Failure = { code: ErrorCode; message: string };

export type InboxData =
  | { type: "space_message"; spaceName: string; delivered: DeliveredMessage }
  | { type: "plan"; planId: string; planName: string; instruction: string; scheduledAt: string; root: Root }
  | { type: "service"; serviceName: string; payload: unknown; root: Root; blockRefs?: string[] | undefined }
  | {
      type: "tool_result";
      toolCallId: string;
      tool: string;
      /** What the model is given; of a call that failed, its error. */
      result: unknown;
      failed: boolean;
      /** Nobody answered in time: it wakes only as often as its root may (B1). */
      expired?: true;
      /** A server answered once its run had gone on: it wakes only as often as its root may (B1). */
      late?: true;
      /** Where the agent was when it called. */
      activeSpaceId: string | null;
      root: Root;
    };

/** What a run took of one space: its newest message, and its oldest where there are several. */
export type Receipt = { spaceId: string; messageId: string; firstMessageId?: string };

/** Where the journal belongs to other runs while one rests: `from` its first row, `to` its last, null as yet. */
export type JournalRest = { from: number; to: number | null };

/** A root that the agent began itself, and when. */
export type OwnRoot = { id: string; beganAt: number };

/**
 * Somebody whose answer is awaited, and the message that answered. `held`: what it said while the question was being
 * asked, whose place in the log was not known yet.
 */
export type Awaited = {
  id: string;
  name: string;
  replyId: string | null;
  held?: { messageId: string; seq: number }[];
  left?: true;
};

/** What came of a call that has a row of its own. `value` is what the model is given. */
export type CallOutcome = {
  status: "complete" | "error" | "expired" | "canceled";
  value: unknown;
  error?: { code: string; message: string };
};

/** The people who approved a call, and their notes. */
export type CallApproval = { by: string[]; notes: string[] };

/** A server that has claimed a call, by the name that it gave itself; `until` in milliseconds since the epoch. */
export type CallLease = { holder: string; until: number };

export type JournalCall = { callId: string; toolName: string };
export type JournalContent = ModelMessage | JournalCall;

/** One tool call as the model made it. `invalid` says why it cannot be executed. */
export type CallRequest = {
  callId: string;
  index: number;
  toolName: string;
  input: unknown;
  invalid?: { code: "tool_unknown" | "tool_input_invalid"; message: string } | undefined;
};

export type AssistantMeta = {
  kind: "assistant";
  text: string;
  calls: CallRequest[];
  usage: Usage;
  /** Estimated before correction, for the correction itself. */
  estimatedInput: number;
  /** Ordinal of the first run whose cycle this step's input held; with the window it tells the exact input. */
  firstCycle: number;
  windowId: number;
  modelId: string;
  /** What the step's input was made of, its corrected tokens, and the limits that it was composed within. */
  input: MadeOf & { tokens: number; limits: ContextLimits };
  durationMs: number;
  finishReason: string;
};
/** So many messages of a space were left to its history, the model was told. */
export type LeftToHistory = { id: string; messages: number };

/** The newest message of a space that the model was shown. `upTo` is its place in the log. */
export type Shown = { spaceId: string; upTo: number };

export type ResultMeta = {
  kind: "result";
  callId: string;
  toolName: string;
  error: boolean;
  activeSpaceId?: string | null;
  /** The call asks for answers: the run waits for them once its step is done. */
  waits?: true;
  /** It broke a tool rule and was not executed. */
  refused?: true;
  shown?: Shown[];
};
/** What was left out of an input, and by which rule. */
export type Dropped = { name: string; reason: string };

/** Core blocks that stand in the instructions, as they were when their window began: their texts by key. */
export type HeadBlocks = Record<string, string>;

/**
 * What the model was last told of its state: section → the lines by their key. Kept with each run, so that the
 * next one is told only what changed since.
 */
export type ToldState = Record<string, Record<string, string>>;

/** What came of the questions that a run waited for. */
export type Answers = {
  /** Who answered; their messages are in the history. */
  replies: { messageId: string; name: string }[];
  /** Names of those who did not answer in time. */
  timedOut: string[];
  /** Names of those who left the space before they answered. */
  gone?: string[];
};

/** What an input is made of, its texts aside. Tokens are estimates before correction. */
export type MadeOf = { sections: { name: string; tokens: number }[]; dropped: Dropped[] };

/** `made`: of a timeline's input, which is journaled as it was composed; in the first of its messages. */
export type InboxMeta = {
  kind: "inbox";
  lines: string[];
  shown?: Shown[];
  history?: LeftToHistory[];
  made?: MadeOf;
  /** Who answered, where the run goes on after a wait. */
  answers?: Answers;
  /** The input before it was refused as too long. */
  shortened?: true;
  /** Of a cycle's beginning, which is composed anew with each step, what did not fit it. */
  dropped?: Dropped[];
};
/** An exit was answered with the tool rule that it broke. */
export type ReminderMeta = { kind: "reminder" };
export type PreviewMeta = { kind: "preview"; upTo: number };
/** A living agent is told of others, beside its inbox message; what of that did not fit. */
export type ToldMeta = { kind: "told"; section: ToldSection; dropped?: Dropped[] };
export type ToldSection = "shared_blocks" | "activity";
export type JournalMeta = AssistantMeta | ResultMeta | InboxMeta | PreviewMeta | ReminderMeta | ToldMeta;

/** What is fixed for all runs in a window: the ways to speak, the tools beside the built-in ones, and their rules. */
export type Toolset = Pick<AgentConfig, "messaging" | "tools" | "toolRules"> & {
  /** The list of what its MCP servers bring; null if they never brought any. */
  mcpListId: number | null;
  /** Set where it has no tools for its memory. */
  memoryTools?: false;
};

/** A server's tool as the agent has it: bounded, named for the model, ready to be declared. */
export type McpTool = {
  /** What the model calls it by. */
  name: string;
  server: string;
  /** What its server calls it by. */
  tool: string;
  description: string;
  inputSchema: Record<string, unknown>;
  /** Its server says that calling it again changes nothing more. */
  idempotent: boolean;
};

/** A tool that its server has and the agent has not, and why. */
export type LeftOut = { tool: string; reason: string };
