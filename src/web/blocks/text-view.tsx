import { type KeyboardEvent, useState } from "react";
import type { PlainSchema } from "../../client/index.ts";
import { Button } from "../look/button.tsx";
import { Icon } from "../look/icon.tsx";
import { authorName } from "./block-words.ts";
import type { Part } from "./part.tsx";

type TextPart = Part<Extract<PlainSchema, { type: "text" }>>;

/** The text that is being written, and the version that it began with. */
type Draft = { text: string; onVersion: number };

const rowsOf = (text: string): number => Math.min(18, Math.max(4, text.split("\n").length + 1));

export const TextView = ({ value, may, name, space, version, changedBy, onEdit }: TextPart) => {
  const [draft, setDraft] = useState<Draft | null>(null);
  const text = typeof value === "string" ? value : "";

  if (draft === null) {
    const edit = (): void => setDraft(version === null ? null : { text, onVersion: version });
    return (
      <>
        {text === "" ? <p className="soft">Nothing written yet.</p> : <p className="block-text wrap">{text}</p>}
        {may.change && (
          <Button disabled={version === null} onClick={edit}>
            <Icon name="pencil" size={17} /> Edit
          </Button>
        )}
      </>
    );
  }

  const close = (): void => setDraft(null);
  const save = (): void => {
    if (draft.text !== text) onEdit({ op: "set_text", text: draft.text }, draft.onVersion);
    close();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const isSave = event.key === "Enter" && (event.ctrlKey || event.metaKey);
    if (!isSave && event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    if (isSave) save();
    else close();
  };
  const isOlder = version !== null && version > draft.onVersion;
  return (
    <div className="block-writing stack">
      <textarea
        className="input"
        aria-label={name}
        rows={rowsOf(draft.text)}
        value={draft.text}
        // biome-ignore lint/a11y/noAutofocus: the person has just asked to write here
        autoFocus
        onChange={(event) => setDraft({ ...draft, text: event.target.value })}
        onKeyDown={onKeyDown}
      />
      {isOlder && (
        <div className="notice stack" role="status">
          <p>
            {changedBy === null ? "Somebody" : authorName(changedBy, space)} changed it meanwhile. Saving keeps both.
            Now it says:
          </p>
          <p className="block-text block-excerpt wrap soft">{text}</p>
        </div>
      )}
      <div className="buttons">
        <Button look="primary" onClick={save}>
          Save
        </Button>
        <Button look="plain" onClick={close}>
          Cancel
        </Button>
      </div>
    </div>
  );
};
