import type { ModelMessage } from "ai";
import { z } from "zod";
import { activeSpace, inboxEvents, inboxHeading, quoted } from "../grammar.ts";
import { callLine, excerpt, noAnswer, quote, quoteJson } from "../wording.ts";

/**
 * The summary of a compacted cycle: its own last words. Where it ended without any, the facts of its
 * journal: what began it, what it said to whom, what it called and what came of that. Everything that a participant or a
 * tool wrote stays quoted, on one line, and short (S2, B3).
 */
const summaryCharacters = 1000;
/** Bounds of the parts: what began it, what it said, a call's input, what came of it. */
const triggerCharacters = 160;
const saidCharacters = 300;
const callCharacters = 120;
const resultCharacters = 120;
const nameCharacters = 64;
/** How many of the events that began it are told, and of those whom it waited for. */
const mostTriggers = 3;
const mostAwaited = 5;

/** The beginning of a text as a quoted string. Escapes make it a quarter longer than its bound at most. */
const brief = (text: string, most: number): string => {
  let cut = excerpt(text, most);
  while (cut.length > 1 && quote(cut).length > most * 1.25 + 3) cut = excerpt(cut, Math.floor([...cut].length / 2));
  return quote(cut);
};

const briefJson = (value: unknown, most: number): string => {
  const json = quoteJson(value);
  return json.length <= most ? json : brief(json, most);
};

type Trigger = { words: string; wakes: boolean; spaceId?: string };

/** An event of an inbox, told. */
const triggerOf = (line: string): Trigger | undefined => {
  const message = inboxEvents.message.read(line);
  if (message) {
    const { senderName, spaceName, spaceId, content, triggerSource } = message;
    const said = quoted.read(content)?.text;
    const did = said === undefined ? `showed ${brief(content, triggerCharacters)}` : brief(said, triggerCharacters);
    const verb = said === undefined ? "" : message.answers === "" ? "asked " : "answered ";
    return {
      words: `${brief(senderName, nameCharacters)} ${verb}${did} in ${brief(spaceName, nameCharacters)}`,
      wakes: triggerSource !== "none",
      spaceId,
    };
  }
  const unanswered = inboxEvents.unanswered.read(line);
  if (unanswered) {
    const { silent, question, spaceName, spaceId } = unanswered;
    const asked = brief(question, triggerCharacters);
    const names = silent.length <= triggerCharacters ? silent : "some";
    return { words: `no answer came from ${names} to ${asked} in ${quote(spaceName)}`, wakes: true, spaceId };
  }
  const plan = inboxEvents.plan.read(line);
  if (plan)
    return {
      words: `plan ${brief(plan.name, nameCharacters)} was due: ${brief(plan.instruction, triggerCharacters)}`,
      wakes: true,
    };
  const service = inboxEvents.service.read(line);
  if (service) {
    const { payload } = service;
    const told = payload.length <= triggerCharacters ? payload : brief(payload, triggerCharacters);
    return { words: `service ${brief(service.service, nameCharacters)} sent ${told}`, wakes: true };
  }
  const result = inboxEvents.toolResult.read(line);
  if (!result) return undefined;
  const told = result.result.length <= triggerCharacters ? result.result : brief(result.result, triggerCharacters);
  return { words: `${result.tool} answered ${told}`, wakes: true };
};

type Begun = { triggers: Trigger[]; space: Place | undefined };
type Place = { id: string; name: string };

/** The events and the active space that the cycle's inbox message tells. */
const begunBy = ([first]: ModelMessage[]): Begun => {
  const lines = first?.role === "user" && typeof first.content === "string" ? first.content.split("\n") : [];
  const from = lines.findIndex((line) => inboxHeading.read(line)) + 1;
  const listed = lines.slice(from === 0 ? lines.length : from);
  const end = listed.findIndex((line) => !line.startsWith("  ["));
  const triggers = listed.slice(0, end === -1 ? listed.length : end).flatMap((line) => triggerOf(line.slice(2)) ?? []);
  const active = lines.map((line) => activeSpace.read(line)).findLast((read) => read !== undefined);
  return { triggers, space: active && { id: active.id, name: active.name } };
};

const Failed = z.object({ success: z.literal(false), error: z.object({ message: z.string() }) });
const Succeeded = z.object({ success: z.literal(true) }).loose();
const Entered = z.object({ success: z.literal(true), spaceId: z.string(), spaceName: z.string() });
const Spoken = z.object({ text: z.string() });
const Waiting = z.object({ waitingFor: z.array(z.string()) });

const resultWords = (value: unknown): string => {
  const failed = Failed.safeParse(value).data;
  if (failed) return `error ${brief(failed.error.message, resultCharacters)}`;
  const done = Succeeded.safeParse(value).data;
  if (!done) return value === null || value === undefined ? "ok" : briefJson(value, resultCharacters);
  const { success: _, ...rest } = done;
  return Object.keys(rest).length === 0 ? "ok" : `ok ${briefJson(rest, resultCharacters)}`;
};

