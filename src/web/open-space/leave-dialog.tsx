import { useState } from "react";
import { messageOf } from "../../client/index.ts";
import { Dialog } from "../look/dialog.tsx";
import { useSignedIn } from "../session/signed-in.ts";

type LeaveDialogProps = { spaceId: string; spaceName: string; onClose: () => void; onLeft: () => void };

export const LeaveDialog = ({ spaceId, spaceName, onClose, onLeft }: LeaveDialogProps) => {
  const { client, entityId } = useSignedIn();
  const [problem, setProblem] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const leave = async (): Promise<void> => {
    setBusy(true);
    try {
      await client.removeMember(spaceId, entityId);
      onLeft();
    } catch (error) {
      setProblem(messageOf(error));
      setBusy(false);
    }
  };
  return (
    <Dialog title={`Leave ${spaceName}?`} onClose={onClose}>
      <div className="dialog-body">
        <p>You will not see its messages any more until somebody adds you again. What you wrote stays.</p>
        {problem && (
          <p className="field-error" role="alert">
            {problem}
          </p>
        )}
        <div className="dialog-actions">
          <button type="button" className="button button-plain" data-initial-focus onClick={onClose}>
            Stay
          </button>
          <button type="button" className="button button-danger" disabled={isBusy} onClick={() => void leave()}>
            Leave
          </button>
        </div>
      </div>
    </Dialog>
  );
};
