import type { ModelMessage } from "ai";
import { estimateMessages, estimateText } from "../../tokens.ts";
import { type Composed, messagesText, type Section, type Strategy } from "../composed.ts";
import type { ConsciousnessSnapshot } from "./snapshot.ts";

const summaryHeading = "EARLIER CYCLES (your own summaries, oldest first):";

/** How the summaries of what was compacted stand in the input. */
export const summaryMessage = (summary: string | null): ModelMessage[] =>
  summary === null ? [] : [{ role: "user", content: `${summaryHeading}\n${summary}` }];

/**
 * Consciousness: the system message, the summaries of what was compacted, the earlier cycles untouched, and the
 * running cycle. Append-only between two windows. A cycle that does not fit is left out from the oldest on, whole,
 * and named in `dropped`; the running cycle never is.
 */
export const composeConsciousness: Strategy<ConsciousnessSnapshot> = (snapshot, correction): Composed => {
  const { config, window, own } = snapshot;
  const summary = summaryMessage(window.summary);
  const fixed = estimateText(window.instructions) + estimateMessages(summary) + estimateMessages(own);
  const budget = config.context.maxTokens - config.context.reservedResponseTokens;

  let room = budget / correction - fixed;
  let first = snapshot.past.length;
  const sizes = snapshot.past.map((cycle) => estimateMessages(cycle.messages));
  while (first > 0 && (sizes[first - 1] ?? 0) <= room) {
    first -= 1;
    room -= sizes[first] ?? 0;
  }
  const past = snapshot.past.slice(first).flatMap((cycle) => cycle.messages);
  const sections: Section[] = [
    { name: "instructions", tokens: estimateText(window.instructions), text: window.instructions },
    { name: "earlier_summaries", tokens: estimateMessages(summary), text: window.summary ?? "" },
    { name: "earlier_cycles", tokens: estimateMessages(past), text: messagesText(past) },
    { name: "this_cycle", tokens: estimateMessages(own), text: messagesText(own) },
  ];
  return {
    instructions: window.instructions,
    messages: [...summary, ...past, ...own],
    sections: sections.filter((section) => section.tokens > 0),
    tokens: Math.ceil(sections.reduce((sum, section) => sum + section.tokens, 0) * correction),
    firstCycle: first,
    dropped:
      first === 0 ? [] : [{ name: "earlier_cycles", reason: `${first} oldest cycles do not fit context.maxTokens` }],
  };
};
