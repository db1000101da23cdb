import { handleEvent } from "./handle-event.ts";
import type { ActionResult, InboxEvent, PastAction, PromptView } from "./prompt-view.ts";
import type { ToolView } from "./tool-view.ts";
import type { CycleState, Doing, ToolCall } from "./turn.ts";

/** The next action: one tool call, or the text that ends the cycle. */
export type Action = { type: "call"; call: ToolCall } | { type: "text"; text: string };

const label = (event: InboxEvent): string => {
  if (event.kind === "message") return `${JSON.stringify(event.senderName)} in ${JSON.stringify(event.spaceName)}`;
  if (event.kind === "answer") return `the answer of ${JSON.stringify(event.senderName)}`;
  if (event.kind === "unanswered") return "who did not answer";
  if (event.kind === "plan") return `the plan ${JSON.stringify(event.name)}`;
  if (event.kind === "tool_result") return `what came of ${event.tool}`;
  return event.kind === "service" ? `the service ${JSON.stringify(event.service)}` : "another event";
};

/** The longest reason that `skip` takes. */
const longestReason = 500;

/** The whole cycle as one coroutine: the events one after another, then the self-summary. */
function* cycle(view: PromptView, tools: readonly ToolView[]): Doing {
  const state: CycleState = {
    activeSpaceId: view.activeSpaceId,
    memories: new Map(view.memories.map(({ key, value }) => [key, value])),
    canWait: tools.some(({ name }) => name === "send_reply"),
    tools,
  };
  const handlings = view.events.map((event) => handleEvent(event, view, state));
  const reasons = handlings.flatMap((handling) => ("silent" in handling ? handling.silent : []));
  // A timeline has no skip: silence is ending without speaking.
  if (view.continuity === "consciousness" && reasons.length === handlings.length) {
    const reason = [...new Set(reasons)].join("; ").slice(0, longestReason) || "nothing to do";
    yield { toolName: "skip", input: { reason } };
  }
  const lines: string[] = [];
  for (const event of view.events) {
    // Asked again here: what the events before it did (a memory kept, a space entered) is known only now.
    const handling = handleEvent(event, view, state);
    lines.push(
      "silent" in handling
        ? `Read ${label(event)}: ${handling.silent}.`
        : `Answered ${label(event)}: ${yield* handling.doing}.`,
    );
  }
  return lines.join("\n") || "Nothing to do.";
}

const unavailable: ActionResult = { ok: false, message: "there is no such tool" };

/**
 * The next action, a pure function of the prompt: the cycle is replayed with the results it has got so far. Where
 * what was done is not what the rules would have done (another model began the cycle), it ends with a word on that.
 */
export const decide = (view: PromptView, tools: readonly ToolView[]): Action => {
  if (!view.hasInbox) {
    return {
      type: "text",
      text: "I am a rehearsal model that follows plain rules, and I found no inbox and no trigger to act on.",
    };
  }
  const plan = cycle(view, tools);
  const toolNames = new Set(tools.map(({ name }) => name));
  const done: PastAction[] = [...view.actions];
  let next = plan.next();
  while (!next.done) {
    const call = next.value;
    const past = done.shift();
    if (past && past.toolName !== call.toolName) {
      return { type: "text", text: "The cycle went another way than my rules; I end it here." };
    }
    if (past) next = plan.next(past.result);
    else if (toolNames.has(call.toolName)) return { type: "call", call };
    else next = plan.next(unavailable);
  }
  return { type: "text", text: next.value };
};
