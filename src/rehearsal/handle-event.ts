import { jsonOf } from "../shared/quote.ts";
import { addressOf, withoutAddress } from "./addressed.ts";
import { outcomeInWords } from "./outcome-in-words.ts";
import type {
  AnswerEvent,
  InboxEvent,
  MessageEvent,
  PromptView,
  ServiceEvent,
  ToolResultEvent,
  UnansweredEvent,
} from "./prompt-view.ts";
import { report } from "./rules/ask.ts";
import { acknowledge, cannotAnswer } from "./rules/conversation.ts";
import { doPlan } from "./rules/plans.ts";
import { rules } from "./rules.ts";
import { toneOf } from "./tone.ts";
import { announce, type CycleState, type Handling, type Turn } from "./turn.ts";

const alwaysAnswers = (view: PromptView): boolean => /\balways answer\b/i.test(view.role);

const handleMessage = (event: MessageEvent, view: PromptView, cycle: CycleState): Handling => {
  const address = addressOf(event, view);
  const turn: Turn = {
    view,
    event,
    request: withoutAddress(event.text, view.name),
    tone: toneOf(view.role),
    cycle,
  };
  if (view.resume) return { doing: report(turn) };
  const fromAgent = event.senderKind === "agent";
  const asked = fromAgent ? address === "at" : address !== "none";
  if (asked) {
    for (const rule of rules) {
      const doing = fromAgent && !rule.forAgents ? undefined : rule.match(turn);
      if (doing) return { doing };
    }
  }
  if (alwaysAnswers(view)) return { doing: asked && !fromAgent ? cannotAnswer(turn) : acknowledge(turn) };
  // An agent that waits is told that no rule matches: silence would hold its run until the wait ends.
  if (fromAgent && asked && event.isAwaited) return { doing: cannotAnswer(turn) };
  if (fromAgent) return { silent: asked ? "an agent's statement asks for nothing" : "an agent spoke to others" };
  return asked ? { doing: cannotAnswer(turn) } : { silent: "not addressed to me" };
};

/** The text of an event that has one (by a webhook's template); else the whole payload. */
const wordsOf = (payload: string): string => {
  const value = jsonOf(payload);
  const text: unknown = value instanceof Object ? Object.getOwnPropertyDescriptor(value, "text")?.value : undefined;
  return typeof text === "string" && text.trim() !== "" ? text : payload;
};

/** An agent told to "announce events in <space>" does; any other keeps service events to itself. */
const handleService = (event: ServiceEvent, view: PromptView, cycle: CycleState): Handling => {
  const wanted = /\b(?:announce|post|report)\b[^.]*\bevents?\b[^.]*?\b(?:in|to)\s+(.+)/is.exec(view.role)?.[1] ?? "";
  const bare = wanted.toLowerCase().replace(/^["“]/, "");
  const space = view.spaces.find(({ name }) => bare.startsWith(name.toLowerCase()));
  if (!space) return { silent: "no rule for events of services" };
  const outcome = { done: `announced in "${space.name}"`, failed: `could not announce in "${space.name}"` };
  return { doing: announce(cycle, space.id, `Event from ${event.service}: ${wordsOf(event.payload)}`, outcome) };
};

/** Says the late result of a call in the space where the call was made. */
const handleResult = (event: ToolResultEvent, view: PromptView, cycle: CycleState): Handling => {
  const { tool, toolCallId, result } = event;
  const call = view.pending.get(toolCallId);
  const space = view.spaces.find(({ id }) => id === (call?.spaceId ?? view.activeSpaceId));
  if (!space) return { silent: `I am not where I called ${tool} any more` };
  const outcome = { done: "told what came of it", failed: "could not tell what came of it" };
  return { doing: announce(cycle, space.id, outcomeInWords(tool, call?.input, result), outcome) };
};

/** Says in the space of a question what came of it. */
const handleAnswer = (event: AnswerEvent | UnansweredEvent, cycle: CycleState): Handling => {
  const text =
    event.kind === "answer"
      ? `${event.senderName} said: ${event.text}`
      : `${event.names.join(", ")} did not answer in time.`;
  const outcome = { done: "reported the answer", failed: "could not report the answer" };
  return { doing: announce(cycle, event.spaceId, text, outcome) };
};

export const handleEvent = (event: InboxEvent, view: PromptView, cycle: CycleState): Handling => {
  if (event.kind === "message") return handleMessage(event, view, cycle);
  if (event.kind === "answer" || event.kind === "unanswered") return handleAnswer(event, cycle);
  if (event.kind === "service") return handleService(event, view, cycle);
  if (event.kind === "plan") {
    const doing = doPlan(event, view.spaces, cycle);
    return doing ? { doing } : { silent: "the plan names none of my spaces" };
  }
  if (event.kind === "tool_result") return handleResult(event, view, cycle);
  return { silent: "no rule for such an event" };
};
