import type { Env } from "../env/env.ts";
import type { ForgottenOrigin } from "../protocol/message-change.ts";
import { unwrap } from "../shared/errors.ts";
import { withTimeout } from "../shared/timeouts.ts";
import { deliverTimeoutMs, forgetAgainMs } from "./bounds.ts";
import { messageIn, messageOf } from "./log/log.ts";
import { change } from "./message-changes.ts";
import { spaceIn } from "./rights.ts";
import type { SpaceServices } from "./services.ts";
import { forgetKind, noteKind } from "./told-origins.ts";

const atOnce = 10;

/** The jobs of both ends of an origin: the space that tells it, and the space where its words were said. */
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

/** The reference stays. */
export const forgetOrigin = (
  services: SpaceServices,
  workspaceId: string,
  { sourceId, messageId, mark, isSpace }: ForgottenOrigin,
): { isDone: boolean } => {
  const { log, toolCalls, formerAgents } = services;
  spaceIn(services, workspaceId);
  const row = log.findMessage(messageId);
  const [before] = row ? toolCalls.current([messageOf(row.frame)]) : [];
  if (row && before?.origin && "messageId" in before.origin && before.origin.messageId === sourceId) {
    const { sourceEvent, sourceSenderName: _, sourceSpaceName, ...reference } = before.origin;
    const words = [sourceEvent, isSpace ? sourceSpaceName : undefined].filter((each) => each !== undefined);
    const origin = isSpace || sourceSpaceName === undefined ? reference : { ...reference, sourceSpaceName };
    const { updatedSeq } = toolCalls.at(row.seq) ?? {};
    const message = { ...before, origin };
    if (words.length > 0) change(services, [{ row, before, message, updatedSeq, was: [...mark, ...words] }]);
  }
  return { isDone: !log.keepsWords() && formerAgents.left() === 0 };
};
