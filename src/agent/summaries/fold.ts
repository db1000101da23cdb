import type { Message } from "../../protocol/message.ts";
import { ColloquyError, unwrap } from "../../shared/errors.ts";
import { maxSummaryBacklog } from "../bounds.ts";
import { callWithRetry, spaceWindow } from "../call-with-retry.ts";
import { unquoteLines } from "../context/grammar.ts";
import { cycleText, messageText, nextChunk } from "../context/summary.ts";
import { beginFolded, foldedIn, leavingCycles } from "../run/continuity/consciousness.ts";
import type { RunServices } from "../run/run-services.ts";
import { ownCycles, type SummaryRow } from "../run/summaries.ts";
import { askSummary, foldingLimits } from "./ask-summary.ts";

/**
 * Folds one more chunk of the cycles that leave the input. Once all are folded, the next run begins a new window with the
 * summary in their place. They stay in the journal.
 */
export const foldCycles = async (services: RunServices, row: SummaryRow, signal: AbortSignal): Promise<void> => {
  const { windows, summaries } = services;
  const window = windows.newest("consciousness");
  if (!window) return summaries.done(ownCycles);
  const leaving = leavingCycles(services, window);
  const last = leaving.at(-1);
  if (!last) return summaries.done(ownCycles);
  const folded = foldedIn(services, window);
  const chunk = nextChunk(
    leaving
      .filter(({ ordinal }) => ordinal > (folded?.upTo ?? 0))
      .map(({ ordinal, messages }) => ({ at: ordinal, text: cycleText(messages) })),
    foldingLimits(services, row),
  );
  const end = chunk.at(-1);
  if (!end) {
    return services.transaction(() => {
      beginFolded(services, window, folded?.text ?? "", last.ordinal);
      summaries.done(ownCycles);
    });
  }
  const earlier = folded?.text ?? (window.summary === null ? null : unquoteLines(window.summary));
  const text = await askSummary(
    services,
    { of: { kind: "cycles" }, earlier, parts: chunk.map((each) => each.text) },
    signal,
  );
  summaries.folded(ownCycles, { text, base: window.firstRun, upTo: end.at });
};

const mostLooks = 3;

/** The messages of a space from place `from` on (the first is 0), oldest first, and the space's name. */
const messagesFrom = async (
  services: RunServices,
  spaceId: string,
  page: { from: number; limit: number },
  signal: AbortSignal,
): Promise<{ name: string; messages: Message[] }> => {
  const look = async (limit: number, offset: number) =>
    unwrap(await callWithRetry(() => spaceWindow(services, spaceId, { limit, offset }), signal));
  let { total } = await look(1, 0);
  // The offset counts from the newest message, and more may come during the call.
  for (let looks = 0; looks < mostLooks; looks += 1) {
    const window = await look(page.limit, Math.max(0, total - page.from - page.limit));
    if (window.total === total) return { name: window.space.name, messages: window.messages };
    total = window.total;
  }
  throw new ColloquyError("unavailable", "the space is written in faster than it can be read");
};

/** Folds one more chunk of a space's messages into its summary, up to the messages that the history shows. */
export const foldMessages = async (services: RunServices, row: SummaryRow, signal: AbortSignal): Promise<void> => {
  const { summaries, spaces, identity } = services;
  const { subject: spaceId } = row;
  if (!spaces.isMember(spaceId)) return summaries.forget(spaceId);
  const limits = foldingLimits(services, row);
  // Older messages than `maxSummaryBacklog` are not summarised: read_messages reads them.
  const from = Math.max(row.upTo, row.wanted - maxSummaryBacklog);
  if (row.wanted - from < limits.chunkSize) return summaries.done(spaceId);
  const { name, messages } = await messagesFrom(services, spaceId, { from, limit: limits.chunkSize }, signal);
  const agentId = identity.get().id;
  const chunk = nextChunk(
    messages.map((message, index) => ({ at: from + index + 1, text: messageText(message, agentId) })),
    limits,
  );
  const end = chunk.at(-1);
  if (!end) return summaries.done(spaceId);
  const text = await askSummary(
    services,
    { of: { kind: "messages", space: name }, earlier: row.text, parts: chunk.map((each) => each.text) },
    signal,
  );
  summaries.folded(spaceId, { text, base: row.base + (from - row.upTo), upTo: end.at });
};
