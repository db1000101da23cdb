import type { Env } from "../env/env.ts";
import { erasedMark } from "../protocol/entity.ts";
import type { Message } from "../protocol/message.ts";
import type { ForgottenOrigin } from "../protocol/rpc.ts";
import { unwrap } from "../shared/errors.ts";
import { type Was, wordIn } from "../shared/stretches.ts";
import { withTimeout } from "../shared/timeouts.ts";
import { deliverTimeoutMs, forgetAgainMs } from "./bounds.ts";
import { type LogRow, messageIn, messageOf } from "./log/log.ts";
import { fromOf } from "./message-words.ts";
import { spaceIn } from "./rights.ts";
import type { SpaceServices } from "./services.ts";

/**
 * An agent's message may hold words of a message in another space, its source. When the source is changed or deleted, those
 * words go too, even if the agent was deleted before.
 *
 * Invariants
 * 1. From the transaction of such a message on, a job has the source's space note it (`Routing.told`), or say that the words are
 *    gone.
 * 2. What takes words of the source away sets in its transaction a job for each message that tells them. An erasure waits for it.
 */
const noteKind = "note-told";
const forgetKind = "forget-origin";
const atOnce = 10;

/** In the transaction that appends an agent's message. */
export const noteOrigin = ({ jobs }: SpaceServices, row: LogRow): void => {
  const { id, origin } = messageIn(row);
  if (origin && "sourceSpaceName" in origin) jobs.set({ kind: noteKind, key: id });
};

/** `was`: the words of the source that go. In the transaction of that change. */
export const forgetTold = ({ jobs }: SpaceServices, row: LogRow, was: Was[], isSpace = false): void => {
  const mark = was[0] === erasedMark ? was.slice(0, 3).map(wordIn) : [];
  for (const messageId of row.routing?.told ?? []) {
    const payload: ForgottenOrigin = { sourceId: row.messageId ?? "", messageId, mark, isSpace };
    jobs.set({ kind: forgetKind, key: `${payload.sourceId} ${messageId}`, payload });
  }
};

/** How many messages elsewhere tell words that are to go. */
export const toldLeft = ({ jobs }: SpaceServices): number => jobs.keys(forgetKind).length;

export const handleTold = (services: SpaceServices, env: Pick<Env, "SPACE">): void => {
  const { jobs, log, settings, clock, ids } = services;
  const workspaceId = (): string => settings.find()?.workspaceId ?? "";
  jobs.handle(noteKind, {
    atOnce,
    async run({ key: messageId }) {
      const row = log.findMessage(messageId);
      const { origin } = row && settings.find()?.deletedSeq === null ? messageIn(row) : {};
      if (!origin || !("messageId" in origin) || origin.messageId === undefined) return undefined;
      const { spaceId, messageId: sourceId, sourceEvent: words } = origin;
      const asked = env.SPACE.getByName(spaceId).noteTold(workspaceId(), { sourceId, messageId, words });
      const noted = await withTimeout(deliverTimeoutMs, asked);
      const isSpace = !noted.ok && noted.problem.code === "not_found";
      if (isSpace || !unwrap(noted)) forgetOrigin(services, workspaceId(), { sourceId, messageId, mark: [], isSpace });
      return undefined;
    },
  });
  jobs.handle(forgetKind, {
    atOnce,
    async run({ payload }) {
      const of = payload as ForgottenOrigin;
      const space = env.SPACE.getByName(ids.ownerOf("msg", of.messageId));
      const told = await withTimeout(deliverTimeoutMs, space.forgetOrigin(workspaceId(), of));
      // A space that is no more tells nobody.
      const isGone = !told.ok && told.problem.code === "not_found";
      return isGone || unwrap(told).isDone ? undefined : clock.now() + forgetAgainMs;
    },
  });
};

export const noteTold = (
  services: SpaceServices,
  workspaceId: string,
  { sourceId, messageId, words }: { sourceId: string; messageId: string; words?: string | undefined },
): boolean => {
  spaceIn(services, workspaceId);
  const row = services.log.findMessage(sourceId);
  if (!row?.routing || (words !== undefined && words !== (messageIn(row).text ?? ""))) return false;
  const told = new Set([...(row.routing.told ?? []), messageId]);
  services.log.reroute(row, { ...row.routing, told: [...told] });
  return true;
};

/** The reference stays. */
export const forgetOrigin = (
  services: SpaceServices,
  workspaceId: string,
  { sourceId, messageId, mark, isSpace }: ForgottenOrigin,
): { isDone: boolean } => {
  const { log, toolCalls, subscribers, record } = services;
  spaceIn(services, workspaceId);
  const row = log.findMessage(messageId);
  const [before] = row ? toolCalls.current([messageOf(row.frame)]) : [];
  if (row && before?.origin && "messageId" in before.origin && before.origin.messageId === sourceId) {
    const { sourceEvent, sourceSenderName: _, sourceSpaceName, ...reference } = before.origin;
    const words = [sourceEvent, isSpace ? sourceSpaceName : undefined].filter((each) => each !== undefined);
    const origin = isSpace || sourceSpaceName === undefined ? reference : { ...reference, sourceSpaceName };
    const message: Message = { ...before, origin };
    const { toolCall } = message;
    const call = toolCalls.at(row.seq);
    if (words.length > 0) {
      record((append) => {
        const was = subscribers.anyAgentBut("") ? [...mark, ...words] : null;
        const { seq } = append({ type: "message.updated", message, was, ...fromOf(row, before) });
        log.amend(row, message, seq, call?.updatedSeq);
        if (call && toolCall) toolCalls.store({ ...message, kind: "tool_call", toolCall }, call.updatedSeq, null);
      });
    }
  }
  return { isDone: !log.keepsWords() };
};
