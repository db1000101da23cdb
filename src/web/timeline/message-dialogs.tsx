import { useState } from "react";
import type { LiveSpace, Message, RelatedItem } from "../../client/index.ts";
import { Dialog } from "../look/dialog.tsx";
import { useSignedIn } from "../session/session.ts";

/** A message that its person is about to edit or delete. */
export type Asked = { what: "edit" | "delete"; message: Message };

type MessageDialogProps = { asked: Asked; live: LiveSpace; nameOf: (agentId: string) => string; onClose: () => void };

export const MessageDialog = (props: MessageDialogProps) =>
  props.asked.what === "edit" ? <EditDialog {...props} /> : <DeleteDialog {...props} />;

const EditDialog = ({ asked: { message }, live, onClose }: MessageDialogProps) => {
  const [text, setText] = useState(message.text ?? "");
  const labels = { title: "Edit your message", cancelLabel: "Cancel", submitLabel: "Save" };
  const save = async (): Promise<void> => {
    if (text !== message.text) await live.editMessage(message.id, text);
    onClose();
  };
  return (
    <Dialog {...labels} isReady={text.trim() !== ""} onClose={onClose} onSubmit={save}>
      <textarea
        className="input"
        aria-label="Its text"
        rows={5}
        dir="auto"
        data-initial-focus
        value={text}
        onChange={({ target }) => setText(target.value)}
      />
      <p className="small soft">It wakes no agent again. Agents that read the old words forget them.</p>
    </Dialog>
  );
};

const DeleteDialog = ({ asked: { message }, live, nameOf, onClose }: MessageDialogProps) => {
  const { client } = useSignedIn();
  /** Items that agents wrote from it; null until it is deleted. */
  const [related, setRelated] = useState<readonly RelatedItem[] | null>(null);
  const remove = async (): Promise<void> => {
    const kept = await live.deleteMessage(message.id);
    if (kept.length === 0) onClose();
    else setRelated(kept);
  };
  const removeRelated = async (): Promise<void> => {
    for (const item of related ?? []) await client.deleteRelated(item);
    onClose();
  };
  if (related === null) {
    const labels = { title: "Delete this message?", cancelLabel: "Keep it", submitLabel: "Delete" };
    return (
      <Dialog key="message" {...labels} isDangerous onClose={onClose} onSubmit={remove}>
        <p>Its words go from here and from the agents that read them. This cannot be undone.</p>
      </Dialog>
    );
  }
  const labels = { title: "Delete what agents wrote of it?", cancelLabel: "Keep it", submitLabel: "Delete all of it" };
  return (
    <Dialog key="related" {...labels} isDangerous onClose={onClose} onSubmit={removeRelated}>
      <p>The message is deleted. In runs that knew it, agents wrote:</p>
      <ul>
        {related.map(({ agentId, kind, label, id }) => (
          <li key={`${agentId} ${label ?? id}`}>
            {nameOf(agentId)}: {kind === "block" ? `the block ${label}` : "a fact in its archive"}
          </li>
        ))}
      </ul>
    </Dialog>
  );
};
