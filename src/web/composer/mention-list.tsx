import type { Member } from "../../client/index.ts";
import { Avatar, TypeBadge } from "../look/avatar.tsx";
import "./mention-list.css";

type MentionListProps = {
  id: string;
  members: readonly Member[];
  selected: number;
  onPick: (member: Member) => void;
};

export const optionId = (listId: string, index: number): string => `${listId}-${index}`;

/** Who can be mentioned; the composer keeps the focus and moves the selection. */
export const MentionList = ({ id, members, selected, onPick }: MentionListProps) => (
  <div id={id} className="mention-list" role="listbox" aria-label="Mention">
    {members.map((member, index) => (
      <div
        key={member.id}
        id={optionId(id, index)}
        className="mention-option"
        role="option"
        tabIndex={-1}
        aria-selected={index === selected}
        onPointerDown={(event) => {
          event.preventDefault(); // the composer keeps the focus
          onPick(member);
        }}
      >
        <Avatar id={member.id} name={member.name} type={member.type} size={24} />
        <span>{member.name}</span>
        <TypeBadge type={member.type} />
      </div>
    ))}
  </div>
);
