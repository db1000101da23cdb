import type { Knowledge, PastThing } from "../../protocol/knowledge.ts";
import { callLine } from "../../shared/call-line.ts";
import { timeoutSignal } from "../../shared/timeouts.ts";
import { withoutNulls } from "../../shared/without-nulls.ts";
import { viewTimeoutMs } from "../bounds.ts";
import { compose } from "../context/compose.ts";
import { eventLine } from "../context/consciousness/inbox-message.ts";
import { continuityOf } from "../run/continuity/continuities.ts";
import { outputOf, readRows } from "../run/run-rows.ts";
import type { RunServices } from "../run/run-services.ts";
import type { Area } from "./agent-runtime.ts";

/** A thing of the past: how an input names it, and the words that search may find it by. */
type Past = { runId: string | null; names: string[]; words: string };

const messageIds = (text: string): string[] => text.match(/\bmsg_[0-9A-Z]+/g) ?? [];

const waiting = ({ inbox }: RunServices, eventId: string): Past | undefined => {
  const row = inbox.byEventId(eventId);
  if (!row) return undefined;
  const line = eventLine(row.data);
  return { runId: null, names: [eventId, line, ...messageIds(line)], words: line };
};

/** The row of the journal that names it first tells how it came about. */
const lived = ({ journal, runs }: RunServices, id: string): Past | undefined => {
  const row = journal.firstNaming(id);
  const run = row && runs.at(row.runOrdinal);
  if (!run) return undefined;
  const made = readRows(journal.ofRun(run)).calls.find(
    (each) => each.call.callId === id || JSON.stringify(outputOf(each) ?? null).includes(id),
  );
  if (made && row.kind !== "inbox") {
    const { callId, toolName, input } = made.call;
    const line = callLine({ toolName, input });
    const output = JSON.stringify(outputOf(made) ?? null);
    return { runId: run.id, names: [id, callId, line, ...messageIds(output)], words: `${toolName} ${line}` };
  }
  const { lines = [], eventIds = [] } = row.meta?.kind === "inbox" ? row.meta : {};
  const line = lines.find((each, index) => each.includes(id) || eventIds[index] === id) ?? "";
  return { runId: run.id, names: [id, ...(line === "" ? [] : [line, ...messageIds(line)])], words: line };
};

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
const isFound = async ({ search }: RunServices, query: string, { names, runId }: Past): Promise<boolean> => {
  if (query === "") return false;
  const { items } = await search.search({ query, mode: "auto", types: [], limit: 20 });
  return items.some(({ source }) => names.includes(source.messageId ?? "") || source.runId === runId);
};

/** Where something stands in the input that the next run would be given, and the tools that return it. Changes nothing. */
const knowledgeOf = async (services: RunServices, { messageId, callId, eventId }: PastThing): Promise<Knowledge> => {
  const id = messageId ?? callId ?? eventId ?? "";
  const past = waiting(services, id) ?? lived(services, id);
  if (!past) return { id, known: false, places: [] };
  const { config } = services.identity.get();
  const { snapshot } = await continuityOf(config).next(services, timeoutSignal(viewTimeoutMs));
  const { sections, tools } = compose(snapshot);
  const holding = sections.filter(({ text }) => past.names.some((name) => text.includes(name)));
  const places: Knowledge["places"] = holding.map(({ name: section }) => ({
    how: section === "earlier_summaries" ? "summary" : "verbatim",
    section,
  }));
  const spaces = messageId === undefined ? [] : [services.ids.ownerOf("msg", messageId)];
  for (const spaceId of spaces) {
    if (services.spaces.isMember(spaceId)) places.push({ how: "tool", tool: "read_messages", input: { spaceId } });
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
