import type { ModelMessage } from "ai";
import { firstFitting } from "../../tokens.ts";
import { type Deed, deedLine } from "../deeds.ts";
import { inboxEvents, quoted } from "../grammar.ts";
import { brief, briefJson, excerpt, noAnswer, quote } from "../wording.ts";

/**
 * The summary of a compacted cycle: its own last words. Where it ended without any, the facts of its journal: what began
 * it, and what it did. Everything that a participant or a tool wrote stays quoted, on one line, and short (S2, B3).
 */
const summaryCharacters = 1000;
/** Bounds of the parts: what began it, and what it said, gave a call or got. */
const triggerCharacters = 160;
const deedCharacters = 200;
const nameCharacters = 64;
/** How many of the events that began it are told. */
const mostTriggers = 3;

/** A cycle, as its journal has it: the lines of its inbox, and its calls. */
export type CycleFacts = { lines: string[]; deeds: Deed[] };

type Trigger = { words: string; wakes: boolean };

/** An event of an inbox, told. */
const triggerOf = (line: string): Trigger | undefined => {
  const message = inboxEvents.message.read(line);
  if (message) {
    const { senderName, spaceName, content, triggerSource } = message;
    const said = quoted.read(content)?.text;
    const verb = said === undefined ? "showed" : message.answers === "" ? "asked" : "answered";
    const what = brief(said ?? content, triggerCharacters);
    return {
      words: `${brief(senderName, nameCharacters)} ${verb} ${what} in ${brief(spaceName, nameCharacters)}`,
      wakes: triggerSource !== "none",
    };
  }
  const told = (words: string): Trigger => ({ words, wakes: true });
  const unanswered = inboxEvents.unanswered.read(line);
  if (unanswered) {
    const { silent, question, spaceName } = unanswered;
    const names = silent.length <= triggerCharacters ? silent : "some";
    return told(`no answer came from ${names} to ${brief(question, triggerCharacters)} in ${quote(spaceName)}`);
  }
  const plan = inboxEvents.plan.read(line);
  if (plan)
    return told(`plan ${brief(plan.name, nameCharacters)} was due: ${brief(plan.instruction, triggerCharacters)}`);
  const service = inboxEvents.service.read(line);
  if (service)
    return told(
      `service ${brief(service.service, nameCharacters)} sent ${briefJson(service.payload, triggerCharacters)}`,
    );
  const result = inboxEvents.toolResult.read(line);
  return result && told(`${result.tool} answered ${briefJson(result.result, triggerCharacters)}`);
};

/** How a summary tells an event of this line. */
export const summarised = (line: string): string | undefined => triggerOf(line)?.words;

/** The triggers that matter most, the newest of those that woke it first; the others are counted. */
const toldTriggers = (triggers: Trigger[]): string[] => {
  const byRank = triggers.toReversed().sort((one, other) => Number(other.wakes) - Number(one.wakes));
  const kept = new Set(byRank.slice(0, mostTriggers));
  const left = triggers.length - kept.size;
  const words = triggers.filter((each) => kept.has(each)).map((each) => each.words);
  return left === 0 ? words : [...words, `${left} more ${left === 1 ? "event" : "events"}`];
};

/** The deeds that fit the bound: what it said before its other calls, newest first. The others are counted. */
const toldDeeds = (deeds: Deed[], room: number): string[] => {
  const told = deeds.map((deed) => ({ speaks: deed.kind === "sent", words: deedLine(deed, deedCharacters) }));
  const byRank = told.toReversed().sort((one, other) => Number(other.speaks) - Number(one.speaks));
  const fits = firstFitting(byRank, room, ({ words }) => words.length + 2);
  const kept = new Set(fits.length === 0 ? byRank.slice(0, 1) : fits);
  const omitted = told.length - kept.size;
  const words = told.filter((deed) => kept.has(deed)).map((deed) => deed.words);
  return omitted === 0 ? words : [...words, `${omitted} more ${omitted === 1 ? "call" : "calls"}`];
};

const noteCharacters = 40;

/** The facts of a cycle on one line; undefined where nothing of it can be told. */
const factsLine = ({ lines, deeds }: CycleFacts, most: number): string | undefined => {
  const triggers = toldTriggers(lines.flatMap((line) => triggerOf(line) ?? [])).join(", ");
  if (triggers === "" && deeds.length === 0) return undefined;
  const done =
    deeds.length === 0 ? ["said and did nothing"] : toldDeeds(deeds, most - triggers.length - noteCharacters);
  return [...(triggers === "" ? [] : [triggers]), ...done].join("; ");
};

const textOf = ({ content }: ModelMessage): string => {
  if (typeof content === "string") return content;
  return content.map((part) => (part.type === "text" ? part.text : "")).join("");
};

const callsSomething = ({ content }: ModelMessage): boolean =>
  typeof content !== "string" && content.some((part) => part.type === "tool-call");

/**
 * The summary of a cycle, as the agent wrote it at its end. Words beside a last call tell nothing of what came of it: the
 * facts follow them.
 */
export const selfSummary = (messages: ModelMessage[], facts: () => CycleFacts): string => {
  const last = messages.findLast(({ role }) => role === "assistant");
  const text = last ? textOf(last).trim().replace(/\s+/g, " ") : "";
  const words = text === noAnswer ? "" : text;
  if (last && words !== "" && !callsSomething(last)) return excerpt(words, summaryCharacters);
  const own = words === "" ? "" : `${excerpt(words, triggerCharacters)} — `;
  const told = factsLine(facts(), summaryCharacters - own.length);
  return told === undefined && own === "" ? "(no summary was written)" : `${own}${told ?? ""}`;
};
