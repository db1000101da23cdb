import { type ReactNode, useCallback, useId, useState } from "react";
import { Button, IconButton } from "../look/button.tsx";
import { useSignedIn } from "../session/session.ts";
import { useRequest } from "../session/use-request.ts";
import { People } from "./erasing.tsx";
import { keptWords, RetentionDialog } from "./retention.tsx";
import { Limits, NearTheEnd } from "./room.tsx";
import { Usage } from "./usage.tsx";
import "./workspace.css";

/** For admins, in the place of a space: what the workspace may use and uses, how long it keeps, and whom it forgets. */
export const WorkspaceView = ({ onMenu, onClose }: { onMenu: () => void; onClose: () => void }) => {
  const { client } = useSignedIn();
  const { answer, problem, again } = useRequest(useCallback(() => client.getWorkspace(), [client]));
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
            <Section title="What it may use">
              <Limits {...answer} />
              <NearTheEnd />
            </Section>
            <Section title="What was used">
              <Usage />
            </Section>
            <Section title="How long messages stay">
              <p>{keptWords(answer.workspace.retentionDays)}</p>
              <p className="small soft">A space may say otherwise, beside its members.</p>
              <div>
                <Button onClick={() => setChanging(true)}>Change</Button>
              </div>
            </Section>
            <Section title="People and services">
              <People />
            </Section>
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

const Section = ({ title, children }: { title: string; children: ReactNode }) => {
  const id = useId();
  return (
    <section className="column stack" aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {children}
    </section>
  );
};
