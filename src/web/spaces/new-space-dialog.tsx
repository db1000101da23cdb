import { useCallback, useState } from "react";
import { allItems, type Space } from "../../client/index.ts";
import { Avatar, TypeBadge } from "../look/avatar.tsx";
import { Dialog, dialogProblemId } from "../look/dialog.tsx";
import { Icon } from "../look/icon.tsx";
import { useSignedIn } from "../session/session.ts";
import { useRequest } from "../session/use-request.ts";
import { confidentialWords } from "./space-items.ts";

type NewSpaceDialogProps = { onClose: () => void; onCreated: (space: Space) => void };

export const NewSpaceDialog = ({ onClose, onCreated }: NewSpaceDialogProps) => {
  const { client, entityId } = useSignedIn();
  const list = useCallback(() => allItems((page) => client.listEntities({ limit: 100, ...page })), [client]);
  const { answer: entities, problem } = useRequest(list);
  const contacts = entities?.filter(({ id, type }) => id !== entityId && type !== "service");
  const [name, setName] = useState("");
  const [confidential, setConfidential] = useState(false);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());

  const toggle = (id: string): void => setChosen((ids) => new Set(ids.symmetricDifference(new Set([id]))));
  const create = async (): Promise<void> =>
    onCreated(await client.createSpace({ name: name.trim(), members: [entityId, ...chosen], confidential }));
  const labels = { title: "New space", cancelLabel: "Cancel", submitLabel: "Create" };

  return (
    <Dialog {...labels} isReady={name.trim() !== ""} onClose={onClose} onSubmit={create}>
      <label className="field">
        <span className="field-label">Name</span>
        <input
          className="input"
          value={name}
          maxLength={64}
          required
          data-initial-focus
          aria-describedby={dialogProblemId}
          onChange={(event) => setName(event.target.value)}
        />
      </label>
      <fieldset className="new-space-people">
        <legend className="field-label">Who is in it, beside you</legend>
        {contacts?.length === 0 && <p className="small soft">You share no space with anybody yet.</p>}
        {problem && <p className="small danger">{problem}</p>}
        {contacts?.map((contact) => (
          <label key={contact.id} className="option hoverable">
            <input type="checkbox" checked={chosen.has(contact.id)} onChange={() => toggle(contact.id)} />
            <Avatar {...contact} size={28} />
            <span>{contact.name}</span>
            <TypeBadge type={contact.type} />
          </label>
        ))}
      </fieldset>
      <label className="option hoverable">
        <input type="checkbox" checked={confidential} onChange={() => setConfidential(!confidential)} />
        <Icon name="lock" size={18} />
        <span className="words">
          <span>Confidential</span>
          <span className="small soft">{confidentialWords} It stays so for ever.</span>
        </span>
      </label>
    </Dialog>
  );
};
