import type { ModelMessage } from "ai";
import type { Dropped, ToldSection } from "../../../protocol/exported-history.ts";
import type { HeadBlocks } from "../../records.ts";
import { estimateMessages, firstFitting } from "../../tokens.ts";
import type { InputParts } from "../agent-state.ts";
import { rulesSection } from "../instructions.ts";
import { inputBudget } from "../limits.ts";
import { type Composed, systemSections, textSection, tokensIn, told } from "../sections.ts";
import { type Cycle, summaryText } from "./compaction.ts";

/** The beginning of all inputs between two compactions or changes of config. */
export type Window = {
  instructions: string;
  summary: string | null;
  /** The core blocks that are in the instructions, as they were when it began: their texts by key. */
  blocks?: HeadBlocks;
};

/** A message of the running cycle. `section`: what it tells of other agents. */
export type OwnMessage = { message: ModelMessage; section?: ToldSection | undefined };

/** The data of one step's input. The agent's state is in its window and its cycle, as of their beginning. */
export type ConsciousnessSnapshot = InputParts & {
  continuity: "consciousness";
  window: Window;
  /** Blocks, memories and tellings that did not fit. */
  withheld?: Dropped[];
  past: Cycle[];
  /** The running cycle so far, its inbox message first. */
  own: OwnMessage[];
};

const summaryHeading = "EARLIER CYCLES (your own summaries, oldest first):";

/** The summary of compacted cycles, as a message of the input. */
export const summaryMessage = (summary: string | null): ModelMessage[] =>
  summary === null ? [] : [{ role: "user", content: `${summaryHeading}\n${summaryText(summary)}` }];

const messagesOf = (own: OwnMessage[]): ModelMessage[] => own.map(({ message }) => message);

/**
 * Consciousness: the system message, the summaries of what was compacted, the earlier cycles untouched, and the
 * running cycle. Append-only between two windows. A cycle that does not fit is left out from the oldest on, whole,
 * and named in `dropped`; the running cycle never is.
 */
export const composeConsciousness = (snapshot: ConsciousnessSnapshot): Composed => {
  const { config, correction, tools, window, own } = snapshot;
  const summary = summaryMessage(window.summary);
  const system = systemSections(window.instructions, [
    textSection("blocks", Object.values(window.blocks ?? {}).join("\n")),
    rulesSection(config.toolRules),
  ]);
  const summaries = { name: "earlier_summaries", tokens: estimateMessages(summary), text: window.summary ?? "" };
  const bySection = Map.groupBy(own, ({ section = "this_cycle" }) => section);
  const running = [...bySection].map(([name, all]) => told(name, messagesOf(all)));
  const fixed = tokensIn([...system, summaries, ...running]);

  const room = inputBudget(snapshot) - fixed;
  const fits = firstFitting(snapshot.past.toReversed(), room, ({ messages }) => estimateMessages(messages));
  const first = snapshot.past.length - fits.length;
  const past = snapshot.past.slice(first).flatMap((cycle) => cycle.messages);
  const lived = told("earlier_cycles", past);
  const sections = [...system, summaries, lived, ...running];
  return {
    instructions: window.instructions,
    messages: [...summary, ...past, ...messagesOf(own)],
    tools,
    sections: sections.filter((section) => section.tokens > 0),
    tokens: Math.ceil(tokensIn(sections) * correction),
    unshown: [],
    firstCycle: first,
    dropped: [
      ...(first === 0
        ? []
        : [{ name: "earlier_cycles", reason: `${first} oldest cycles do not fit context.maxTokens` }]),
      ...(snapshot.withheld ?? []),
    ],
  };
};
