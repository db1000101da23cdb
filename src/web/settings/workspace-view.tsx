import { useCallback, useState } from "react";
import { Button, IconButton } from "../look/button.tsx";
import { useSignedIn } from "../session/session.ts";
import { useRequest } from "../session/use-request.ts";
import { People } from "./erasing.tsx";
import { areTokensSpent, Limits, NearTheEnd } from "./limits.tsx";
import { keptWords, RetentionDialog } from "./retention.tsx";
import { Usage } from "./usage.tsx";
import "./workspace.css";

/** For admins, in the place of a space: what the workspace may use and uses, how long it keeps, and whom it forgets. */
export const WorkspaceView = ({ onMenu, onClose }: { onMenu: () => void; onClose: () => void }) => {
  const { client } = useSignedIn();
  const { answer, problem, again } = useRequest(
    useCallback(async () => {
      // A workspace of the last release has no audit log, and tells no limits.
      const spent = client.audit({ action: "tokens.spent", limit: 1 }).catch(() => undefined);
      const [inUse, noted] = await Promise.all([client.getWorkspace(), spent]);
      return { ...inUse, isSpent: areTokensSpent(inUse.limits?.maxTokensPerDay, noted?.items[0]?.detail) };
    }, [client]),
  );
  const [isChanging, setChanging] = useState(false);
  return (
    <div className="workspace">
      <header className="panel-head">
        <IconButton icon="menu" className="only-narrow" label="Show spaces" onClick={onMenu} />
        <h1 className="ellipsis">{answer?.workspace.name ?? "Workspace"}</h1>
        <IconButton icon="close" label="Close the workspace" onClick={onClose} />
      </header>
      <div className="workspace-body">
        {problem && (
          <p className="notice tone-danger column" role="alert">
            {problem}
          </p>
        )}
        {answer && (
          <>
            <section className="column stack">
              <h2>What it may use</h2>
              {answer.limits && answer.used && (
                <Limits limits={answer.limits} used={answer.used} isSpent={answer.isSpent} />
              )}
              <NearTheEnd />
            </section>
            <section className="column stack">
              <h2>What was used</h2>
              <Usage />
            </section>
            <section className="column stack">
              <h2>How long messages stay</h2>
              <p>{keptWords(answer.workspace.retentionDays)}</p>
              <p className="small soft">A space may say otherwise, beside its members.</p>
              <Button onClick={() => setChanging(true)}>Change</Button>
            </section>
            <section className="column stack">
              <h2>People and services</h2>
              <People />
            </section>
          </>
        )}
      </div>
      {isChanging && (
        <RetentionDialog
          title="How long do messages stay?"
          days={answer?.workspace.retentionDays}
          otherwise="for ever, in spaces that set none of their own."
          save={async (retentionDays) => {
            await client.updateWorkspace({ retentionDays });
            again();
          }}
          onClose={() => setChanging(false)}
        />
      )}
    </div>
  );
};
