import type { ActionResult, MessageEvent, PromptView, SpaceView } from "./prompt-view.ts";
import type { Tone } from "./tone.ts";
import type { ToolView } from "./tool-view.ts";

export type ToolCall = { toolName: string; input: Record<string, unknown> };

/**
 * A rule's action as a coroutine: it yields tool calls and gets their results. Each step replays it from the cycle so
 * far, so it depends on nothing but the prompt and the results. It returns a few words for the self-summary.
 */
export type Doing = Generator<ToolCall, string, ActionResult>;
type Trying = Generator<ToolCall, boolean, ActionResult>;

/** The response to an event: an action, or the reason for silence. */
export type Handling = { doing: Doing } | { silent: string };

/** One message to be handled within a cycle. */
export type Turn = {
  view: PromptView;
  event: MessageEvent;
  /** The text without the address ("@Name", "Name,") in it. */
  request: string;
  tone: Tone;
  cycle: CycleState;
};

/** The active space and the memories follow what the cycle does. */
export type CycleState = {
  activeSpaceId: string | undefined;
  memories: Map<string, string>;
  /** Messaging is threaded: there are replies and waits. */
  canWait: boolean;
  /** All that it may call. */
  tools: readonly ToolView[];
};

/** Makes a space the active one, if it is not. False: it cannot be entered. */
export function* enter(cycle: CycleState, spaceId: string): Trying {
  if (cycle.activeSpaceId === spaceId) return true;
  const result = yield { toolName: "enter_space", input: { spaceId } };
  if (result.ok) cycle.activeSpaceId = spaceId;
  return result.ok;
}

/** Makes a call in a space, entering it first where needed. False: it could not be made. */
function* callIn(cycle: CycleState, spaceId: string, call: ToolCall): Trying {
  return (yield* enter(cycle, spaceId)) && (yield call).ok;
}

/** Says something in a space. False: it could not be said. */
export const sayIn = (cycle: CycleState, spaceId: string, text: string): Trying =>
  callIn(cycle, spaceId, { toolName: "send_message", input: { text } });

/** Says something of its own accord in a space. `done` or `failed` names it in the summary. */
export function* announce(
  cycle: CycleState,
  spaceId: string,
  text: string,
  { done, failed }: { done: string; failed: string },
): Doing {
  return (yield* sayIn(cycle, spaceId, text)) ? done : failed;
}

/** The words that are said, and their name in the summary. */
export type Said = [text: string, what: string];

/** Answers in the message's space, as a reply where its sender waits for one. */
export function* answer({ cycle, event }: Turn, ...[text, what]: Said): Doing {
  const { spaceId, messageId } = event;
  const reply = { toolName: "send_reply", input: { replyToMessageId: messageId, text } };
  const isSaid = event.isAwaited ? yield* callIn(cycle, spaceId, reply) : yield* sayIn(cycle, spaceId, text);
  return isSaid ? what : `${what}, but it could not be said`;
}

/** Makes a call and says what came of it: `done` with the tone's word for it, or `failed` with the reason. */
export function* callAndTell(
  turn: Turn,
  toolName: string,
  input: ToolCall["input"],
  [text, what]: Said,
  failed: (reason: string) => Said,
  onDone?: () => void,
): Doing {
  const result = yield { toolName, input };
  if (!result.ok) return yield* answer(turn, ...failed(result.message));
  onDone?.();
  return yield* answer(turn, `${turn.tone.done} ${text}`, what);
}

export const spaceOf = ({ view, event }: Turn): SpaceView | undefined =>
  view.spaces.find(({ id }) => id === event.spaceId);

export const toolNamed = ({ cycle }: Turn, name: string): ToolView | undefined =>
  cycle.tools.find((tool) => tool.name.toLowerCase() === name.toLowerCase());

/** One thing that the model can do. The first rule that matches a request does it. */
export type Rule = {
  /** It serves agents that ask by @name too. Two agents that are polite to each other would never end. */
  forAgents: boolean;
  match(turn: Turn): Doing | undefined;
};

/** A rule for requests of a pattern. `doing` gets the texts of the pattern's groups, empty where there is none. */
export const rule = (
  pattern: RegExp,
  doing: (turn: Turn, ...groups: string[]) => Doing | Said | undefined,
  forAgents = true,
): Rule => ({
  forAgents,
  match: (turn) => {
    const found = pattern.exec(turn.request);
    const done = found && doing(turn, ...found.slice(1).map((group = "") => group));
    return Array.isArray(done) ? answer(turn, ...done) : (done ?? undefined);
  },
});
export const ruleForPeople = (pattern: RegExp, doing: Parameters<typeof rule>[1]): Rule => rule(pattern, doing, false);
