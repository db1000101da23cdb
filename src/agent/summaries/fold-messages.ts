import type { Message } from "../../protocol/message.ts";
import { ColloquyError, unwrap } from "../../shared/errors.ts";
import { maxSummaryBacklog } from "../bounds.ts";
import { reach } from "../call-with-retry.ts";
import { nextChunk } from "../context/summary/fold.ts";
import { messageText } from "../context/summary/summary-prompt.ts";
import type { Parts } from "../run/parts.ts";
import type { SummaryRow } from "../run/summaries.ts";
import { askSummary, foldingLimits } from "./ask-summary.ts";

const mostLooks = 3;

/** The messages of a space from place `from` on (the first is 0), oldest first, and the space's name. */
const messagesFrom = async (
  parts: Parts,
  spaceId: string,
  page: { from: number; limit: number },
  signal: AbortSignal,
): Promise<{ name: string; messages: Message[] }> => {
  const { id: agentId, workspaceId } = parts.identity.get();
  const look = async (limit: number, offset: number) =>
    unwrap(
      await reach(() => parts.env.SPACE.getByName(spaceId).window(workspaceId, agentId, { limit, offset }), signal),
    );
  let { total } = await look(1, 0);
  // A window is counted from the newest message, and more may come while it is asked for.
  for (let looks = 0; looks < mostLooks; looks += 1) {
    const window = await look(page.limit, Math.max(0, total - page.from - page.limit));
    if (window.total === total) return { name: window.space.name, messages: window.messages };
    total = window.total;
  }
  throw new ColloquyError("unavailable", "the space is written in faster than it can be read");
};

/** Folds one more chunk of a space's messages into the summary of it, up to where its history is read whole. */
export const foldMessages = async (parts: Parts, row: SummaryRow, signal: AbortSignal): Promise<void> => {
  const { summaries, spaces, identity } = parts;
  const { subject: spaceId } = row;
  if (!spaces.isMember(spaceId)) return summaries.forget(spaceId);
  const limits = foldingLimits(parts, row);
  // What is older than anyone would pay for is left to read_messages.
  const from = Math.max(row.upTo, row.wanted - maxSummaryBacklog);
  if (row.wanted - from < limits.chunkSize) return summaries.done(spaceId);
  const { name, messages } = await messagesFrom(parts, spaceId, { from, limit: limits.chunkSize }, signal);
  const agentId = identity.get().id;
  const chunk = nextChunk(
    messages.map((message, index) => ({ at: from + index + 1, text: messageText(message, agentId) })),
    limits,
  );
  const end = chunk.at(-1);
  if (!end) return summaries.done(spaceId);
  const text = await askSummary(
    parts,
    { of: { kind: "messages", space: name }, earlier: row.text, parts: chunk.map((each) => each.text) },
    signal,
  );
  summaries.folded(spaceId, { text, base: row.base + (from - row.upTo), upTo: end.at });
};
