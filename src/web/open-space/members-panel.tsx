import { useCallback, useState } from "react";
import type { SpaceState } from "../../client/index.ts";
import { Avatar, TypeBadge } from "../look/avatar.tsx";
import { LinkButton } from "../look/button.tsx";
import { Dialog } from "../look/dialog.tsx";
import { Icon } from "../look/icon.tsx";
import { Panel } from "../look/panel.tsx";
import { SignInLinkDialog } from "../session/credentials.tsx";
import { useSignedIn } from "../session/session.ts";
import { useRequest } from "../session/use-request.ts";
import { storageWords } from "../settings/limits.tsx";
import { presence } from "../timeline/presence.ts";
import { Confidence } from "./confidence.tsx";

type MembersPanelProps = { state: SpaceState; spaceName: string; onClose: () => void; onLeave: () => void };

export const MembersPanel = ({ state, spaceName, onClose, onLeave }: MembersPanelProps) => {
  const { client, entityId } = useSignedIn();
  const [isLeaving, setLeaving] = useState(false);
  const [linked, setLinked] = useState<{ id: string; name: string } | null>(null);
  const { answer: you } = useRequest(useCallback(() => client.getEntity(entityId), [client, entityId]));
  const isAdmin = you?.role === "admin";
  const doings = new Map(presence(state).map(({ entityId: id, doing }) => [id, doing]));
  // People first, then agents and services, each by name.
  const { human = [], other = [] } = Object.groupBy(
    state.members.toSorted((one, another) => one.name.localeCompare(another.name)),
    ({ type }) => (type === "human" ? type : "other"),
  );
  const labels = { title: `Leave ${spaceName}?`, cancelLabel: "Stay", submitLabel: "Leave" };
  const leave = async (): Promise<void> => {
    await client.removeMember(state.spaceId, entityId);
    setLeaving(false);
    onLeave();
  };
  return (
    <Panel name="Members" className="members" onClose={() => isLeaving || linked || onClose()}>
      <ul>
        {[...human, ...other].map((member) => (
          <li key={member.id} className="row">
            <Avatar {...member} size={32} active={doings.has(member.id)} />
            <span className="words">
              <span className="baseline">
                <span className="ellipsis medium">{member.name}</span>
                {member.id === state.you?.id && <span className="tiny soft">you</span>}
                <TypeBadge type={member.type} />
              </span>
              {doings.has(member.id) && <span className="tiny soft">{doings.get(member.id)} …</span>}
              {isAdmin && member.type === "agent" && <Warnings agentId={member.id} />}
            </span>
            {isAdmin && member.type === "human" && member.id !== entityId && (
              <LinkButton onClick={() => setLinked(member)}>Sign-in link</LinkButton>
            )}
          </li>
        ))}
      </ul>
      <div className="members-foot">
        <Confidence {...{ state, isAdmin }} />
        <button type="button" className="button button-plain button-danger" onClick={() => setLeaving(true)}>
          <Icon name="leave" size={18} /> Leave this space
        </button>
      </div>
      {linked && <SignInLinkDialog person={linked} onClose={() => setLinked(null)} />}
      {isLeaving && (
        <Dialog {...labels} isDangerous onClose={() => setLeaving(false)} onSubmit={leave}>
          <p>You will not see its messages any more until somebody adds you again. What you wrote stays.</p>
        </Dialog>
      )}
    </Panel>
  );
};

/** Parts of the agent's config that cannot work, and whether it is nearly full. Only admins may ask, and change it. */
const Warnings = ({ agentId }: { agentId: string }) => {
  const { client } = useSignedIn();
  const { answer } = useRequest(useCallback(() => client.getAgent(agentId), [client, agentId]));
  const warnings = [storageWords(answer?.storage), ...(answer?.warnings ?? [])].filter((words) => words !== null);
  return warnings.map((warning) => (
    <span key={warning} className="tiny danger">
      {warning}
    </span>
  ));
};
