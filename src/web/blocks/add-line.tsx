import { type FormEvent, useState } from "react";
import { IconButton } from "../look/icon.tsx";

type AddLineProps = { label: string; onAdd: (words: string) => void };

/** A form of one line that adds something. */
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
    <form className="add-line row" onSubmit={add}>
      <input
        className="input"
        aria-label={label}
        placeholder={label}
        value={words}
        enterKeyHint="done"
        onChange={(event) => setWords(event.target.value)}
      />
      <IconButton type="submit" icon="plus" label={label} disabled={words.trim() === ""} />
    </form>
  );
};
