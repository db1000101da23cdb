import { type KeyboardEvent, useId, useState } from "react";
import type { Member } from "../../client/index.ts";
import { Avatar, TypeBadge } from "../look/avatar.tsx";
import { completeMention, matchingNames, mentionQueryAt } from "./mention-query.ts";

const maxOptions = 8;

type Edit = { text: string; caret: number };

/**
 * Completes an `@` in a text with a caret: `list` shows the members who can be mentioned, and is false if there are none.
 * The text's element, which takes the `combobox` properties, keeps the focus and moves the selection.
 */
export const useMentions = (people: readonly Member[], { text, caret }: Edit, onEdit: (edit: Edit) => void) => {
  const listId = useId();
  const [selected, setSelected] = useState(0);
  /** The `@` at which the person closed the list. Another `@` opens it again. */
  const [dismissedAt, setDismissedAt] = useState<number | null>(null);

  const query = mentionQueryAt(text, caret);
  const options = query && query.start !== dismissedAt ? matchingNames(people, query.text).slice(0, maxOptions) : [];
  // A name that is written out needs no completion.
  const isComplete = options.length === 1 && options[0]?.name.toLowerCase() === query?.text.toLowerCase();
  const isOpen = options.length > 0 && !isComplete;
  const current = Math.min(selected, Math.max(0, options.length - 1));
  const optionId = (index: number): string => `${listId}-${index}`;

  const pick = (member: Member): void => {
    if (query) onEdit(completeMention(text, query, caret, member.name));
    setSelected(0);
  };

  /** Returns whether the list took the key. */
  const handleKey = (event: KeyboardEvent): boolean => {
    if (!isOpen) return false;
    const chosen = options[current];
    if (event.key === "ArrowDown") setSelected((current + 1) % options.length);
    else if (event.key === "ArrowUp") setSelected((current - 1 + options.length) % options.length);
    else if ((event.key === "Enter" || event.key === "Tab") && !event.shiftKey && chosen) pick(chosen);
    else if (event.key === "Escape") setDismissedAt(query?.start ?? null);
    else return false;
    event.preventDefault();
    return true;
  };

  const combobox = {
    role: "combobox",
    "aria-autocomplete": "list",
    "aria-expanded": isOpen,
    "aria-controls": isOpen ? listId : undefined,
    "aria-activedescendant": isOpen ? optionId(current) : undefined,
  } as const;
  const list = isOpen && (
    <div id={listId} className="mention-list raised" role="listbox" aria-label="Mention">
      {options.map((member, index) => (
        <div
          key={member.id}
          id={optionId(index)}
          className="option"
          role="option"
          tabIndex={-1}
          aria-selected={index === current}
          onPointerDown={(event) => {
            event.preventDefault(); // the composer keeps the focus
            pick(member);
          }}
        >
          <Avatar {...member} size={24} />
          <span>{member.name}</span>
          <TypeBadge type={member.type} />
        </div>
      ))}
    </div>
  );
  return { list, combobox, handleKey };
};
