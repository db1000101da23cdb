import { useState } from "react";
import type { Member, SpaceState } from "../../client/index.ts";
import { Avatar, TypeBadge } from "../look/avatar.tsx";
import { Dialog } from "../look/dialog.tsx";
import { Icon, IconButton } from "../look/icon.tsx";
import { useSignedIn } from "../session/signed-in.ts";
import { type Doing, presence } from "../timeline/presence.ts";

type MembersPanelProps = { state: SpaceState; spaceName: string; onClose: () => void; onLeave: () => void };

/** People first, then agents and services, each by name. */
const inOrder = (members: readonly Member[]): Member[] =>
  [...members].sort(
    (one, other) => Number(one.type !== "human") - Number(other.type !== "human") || one.name.localeCompare(other.name),
  );

const takeFocus = (element: HTMLElement | null): void => element?.focus();

export const MembersPanel = ({ state, spaceName, onClose, onLeave }: MembersPanelProps) => {
  const { client, entityId } = useSignedIn();
  const [isLeaving, setLeaving] = useState(false);
  const doings = new Map(presence(state).map((doing) => [doing.entityId, doing]));
  return (
    <aside
      className="members panel"
      aria-label="Members"
      tabIndex={-1}
      ref={takeFocus}
      onKeyDown={(event) => event.key === "Escape" && !isLeaving && onClose()}
    >
      <div className="panel-head">
        <h2>Members</h2>
        <IconButton icon="close" label="Close members" onClick={onClose} />
      </div>
      <ul className="members-list">
        {inOrder(state.members).map((member) => (
          <MemberRow
            key={member.id}
            member={member}
            doing={doings.get(member.id)}
            isYou={member.id === state.you?.id}
          />
        ))}
      </ul>
      <div className="members-foot">
        <button type="button" className="button button-plain button-danger" onClick={() => setLeaving(true)}>
          <Icon name="leave" size={18} /> Leave this space
        </button>
      </div>
      {isLeaving && (
        <Dialog
          title={`Leave ${spaceName}?`}
          cancelLabel="Stay"
          submitLabel="Leave"
          isDangerous
          onClose={() => setLeaving(false)}
          onSubmit={async () => {
            await client.removeMember(state.spaceId, entityId);
            setLeaving(false);
            onLeave();
          }}
        >
          <p>You will not see its messages any more until somebody adds you again. What you wrote stays.</p>
        </Dialog>
      )}
    </aside>
  );
};

const MemberRow = ({ member, doing, isYou }: { member: Member; doing: Doing | undefined; isYou: boolean }) => (
  <li className="member row">
    <Avatar id={member.id} name={member.name} type={member.type} size={32} active={doing !== undefined} />
    <span className="member-words words">
      <span className="member-name baseline">
        <span className="ellipsis medium">{member.name}</span>
        {isYou && <span className="tiny soft">you</span>}
        <TypeBadge type={member.type} />
      </span>
      {doing && <span className="tiny soft">{doing.doing} …</span>}
    </span>
  </li>
);
