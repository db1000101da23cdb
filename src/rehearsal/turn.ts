import type { ActionResult, MessageEvent, PromptView } from "./prompt-view.ts";
import type { Tone } from "./tone.ts";
import type { ToolView } from "./tool-view.ts";

export type ToolCall = { toolName: string; input: Record<string, unknown> };

/**
 * A rule's doing, written as a coroutine: it yields tool calls and gets their results. Decisions are replayed from
 * the cycle so far on every step, so a doing depends on nothing but the prompt and the results it gets. It returns
 * what it did, in a few words, for the self-summary.
 */
export type Doing = Generator<ToolCall, string, ActionResult>;

/** What an event makes the agent do, or why it stays silent. */
export type Handling = { doing: Doing } | { silent: string };

/** One message to be handled within a cycle. `activeSpaceId` and `memories` follow what the cycle did. */
export type Turn = {
  view: PromptView;
  event: MessageEvent;
  /** The text without the address ("@Name", "Name,") in it. */
  request: string;
  tone: Tone;
  cycle: CycleState;
};

export type CycleState = {
  activeSpaceId: string | undefined;
  memories: Map<string, string>;
  /** Whether messaging is threaded: there are replies, and waits. */
  canWait: boolean;
  /** All that it may call. */
  tools: readonly ToolView[];
};

/** Makes a space the active one, if it is not. False: it cannot be entered. */
export function* enter(cycle: CycleState, spaceId: string): Generator<ToolCall, boolean, ActionResult> {
  if (cycle.activeSpaceId === spaceId) return true;
  const result = yield { toolName: "enter_space", input: { spaceId } };
  if (result.ok) cycle.activeSpaceId = spaceId;
  return result.ok;
}

/** Says something in a space, entering it first where needed. False: it could not be said. */
export function* sayIn(cycle: CycleState, spaceId: string, text: string): Generator<ToolCall, boolean, ActionResult> {
  if (!(yield* enter(cycle, spaceId))) return false;
  const result = yield { toolName: "send_message", input: { text } };
  return result.ok;
}

function* reply({ cycle, event }: Turn, text: string): Generator<ToolCall, boolean, ActionResult> {
  if (!(yield* enter(cycle, event.spaceId))) return false;
  const result = yield { toolName: "send_reply", input: { replyToMessageId: event.messageId, text } };
  return result.ok;
}

/**
 * Answers where the message came from, as a reply to it where its sender waits for one; `what` names the answer in the
 * self-summary.
 */
export function* answer(turn: Turn, text: string, what: string): Doing {
  const said = turn.event.isAwaited ? yield* reply(turn, text) : yield* sayIn(turn.cycle, turn.event.spaceId, text);
  return said ? what : `${what}, but it could not be said`;
}

/** One thing that the rehearsal model can do. The first rule that matches a request does it. */
export type Rule = {
  /** Whether it is done for another agent that asks by @name. What is only polite is not: two agents would never end. */
  forAgents: boolean;
  match(turn: Turn): Doing | undefined;
};
