import type { ModelMessage } from "ai";
import { estimateMessages, estimateText } from "../../tokens.ts";
import { type Composed, type Section, type Strategy, sectionOfBlocks, told, toldSection } from "../composed.ts";
import type { ConsciousnessSnapshot } from "./snapshot.ts";
import { untold } from "./state.ts";

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
  const blocks = sectionOfBlocks(Object.values(window.blocks ?? {}));
  const instructions: Section = {
    name: "instructions",
    tokens: Math.max(0, estimateText(window.instructions) - blocks.tokens),
    text: window.instructions,
  };
  const summaries: Section = {
    name: "earlier_summaries",
    tokens: estimateMessages(summary),
    text: window.summary ?? "",
  };
  const running = toldSection("this_cycle", [told(own)]);
  const fixed = instructions.tokens + blocks.tokens + summaries.tokens + running.tokens;
  const budget = config.context.maxTokens - config.context.reservedResponseTokens;

  let room = budget / correction - fixed;
  let first = snapshot.past.length;
  const cycles = snapshot.past.map(({ messages }) => told(messages));
  while (first > 0 && (cycles[first - 1]?.tokens ?? 0) <= room) {
    first -= 1;
    room -= cycles[first]?.tokens ?? 0;
  }
  const past = snapshot.past.slice(first).flatMap((cycle) => cycle.messages);
  const lived = toldSection("earlier_cycles", cycles.slice(first));
  const sections = [instructions, blocks, summaries, lived, running];
  return {
    instructions: window.instructions,
    messages: [...summary, ...past, ...own],
    sections: sections.filter((section) => section.tokens > 0),
    tokens: Math.ceil(sections.reduce((sum, section) => sum + section.tokens, 0) * correction),
    unshown: [],
    firstCycle: first,
    dropped: [
      ...(first === 0
        ? []
        : [{ name: "earlier_cycles", reason: `${first} oldest cycles do not fit context.maxTokens` }]),
      ...(snapshot.withheld ?? []),
      ...untold(snapshot.told ?? {}),
    ],
  };
};
