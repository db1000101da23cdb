import { type KeyboardEvent, useRef, useState } from "react";

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

  if (draft === null) {
    return (
      <button
        type="button"
        ref={(button) => {
          if (takesFocus.current) button?.focus();
          takesFocus.current = false;
        }}
        className="inline-edit hoverable"
        data-struck={isStruck}
        data-empty={words === ""}
        title="Change it"
        aria-label={`${label}: ${words || (placeholder ?? "empty")}. Change it`}
        onClick={() => setDraft(words)}
      >
        {words || placeholder}
      </button>
    );
  }
  return (
    <input
      className="inline-edit-input"
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
};
