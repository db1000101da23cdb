import { useCallback, useState } from "react";
import type { Message, SpaceState } from "../../client/index.ts";
import { IconButton } from "../look/button.tsx";
import { Icon } from "../look/icon.tsx";
import { useSignedIn } from "../session/session.ts";
import { recall, remember } from "../storage.ts";

export type Reply = {
  /** The message that the next one answers; null for none, or while it is not loaded. */
  message: Message | null;
  choose: (messageId: string | null) => void;
};

/** The message that is being answered. It belongs to the draft and is kept like it. */
export const useReply = ({ spaceId, messages }: Pick<SpaceState, "spaceId" | "messages">): Reply => {
  const key = `colloquy.reply.${useSignedIn().entityId}.${spaceId}`;
  const [messageId, setMessageId] = useState(() => recall("tab", key));
  const choose = useCallback(
    (next: string | null) => {
      setMessageId(next);
      remember("tab", key, next);
    },
    [key],
  );
  return { message: messages.find(({ id, deleted }) => id === messageId && !deleted) ?? null, choose };
};

/** The message that the next one answers, shown over the composer. */
export const ReplyStrip = ({ name, text, onCancel }: { name: string; text: string; onCancel: () => void }) => (
  <div className="reply-strip row small soft">
    <Icon name="reply" size={16} />
    <p className="grow words" role="status">
      <span className="ellipsis">
        Answering <strong>{name}</strong>
      </span>
      <span className="ellipsis" dir="auto">
        {text}
      </span>
    </p>
    <IconButton icon="close" size={16} label="Cancel the reply" title="Cancel (Esc)" onClick={onCancel} />
  </div>
);
