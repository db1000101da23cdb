import { type FormEvent, useState } from "react";
import { Icon } from "../look/icon.tsx";

type AddLineProps = { label: string; onAdd: (words: string) => void };

/** A line to write something new in. */
export const AddLine = ({ label, onAdd }: AddLineProps) => {
  const [words, setWords] = useState("");
  const add = (event: FormEvent): void => {
    event.preventDefault();
    const text = words.trim();
    if (text === "") return;
    onAdd(text);
    setWords("");
  };
  return (
    <form className="add-line" onSubmit={add}>
      <input
        className="input"
        aria-label={label}
        placeholder={label}
        value={words}
        enterKeyHint="done"
        onChange={(event) => setWords(event.target.value)}
      />
      <button type="submit" className="icon-button" aria-label={label} disabled={words.trim() === ""}>
        <Icon name="plus" />
      </button>
    </form>
  );
};