const waitWords = (names: string[]): string => {
  if (names.length === 0) return "";
  const shown = names.slice(0, mostAwaited).map((name) => brief(name, nameCharacters));
  const left = names.length - shown.length;
  return ` and waited for ${[...shown, ...(left === 0 ? [] : [`${left} more`])].join(", ")}`;
};

type Deed = { words: string; speaks: boolean };

/** The cycle's deeds in order: its words with their space, its other calls with their results. */
const deedsIn = (messages: ModelMessage[], { triggers, space }: Begun): Deed[] => {
  const asked = new Set(triggers.map(({ spaceId }) => spaceId));
  const values = new Map(
    messages.flatMap(({ role, content }) =>
      role !== "tool"
        ? []
        : content.flatMap((part): [string, unknown][] =>
            part.type === "tool-result" && "value" in part.output ? [[part.toolCallId, part.output.value]] : [],
          ),
    ),
  );
  const calls = messages.flatMap(({ role, content }) =>
    role === "assistant" && typeof content !== "string" ? content.filter((part) => part.type === "tool-call") : [],
  );
  let active = space;
  return calls.flatMap(({ toolName, toolCallId, input }): Deed[] => {
    const value = values.get(toolCallId);
    const entered = toolName === "enter_space" ? Entered.safeParse(value).data : undefined;
    if (entered) active = { id: entered.spaceId, name: entered.spaceName };
    if (entered) return [];
    const isDone = Succeeded.safeParse(value).success;
    if (toolName === "leave_space" && isDone) {
      active = undefined;
      return [];
    }
    const spoken = toolName === "send_message" || toolName === "send_reply" ? Spoken.safeParse(input).data : undefined;
    if (!spoken || !isDone) {
      const result = values.has(toolCallId) ? ` → ${resultWords(value)}` : "";
      return [{ words: `${callLine({ toolName, input }, { most: callCharacters })}${result}`, speaks: false }];
    }
    const where =
      active === undefined
        ? ""
        : asked.size === 1 && asked.has(active.id)
          ? " there"
          : ` in ${brief(active.name, nameCharacters)}`;
    const waits = waitWords(Waiting.safeParse(value).data?.waitingFor ?? []);
    return [{ words: `said ${brief(spoken.text, saidCharacters)}${where}${waits}`, speaks: true }];
  });
};

/** The triggers that matter most, the newest of those that woke it first; the others are counted. */
const toldTriggers = (triggers: Trigger[]): string[] => {
  const byRank = triggers.toReversed().sort((one, other) => Number(other.wakes) - Number(one.wakes));
  const kept = new Set(byRank.slice(0, mostTriggers));
  const left = triggers.length - kept.size;
  const words = triggers.filter((each) => kept.has(each)).map((each) => each.words);
  return left === 0 ? words : [...words, `${left} more ${left === 1 ? "event" : "events"}`];
};

/** What fits the bound: what it said before its other calls, the newest first; the others are counted. */
const toldDeeds = (deeds: Deed[], room: number): string[] => {
  const byRank = deeds.toReversed().sort((one, other) => Number(other.speaks) - Number(one.speaks));
  const kept = new Set<Deed>();
  let left = room;
  for (const deed of byRank) {
    left -= deed.words.length + 2;
    if (left < 0 && kept.size > 0) break;
    kept.add(deed);
  }
  const omitted = deeds.length - kept.size;
  const words = deeds.filter((deed) => kept.has(deed)).map((deed) => deed.words);
  return omitted === 0 ? words : [...words, `${omitted} more ${omitted === 1 ? "call" : "calls"}`];
};

const noteCharacters = 40;

/** The facts of a cycle on one line; undefined where nothing of it can be told. */
const factsOf = (messages: ModelMessage[], most: number): string | undefined => {
  const begun = begunBy(messages);
  const deeds = deedsIn(messages, begun);
  const triggers = toldTriggers(begun.triggers).join(", ");
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
export const selfSummary = (messages: ModelMessage[]): string => {
  const last = messages.findLast(({ role }) => role === "assistant");
  const text = last ? textOf(last).trim().replace(/\s+/g, " ") : "";
  const words = text === noAnswer ? "" : text;
  if (last && words !== "" && !callsSomething(last)) return excerpt(words, summaryCharacters);
  const own = words === "" ? "" : `${excerpt(words, triggerCharacters)} — `;
  const facts = factsOf(messages, summaryCharacters - own.length);
  return facts === undefined && own === "" ? "(no summary was written)" : `${own}${facts ?? ""}`;
};
