import type { Message } from "./message.ts";

/**
 * An edit or a deletion of a message. `seq` is its place in the log. `message` is as it is now, without words where it
 * was deleted. `was` are the old words: an agent that has them forgets them. If somebody was erased, `erasedMark`, the
 * id and the name come before the words. `saidAt`: when each of `was` was first said, in milliseconds since the epoch;
 * left out: when the message was created.
 */
export type MessageChange = {
  seq: number;
  kind: "edited" | "deleted";
  message: Message;
  was: string[];
  saidAt?: number[] | undefined;
};

/** `mark`: of who is erased, as `was` has it. `isSpace`: the space of the origin is no more. */
export type ForgottenOrigin = { sourceId: string; messageId: string; mark: string[]; isSpace: boolean };

/**
 * Words that an agent forgets. `id`: the message that they were, or another name: the same again changes nothing more. `since`:
 * when they were first said, in milliseconds since the epoch, 0 where that is not known. `saidAt`: the same of each, where they
 * differ: none is before `since`. `text`: what the message says now.
 * `messageIds`: of several messages, where an `id` of an entity, alone or with more behind it, says who was erased. `isAgain`: it
 * begins again, though the agent has done it.
 */
export type Redaction = {
  id: string;
  words: string[];
  since: number;
  saidAt?: number[] | undefined;
  text?: string | undefined;
  senderName?: string | undefined;
  spaceId?: string | undefined;
  messageIds?: string[] | undefined;
  isAgain?: boolean | undefined;
};
