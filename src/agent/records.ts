import type { ModelMessage } from "ai";
import type { AgentConfig } from "../protocol/agent.ts";
import type { Message, Origin } from "../protocol/message.ts";
import type { DeliveredMessage, Root } from "../protocol/rpc.ts";
import type { ErrorCode } from "../shared/errors.ts";

/** What the agent's tables hold as JSON. */
export type Failure = { code: ErrorCode; message: string };

export type InboxData =
  | { type: "space_message"; spaceName: string; delivered: DeliveredMessage; answers?: Question[] }
  | { type: "plan"; planId: string; planName: string; instruction: string; scheduledAt: string; root: Root }
  | { type: "service"; serviceName: string; payload: unknown; root: Root; blockRefs?: string[] | undefined }
  | {
      type: "tool_result";
      toolCallId: string;
      tool: string;
      /** The value that the model is given; for a failed call, its error. */
      result: unknown;
      failed: boolean;
      /** Nobody answered in time: it wakes only as often as its root may (B1). */
      expired?: true;
      /** A server answered once its run had gone on: it wakes only as often as its root may (B1). */
      late?: true;
      /** A cycle's question was not answered by all whom it asked. */
      unanswered?: Unanswered;
      /** Where the agent was when it called. */
      activeSpaceId: string | null;
      root: Root;
    };

/**
 * An origin with its words, as the agent knows it by its journal. For a message: its space, sender and text. For a run:
 * the name of what began it, and the instruction, the payload's beginning or several events as JSON. Others are told
 * the reference alone (C7).
 */
export type KnownOrigin = Origin & { sourceName?: string; sourceEvent?: string | undefined };
export type KnownMessage = Message & { origin?: KnownOrigin | undefined };

/** A message of the agent's own that awaited an answer, and the beginning of its text. */
export type Question = { messageId: string; text: string };

/** An item of a list in a compartment; `open`: it is the open mind's. */
export type Known<Item> = Item & { open?: true };

/** The open mind's items of one kind, beside a compartment's own. The compartment reads them and changes none. */
export type OpenItems<Item> = {
  withOpen(own: Item[]): Known<Item>[];
  /** Throws `conflict` for the name of one that the open mind has and the compartment has not. */
  requireOwn(name: string, own: Item[]): void;
};

/**
 * Who did not answer a question. `late`: their time was up after `afterMs`, or the space became `confidential`. `left`: they left
 * the space. `formerSpaceId`: the space, if the agent itself is in it no longer.
 */
export type Unanswered = {
  question: Question;
  spaceName: string;
  late: string[];
  left: string[];
  confidential?: true;
  afterMs: number;
  formerSpaceId?: string;
};

/**
 * The newest message that a run took of one space, and the oldest if there are several. `taken`: the stretches of the
 * space's log that they are, where others lie between them.
 */
export type Receipt = { spaceId: string; messageId: string; firstMessageId?: string; taken?: [number, number][] };

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
  /** A run has read the answer already, which answers its question too. */
  isRead?: true;
  /** Why no answer comes: it left the space, the agent left, or the space became confidential (C17). */
  left?: true | "agent" | "confidential";
};

/** The outcome of a call that has a row of its own. The model is given `value`. */
export type CallOutcome = {
  status: "complete" | "error" | "expired" | "canceled";
  value: unknown;
  error?: { code: string; message: string };
};

/**
 * The names of the people who approved a call, their entity ids, their notes, when, and the hash of what they saw. Earlier
 * versions stored names and notes alone.
 */
export type CallApproval = { by: string[]; ids?: string[]; notes: string[]; inputHash?: string; at?: number };

/** A server that has claimed a call, by the name that it gave itself; `until` in milliseconds since the epoch. */
export type CallLease = { holder: string; until: number };

/** A call that was begun, and the message as which it shows in a space. */
export type JournalCall = { callId: string; toolName: string; messageId?: string };
export type JournalContent = ModelMessage | JournalCall;

/** Core blocks that stand in the instructions, as they were when their window began: their texts by key. */
export type HeadBlocks = Record<string, string>;

/**
 * What the model was last told of its state: section → the lines by their key. Kept with each run, so that the
 * next one is told only what changed since.
 */
export type ToldState = Record<string, Record<string, string>>;

/** What is fixed for all runs in a window: the ways to speak, the tools beside the built-in ones, and their rules. */
export type Toolset = Pick<AgentConfig, "messaging" | "tools" | "toolRules"> & {
  /** The list of what its MCP servers bring; null if they never brought any. */
  mcpListId: number | null;
  /** Set where it has no tools for its memory. */
  memoryTools?: false;
};

/** A server's tool as the agent has it: bounded, named for the model, ready to be declared. */
export type McpTool = {
  /** Its name for the model. */
  name: string;
  server: string;
  /** Its name at the server. */
  tool: string;
  description: string;
  inputSchema: Record<string, unknown>;
  /** Its server says that calling it again changes nothing more. */
  idempotent: boolean;
};

/** A tool that its server has and the agent has not, and why. */
export type LeftOut = { tool: string; reason: string };

/** Moving average of billed over estimated input tokens, for a model. */
export type Correction = { ratio: number; modelId: string };

/** Tokens of an account. `reserved` has the most that each step under way may cost, by its name (`ordinal:step`). */
export type Account = { spent: number; reserved: Record<string, number> };
