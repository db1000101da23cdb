import { erasedMark } from "../protocol/entity.ts";
import type { ForgottenOrigin } from "../protocol/message-change.ts";
import { type Was, wordIn } from "../shared/stretches.ts";
import { type LogRow, messageIn } from "./log/log.ts";
import { spaceIn } from "./rights.ts";
import type { SpaceServices } from "./services.ts";

/**
 * An agent's message may hold words of a message in another space, its source. When the source is changed or deleted, those
 * words go too, even if the agent was deleted before.
 *
 * Invariants
 * 1. Such a message's transaction sets a job: the source's space notes it (`Routing.told`), or says its words are gone.
 * 2. What takes the source's words away sets, in its transaction, a job for each message that tells them. An erasure
 *    waits for it.
 */
export const noteKind = "note-told";
export const forgetKind = "forget-origin";

/** In the transaction that appends an agent's message. */
export const noteOrigin = ({ jobs }: SpaceServices, row: LogRow): void => {
  const { id, origin } = messageIn(row);
  if (origin && "sourceSpaceName" in origin) jobs.set({ kind: noteKind, key: id });
};

/** `was`: the words of the source that go. In the transaction of that change. */
export const forgetTold = ({ jobs }: SpaceServices, row: LogRow, was: Was[], isSpace = false): void => {
  const mark = was[0] === erasedMark ? was.slice(0, 3).map(wordIn) : [];
  for (const messageId of row.routing?.told ?? []) {
    const payload: ForgottenOrigin = { sourceId: messageIn(row).id, messageId, mark, isSpace };
    jobs.set({ kind: forgetKind, key: `${payload.sourceId} ${messageId}`, payload });
  }
};

/** How many messages elsewhere tell words that are to go, and here words that may be gone where they are from. */
export const toldLeft = ({ jobs }: SpaceServices): number => jobs.keys(forgetKind).length + jobs.keys(noteKind).length;

export const noteTold = (
  services: SpaceServices,
  workspaceId: string,
  { sourceId, messageId, words }: { sourceId: string; messageId: string; words?: string | undefined },
): boolean => {
  spaceIn(services, workspaceId);
  const row = services.log.findMessage(sourceId);
  if (!row?.routing) return false;
  const told = new Set([...(row.routing.told ?? []), messageId]);
  services.log.reroute(row, { ...row.routing, told: [...told] });
  return words === undefined || words === (messageIn(row).text ?? "");
};
