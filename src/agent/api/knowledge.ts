import { z } from "zod";
import type { Knowledge, PastThing } from "../../protocol/knowledge.ts";
import type { SpaceMessage } from "../../protocol/rpc.ts";
import { defaultSearchLimit } from "../../protocol/search.ts";
import { callLine } from "../../shared/call-line.ts";
import { timeoutSignal } from "../../shared/timeouts.ts";
import { withoutNulls } from "../../shared/without-nulls.ts";
import { viewTimeoutMs } from "../bounds.ts";
import { spaceMessage } from "../call-with-retry.ts";
import { compose } from "../context/compose.ts";
import { eventLine, messageIn } from "../context/consciousness/inbox-message.ts";
import { deedLine } from "../context/deeds.ts";
import { continuityOf } from "../run/continuity/continuities.ts";
import { gatherPast } from "../run/continuity/past-runs.ts";
import { outputOf, readRows } from "../run/run-rows.ts";
import type { RunServices } from "../run/run-services.ts";
import type { Area } from "./agent-runtime.ts";

/**
 * A thing of the past: how an input names it, the words that search may find it by, and what a hit for it is: its message,
 * or one of these places in the journal.
 */
type Past = { runId: string | null; names: string[]; words: string; messageId: string | undefined; places: string[] };

const eventIdOf = ({ ids, identity }: RunServices, { messageId, eventId }: PastThing): string | undefined =>
  messageId === undefined ? eventId : ids.deriveFrom("evt", identity.get().id, messageId);

/** How an input names an event of this line, and the words to find it by. */
const ofLine = (id: string, line: string): Pick<Past, "names" | "words" | "messageId"> => {
  const message = messageIn(line);
  const names = [id, line, message?.messageId ?? ""].filter((name) => name !== "");
  return { names, words: message?.text ?? line, messageId: message?.messageId };
};

/** An event that the inbox still holds. */
const waiting = (services: RunServices, asked: PastThing): (Past & { eventId: string }) | undefined => {
  const row = services.inbox.byEventId(eventIdOf(services, asked) ?? "");
  if (!row) return undefined;
  return { ...ofLine(row.eventId, eventLine(row.data)), runId: null, places: [], eventId: row.eventId };
};

const Said = z.object({ messageId: z.string() });

/** The row of the journal that names it first tells how it came about. */
const lived = (services: RunServices, id: string): Past | undefined => {
  const { journal, runs } = services;
  const row = journal.firstNaming(id);
  const run = row && runs.at(row.runOrdinal);
  if (!run) return undefined;
  const at = (seqs: number[]): string[] => seqs.map((seq) => `${run.id}:${seq}`);
  const { calls, steps } = readRows(journal.ofRun(run));
  const made = calls.find((each) => each.call.callId === id || Said.safeParse(outputOf(each)).data?.messageId === id);
  if (made) {
    const { callId, toolName, input } = made.call;
    const messageId = Said.safeParse(outputOf(made)).data?.messageId;
    const line = callLine({ toolName, input });
    // A line that two calls share names neither of them.
    const isOthers = gatherPast(services, run.ordinal).runs.some(({ deeds }) =>
      deeds.some((deed) => deed.callId !== callId && deedLine(deed).startsWith(line)),
    );
    const step = steps.find((each) => each.step === made.step);
    return {
      ...{ runId: run.id, words: `${toolName} ${line}`, messageId },
      names: [callId, ...(isOthers ? [] : [line]), ...(messageId === undefined ? [] : [messageId])],
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
  ...{ runId: null, names: [id], words: text, messageId: id, places: [] },
});

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

/** Where something stands in the input that the next run would be given, and the tools that return it. Begins no run. */
const knowledgeOf = async (services: RunServices, asked: PastThing): Promise<Knowledge> => {
  const id = asked.messageId ?? asked.callId ?? asked.eventId ?? "";
  const message = asked.messageId === undefined ? undefined : await standing(services, id);
  const [held, done] = [waiting(services, asked), lived(services, id)];
  const past = held
    ? { ...held, runId: done?.runId ?? null, places: done?.places ?? [] }
    : (done ?? (message && read(message)));
  if (!past) return { id, known: false, places: [] };
  const { config } = services.identity.get();
  const { snapshot, events } = await continuityOf(config).next(services, timeoutSignal(viewTimeoutMs));
  const { sections, tools } = compose(snapshot);
  const isNext = held !== undefined && events.some(({ eventId }) => eventId === held.eventId);
  const holding = sections.filter(({ text }) => past.names.some((name) => text.includes(name)));
  const places: Knowledge["places"] = holding.map(({ name: section }) => ({
    how: section === "earlier_summaries" ? "summary" : "verbatim",
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
  if ("get_my_runs" in tools && past.runId !== null) {
    places.push({ how: "tool", tool: "get_my_runs", input: { runId: past.runId } });
  }
  return { id, ...withoutNulls({ runId: past.runId }), known: places.length > 0, places };
};

export const knowledgeArea: Area<"knows"> = {
  knows: ({ services }, asked) => knowledgeOf(services, asked),
};
