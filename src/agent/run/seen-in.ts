import type { Message } from "../../protocol/message.ts";
import type { JournalRow } from "../journal.ts";
import type { Shown } from "../records.ts";
import type { InboxRow } from "../schema.ts";
import { isSeen } from "../spaces.ts";
import type { RunServices } from "./run-services.ts";

/** Tells which messages of a space this agent's runs have handled, as of now. Its own always count as handled. */
export const seenIn = (services: RunServices, spaceId: string): ((message: Message) => boolean) => {
  const row = services.spaces.get(spaceId);
  const mark = { upTo: row?.processedSeq ?? 0, beyond: row?.acknowledged ?? [] };
  const known = { deliveredTo: row?.cursor ?? 0, waiting: services.inbox.unprocessed(spaceId) };
  const { id: agentId } = services.identity.get();
  return ({ seq, sender }) => sender.id === agentId || isSeen(mark, known, seq);
};

/** The newest message that is shown of a space. */
export const shownOf = (spaceId: string, messages: Message[]): Shown[] => {
  const newest = messages.at(-1);
  return newest ? [{ spaceId, upTo: newest.seq }] : [];
};

const shownIn = (rows: JournalRow[]): Shown[] =>
  rows.flatMap(({ meta }) => (meta?.kind === "inbox" || meta?.kind === "result" ? (meta.shown ?? []) : []));

/** Settles the seen marks of an ended timeline run. Messages that it was shown count only if it was committed. */
export const settleSeen = (services: RunServices, events: InboxRow[], rows: JournalRow[], committed: boolean): void => {
  const bySpace = new Map<string, { acknowledged: number[]; shownTo: number }>();
  const of = (spaceId: string) => {
    const settled = bySpace.get(spaceId) ?? { acknowledged: [], shownTo: 0 };
    bySpace.set(spaceId, settled);
    return settled;
  };
  for (const { data } of events) {
    if (data.type !== "space_message") continue;
    const { spaceId, seq } = data.delivered.message;
    of(spaceId).acknowledged.push(seq);
  }
  for (const { spaceId, upTo } of committed ? shownIn(rows) : []) {
    const settled = of(spaceId);
    settled.shownTo = Math.max(settled.shownTo, upTo);
  }
  for (const [spaceId, settled] of bySpace) services.spaces.settle(spaceId, settled);
};
