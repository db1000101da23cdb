import { type FormEvent, useCallback, useId, useState } from "react";
import { allItems, messageOf, type Space } from "../../client/index.ts";
import { Avatar, TypeBadge } from "../look/avatar.tsx";
import { Dialog } from "../look/dialog.tsx";
import { useSignedIn } from "../session/signed-in.ts";
import { useRequest } from "../session/use-request.ts";

type NewSpaceDialogProps = { onClose: () => void; onCreated: (space: Space) => void };

export const NewSpaceDialog = ({ onClose, onCreated }: NewSpaceDialogProps) => {
  const { client, entityId } = useSignedIn();
  const listed = useCallback(
    () => allItems((cursor) => client.listEntities({ limit: 100, ...(cursor && { cursor }) })),
    [client],
  );
  const { answer: entities, problem: entitiesProblem } = useRequest(listed);
  const contacts = entities?.filter(({ id, type }) => id !== entityId && type !== "service");
  const [name, setName] = useState("");
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [problem, setProblem] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const problemId = useId();

  const toggle = (id: string): void => setChosen((ids) => new Set(ids.symmetricDifference(new Set([id]))));
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      onCreated(await client.createSpace({ name: name.trim(), members: [entityId, ...chosen] }));
    } catch (error) {
      setProblem(messageOf(error));
      setBusy(false);
    }
  };

  return (
    <Dialog title="New space" onClose={onClose}>
      <form className="dialog-body" onSubmit={(event) => void submit(event)}>
        <label className="field">
          <span className="field-label">Name</span>
          <input
            className="input"
            value={name}
            maxLength={64}
            required
            data-initial-focus
            aria-describedby={problem ? problemId : undefined}
            onChange={(event) => setName(event.target.value)}
          />
        </label>
        <fieldset className="new-space-people">
          <legend className="field-label">Who is in it, beside you</legend>
          {contacts?.length === 0 && <p className="field-hint">You share no space with anybody yet.</p>}
          {entitiesProblem && <p className="field-error">{entitiesProblem}</p>}
          {contacts?.map((contact) => (
            <label key={contact.id} className="option hoverable">
              <input type="checkbox" checked={chosen.has(contact.id)} onChange={() => toggle(contact.id)} />
              <Avatar id={contact.id} name={contact.name} type={contact.type} size={28} />
              <span>{contact.name}</span>
              <TypeBadge type={contact.type} />
            </label>
          ))}
        </fieldset>
        {problem && (
          <p className="field-error" role="alert" id={problemId}>
            {problem}
          </p>
        )}
        <div className="dialog-actions">
          <button type="button" className="button button-plain" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="button button-primary" disabled={isBusy || name.trim() === ""}>
            Create
          </button>
        </div>
      </form>
    </Dialog>
  );
};
