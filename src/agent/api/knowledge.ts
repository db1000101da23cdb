import * as z from "zod";
import type { Knowledge, PastThing } from "../../protocol/knowledge.ts";
import type { SpaceMessage } from "../../protocol/rpc.ts";
import { defaultSearchLimit } from "../../protocol/search.ts";
import { callLine } from "../../shared/call-line.ts";
import { timeoutSignal } from "../../shared/timeouts.ts";
import { withoutNulls } from "../../shared/without-nulls.ts";
import { viewTimeoutMs } from "../bounds.ts";
import { spaceMessage } from "../call-with-retry.ts";
import { compose } from "../context/compose.ts";
import { summarised } from "../context/consciousness/cycle-summary.ts";
import { eventLine, messageIn } from "../context/consciousness/inbox-message.ts";
import { type Action, deedLine } from "../context/deeds.ts";
import { tellsMessage } from "../context/grammar.ts";
import type { Section } from "../context/sections.ts";
import { continuityOf } from "../run/continuity/continuities.ts";
import { gatherPast } from "../run/continuity/past-runs.ts";
import { askingFor } from "../run/own-runs.ts";
import { outputOf, type RunCall, readRows } from "../run/run-rows.ts";
import type { RunServices } from "../run/run-services.ts";
import type { Area } from "./agent-runtime.ts";

/** A thing of the past: how an input, a summary of a cycle and `get_my_runs` tell it, and how search may find it. */
type Past = {
  runId: string | null;
  messageId: string | undefined;
  /** Ids and lines that a text holds only where it tells the thing. Empty for a message: `tellsMessage` finds it. */
  names: string[];
  /** An event, as its inbox told it. */
  line?: string;
  call?: Action;
  words: string;
  /** Its places in the journal, which hits for it name. */
  places: string[];
};

const eventIdOf = ({ ids, identity }: RunServices, { messageId, eventId }: PastThing): string | undefined =>
  messageId === undefined ? eventId : ids.deriveFrom("evt", identity.mindId(), messageId);

const ofLine = (id: string, line: string): Pick<Past, "names" | "line" | "words" | "messageId"> => {
  const message = messageIn(line);
  const names = message || line === "" ? [] : [id, line];
  return { names, line, words: message?.text ?? line, messageId: message?.messageId };
};

/** An event that the inbox still holds. */
const waiting = (services: RunServices, asked: PastThing): (Past & { eventId: string }) | undefined => {
  const row = services.inbox.byEventId(eventIdOf(services, asked) ?? "");
  if (!row) return undefined;
  return { ...ofLine(row.eventId, eventLine(row.data)), runId: null, places: [], eventId: row.eventId };
};

const Said = z.object({ messageId: z.string() });
const Shown = z.object({ callId: z.string(), messageId: z.string() });

/** The row of the journal that names it first tells how it came about. */
const lived = (services: RunServices, id: string): Past | undefined => {
  const { journal, runs } = services;
  const row = journal.firstNaming(id);
  const run = row && runs.at(row.runOrdinal);
  if (!run) return undefined;
  const at = (seqs: number[]): string[] => seqs.map((seq) => `${run.id}:${seq}`);
  const { all, calls, steps } = readRows(journal.ofRun(run));
  const shown = all.flatMap(({ content }) => Shown.safeParse(content).data ?? []);
  const messageOf = (each: RunCall): string | undefined =>
    Said.safeParse(outputOf(each)).data?.messageId ??
    shown.find(({ callId }) => callId === each.call.callId)?.messageId;
  const made = calls.find((each) => each.call.callId === id || messageOf(each) === id);
  if (made) {
    const { callId, toolName, input } = made.call;
    const line = callLine({ toolName, input });
    // A line that two calls share names neither of them.
    const isOthers = gatherPast(services, run.ordinal).runs.some(({ deeds }) =>
      deeds.some((deed) => deed.callId !== callId && deedLine(deed).startsWith(line)),
    );
    const step = steps.find((each) => each.step === made.step);
    return {
      ...{ runId: run.id, words: `${toolName} ${line}`, messageId: messageOf(made), call: { toolName, input } },
      names: [callId, ...(isOthers ? [] : [line])],
      places: at([step, made.result].flatMap((each) => each?.seq ?? [])),
    };
  }
  if (row.meta?.kind !== "inbox") return undefined;
  const { lines, eventIds = [] } = row.meta;
  const line = lines.find((each, index) => eventIds[index] === id || messageIn(each)?.messageId === id) ?? "";
  return { ...ofLine(id, line), runId: run.id, places: at([row.seq]) };
};

/** A message of a space of its own, as the space has it. */
const standing = async (services: RunServices, messageId: string): Promise<SpaceMessage | undefined> => {
  const spaceId = services.ids.ownerOf("msg", messageId);
  if (!services.spaces.isMember(spaceId)) return undefined;
  const answer = await spaceMessage(services, spaceId, messageId);
  return answer.ok ? answer.value : undefined;
};

/** A message that it was not told: it may have read it in the space. */
const read = ({ id, text = "" }: SpaceMessage): Past => ({
  ...{ runId: null, names: [], words: text, messageId: id, places: [] },
});

