import type { ModelMessage } from "ai";
import {
  type Composed,
  type Section,
  type Strategy,
  sectionOfBlocks,
  systemSections,
  told,
  toldSection,
} from "../composed.ts";
import { rulesSection } from "../instructions.ts";
import { estimateMessages } from "../tokens.ts";
import type { ConsciousnessSnapshot, Telling } from "./snapshot.ts";
import { untold } from "./state.ts";

const summaryHeading = "EARLIER CYCLES (your own summaries, oldest first):";

/** The summary of compacted cycles, as a message of the input. */
export const summaryMessage = (summary: string | null): ModelMessage[] =>
  summary === null ? [] : [{ role: "user", content: `${summaryHeading}\n${summary}` }];

/** The running cycle as sections: one for each section of tellings, and one for the rest. */
const cycleSections = (own: ModelMessage[], tellings: Telling[]): Section[] => {
  const byName = Map.groupBy(tellings, ({ section }) => section);
  const others = new Set(tellings.map(({ message }) => message));
  return [
    toldSection("this_cycle", [told(own.filter((message) => !others.has(message)))]),
    ...[...byName].map(([name, all]) => toldSection(name, [told(all.map(({ message }) => message))])),
  ];
};

/**
 * Consciousness: the system message, the summaries of what was compacted, the earlier cycles untouched, and the
 * running cycle. Append-only between two windows. A cycle that does not fit is left out from the oldest on, whole,
 * and named in `dropped`; the running cycle never is.
 */
export const composeConsciousness: Strategy<ConsciousnessSnapshot> = (snapshot): Composed => {
  const { context, correction, tools, toolRules, window, own } = snapshot;
  const summary = summaryMessage(window.summary);
  const system = systemSections(window.instructions, [
    sectionOfBlocks(Object.values(window.blocks ?? {})),
    rulesSection(toolRules),
  ]);
  const summaries: Section = {
    name: "earlier_summaries",
    tokens: estimateMessages(summary),
    text: window.summary ?? "",
  };
  const running = cycleSections(own, snapshot.tellings ?? []);
  const fixed = [...system, summaries, ...running].reduce((sum, { tokens }) => sum + tokens, 0);
  const budget = context.maxTokens - context.reservedResponseTokens;

  let room = budget / correction - fixed;
  let first = snapshot.past.length;
  const cycles = snapshot.past.map(({ messages }) => told(messages));
  while (first > 0 && (cycles[first - 1]?.tokens ?? 0) <= room) {
    first -= 1;
    room -= cycles[first]?.tokens ?? 0;
  }
  const past = snapshot.past.slice(first).flatMap((cycle) => cycle.messages);
  const lived = toldSection("earlier_cycles", cycles.slice(first));
  const sections = [...system, summaries, lived, ...running];
  return {
    instructions: window.instructions,
    messages: [...summary, ...past, ...own],
    tools,
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
