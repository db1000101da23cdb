import type { Message } from "../protocol/message.ts";

/**
 * Messages in the order of their `seq`, each once; of two with the same id the one of `newer` wins.
 * Linear where one list follows the other, which is the usual case.
 */
export const mergeMessages = (older: readonly Message[], newer: readonly Message[]): readonly Message[] => {
  const first = newer[0];
  const last = older.at(-1);
  if (first === undefined) return older;
  if (last === undefined || last.seq < first.seq) return [...older, ...newer];
  const bySeq = new Map<number, Message>();
  for (const message of older) bySeq.set(message.seq, message);
  for (const message of newer) bySeq.set(message.seq, message);
  return [...bySeq.values()].sort((one, other) => one.seq - other.seq);
};

/** The messages with `message` in the place of the one with its id; the same list if there is none. */
export const replaceMessage = (messages: readonly Message[], message: Message): readonly Message[] => {
  const index = messages.findLastIndex((one) => one.id === message.id);
  return index < 0 ? messages : messages.with(index, message);
};
