import { useCallback, useState } from "react";
import type { Message, SpaceState } from "../../client/index.ts";
import { recall, remember } from "../session/storage.ts";

export type Reply = {
  /** What the next message will answer; null for nothing, or while it is not loaded. */
  message: Message | null;
  choose: (messageId: string | null) => void;
};

/** The message that is being answered: it belongs to the draft, and is kept like it. */
export const useReply = ({ spaceId, messages }: Pick<SpaceState, "spaceId" | "messages">): Reply => {
  const key = `colloquy.reply.${spaceId}`;
  const [messageId, setMessageId] = useState(() => recall("tab", key));
  const choose = useCallback(
    (next: string | null) => {
      setMessageId(next);
      remember("tab", key, next);
    },
    [key],
  );
  return { message: messages.find(({ id }) => id === messageId) ?? null, choose };
};
