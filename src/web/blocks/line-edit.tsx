import { type KeyboardEvent, useRef, useState } from "react";
import { IconButton } from "../look/button.tsx";

type AddLineProps = { label: string; onAdd: (words: string) => void };

/** A form of one line that adds something. */
export const AddLine = ({ label, onAdd }: AddLineProps) => {
  const [words, setWords] = useState("");
  const text = words.trim();
  const add = (): void => {
    onAdd(text);
    setWords("");
  };
  return (
    <form className="add-line row" action={add}>
      <input
        className="input"
        aria-label={label}
        placeholder={label}
        value={words}
        enterKeyHint="done"
        onChange={(event) => setWords(event.target.value)}
      />
      <IconButton type="submit" icon="plus" label={label} disabled={text === ""} />
    </form>
  );
};

type InlineEditProps = {
  /** For screen readers. */
  label: string;
  words: string;
  /** Shown in place of empty words. */
  placeholder?: string;
  isStruck?: boolean;
  inputMode?: "text" | "decimal";
  onSave: (words: string) => void;
};

/** Words that are edited in place. Enter or leaving saves them, Escape cancels. */
export const InlineEdit = ({ label, words, placeholder, isStruck = false, inputMode, onSave }: InlineEditProps) => {
  const [draft, setDraft] = useState<string | null>(null);
  /** The button takes the focus back from the input when a key has ended the editing. */
  const takesFocus = useRef(false);

  const end = (isKept: boolean, isByKey: boolean): void => {
    const text = draft?.trim() ?? "";
    if (isKept && text !== "" && text !== words) onSave(text);
    setDraft(null);
    takesFocus.current = isByKey;
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.nativeEvent.isComposing || (event.key !== "Enter" && event.key !== "Escape")) return;
    event.preventDefault();
    event.stopPropagation();
    end(event.key === "Enter", true);
  };

  if (draft !== null) {
    return (
      <input
        className="inline-edit-input block-plain"
        aria-label={label}
        value={draft}
        inputMode={inputMode}
        // biome-ignore lint/a11y/noAutofocus: the person has just asked to write here
        autoFocus
        onFocus={(event) => event.target.select()}
        onChange={(event) => setDraft(event.target.value)}
        onBlur={() => end(true, false)}
        onKeyDown={onKeyDown}
      />
    );
  }
  return (
    <button
      type="button"
      ref={(button) => {
        if (takesFocus.current) button?.focus();
        takesFocus.current = false;
      }}
      className={`inline-edit block-plain hoverable ${words === "" ? "soft" : ""}`}
      data-struck={isStruck}
      title="Change it"
      aria-label={`${label}: ${words || (placeholder ?? "empty")}. Change it`}
      onClick={() => setDraft(words)}
    >
      {words || placeholder}
    </button>
  );
};
