import type { Message } from "../../src/protocol/message.ts";
import { answerIn, commandsIn } from "./commands.ts";

/** One power cut, in milliseconds since the epoch: when it came, and when the server answered again. */
export type Kill = { at: number; restartedAt: number };

/** The bounds of `npm run test:kill`, from the restart to the answer of what was cut. */
export const mostRecoveryMs = { p50: 6000, max: 10_000 };

/**
 * For each command in a space's log that a kill found unanswered: the time from the last restart before its answer to
 * that answer. By the server's own times, so that it does not count how long a client takes to come back.
 * Nor do commands to `guests`: their programs come back when they like.
 */
export const recoveryTimes = (log: Message[], kills: Kill[], guests: ReadonlySet<string> = new Set()): number[] => {
  const answeredAt = new Map<string, number>();
  for (const { text = "", createdAt } of log) {
    const answer = answerIn(text);
    if (answer) answeredAt.set(answer.id, Date.parse(createdAt));
  }
  return log.flatMap(({ text = "", createdAt }) =>
    commandsIn(text).flatMap(({ id, agent }) => {
      if (guests.has(agent)) return [];
      const answered = answeredAt.get(id) ?? Number.NaN;
      const cut = kills.findLast(({ at }) => Date.parse(createdAt) <= at && at < answered);
      return cut ? [Math.max(0, answered - cut.restartedAt)] : [];
    }),
  );
};