/** A message of a space that the agent left. No event told it, but a run may have read it there or in an input. */
const readOnce = async ({ search }: RunServices, messageId: string): Promise<Past | undefined> => {
  const found = await search.lived(messageId);
  return found && { runId: found.runId, names: [], words: found.text, messageId, places: [found.place] };
};

/** The section of summaries, of cycles that are told nowhere else. */
const summaries = "earlier_summaries";
const mostWords = 12;
const quotedText = /"(?:[^"\\]|\\.)*"/g;

/** Some of the words that are quoted in a line, as a query. The names of who said it, and where, come first in a line. */
const queryOf = (line: string): string => {
  const quoted = (line.match(quotedText) ?? [line]).join(" ");
  return [...new Set(quoted.match(/(?<![\p{L}\p{N}])[\p{L}\p{N}]{2,20}(?![\p{L}\p{N}])/gu))]
    .slice(-mostWords)
    .join(" ");
};

/** Whether search returns it. */
const isFound = async ({ search }: RunServices, query: string, { messageId, places }: Past): Promise<boolean> => {
  if (query === "") return false;
  const { items } = await search.search({ query, mode: "auto", types: [], limit: defaultSearchLimit });
  return items.some(
    ({ id, source }) => places.includes(id) || (messageId !== undefined && source.messageId === messageId),
  );
};

const Cut = z.object({ part: z.string() });

/** Whether what `get_my_runs` tells of its run holds it: as a value, as a line, or in what is shown of a longer one. */
const isToldIn = (value: unknown, past: Past): boolean => {
  const { messageId = "", line = "", call } = past;
  if (typeof value === "string") return line !== "" && value === line;
  if (typeof value !== "object" || value === null || "excerpt" in value) return false;
  const { part } = Cut.safeParse(value).data ?? {};
  if (part !== undefined) {
    return (line !== "" && part.includes(JSON.stringify(line))) || (messageId !== "" && tellsMessage(part, messageId));
  }
  const { source: _, ...fields }: Record<string, unknown> = { ...value };
  if (messageId !== "" && (fields.id === messageId || fields.messageId === messageId)) return true;
  if (call && fields.toolName === call.toolName) {
    const told = JSON.stringify(fields.input);
    const start = Cut.safeParse(fields.input).data?.part;
    const made = JSON.stringify(call.input);
    if (start === undefined ? told === made : made.startsWith(start)) return true;
  }
  return Object.values(fields).some((each) => isToldIn(each, past));
};

/** Where something stands in the input that the next run would be given, and the tools that return it. Begins no run. */
const knowledgeOf = async (services: RunServices, asked: PastThing): Promise<Knowledge> => {
  const id = asked.messageId ?? asked.callId ?? asked.eventId ?? "";
  const message = asked.messageId === undefined ? undefined : await standing(services, id);
  const [held, done] = [waiting(services, asked), lived(services, id)];
  const isMessage = asked.messageId !== undefined;
  const past = held
    ? { ...held, runId: done?.runId ?? null, places: done?.places ?? [] }
    : (done ?? (message ? read(message) : isMessage ? await readOnce(services, id) : undefined));
  if (!past) return { id, known: false, places: [] };
  const { config } = services.identity.get();
  const { snapshot, events } = await continuityOf(config).next(services, timeoutSignal(viewTimeoutMs));
  const { sections, tools } = compose(snapshot);
  const isNext = held !== undefined && events.some(({ eventId }) => eventId === held.eventId);
  const summary = summarised(past.line ?? "");
  const isIn = ({ name, text }: Section): boolean =>
    past.names.some((each) => text.includes(each)) ||
    (past.messageId !== undefined && tellsMessage(text, past.messageId)) ||
    (name === summaries && summary !== undefined && text.includes(summary));
  const places: Knowledge["places"] = sections.filter(isIn).map(({ name: section }) => ({
    how: section === summaries ? "summary" : "verbatim",
    section,
  }));
  if (isNext && places.length === 0) places.push({ how: "verbatim", section: "trigger" });
  if ("read_messages" in tools && message) {
    const { spaceId, newer: offset } = message;
    places.push({ how: "tool", tool: "read_messages", input: { spaceId, ...(offset === 0 ? {} : { offset }) } });
  }
  const query = queryOf(past.words);
  if ("search" in tools && (await isFound(services, query, past))) {
    places.push({ how: "tool", tool: "search", input: { query } });
  }
  const run = "get_my_runs" in tools && past.runId !== null ? services.runs.get(past.runId) : undefined;
  const began = run !== undefined && run.trigger.eventId === asked.eventId;
  const input =
    run &&
    askingFor(
      services,
      run,
      (told) => isToldIn(told, past) || (began && "type" in told.trigger && !("events" in told.trigger)),
    );
  if (input) places.push({ how: "tool", tool: "get_my_runs", input });
  return { id, ...withoutNulls({ runId: past.runId }), known: places.length > 0, places };
};

export const knowledgeArea: Area<"knows"> = {
  knows: ({ services }, asked) => knowledgeOf(services, asked),
};
