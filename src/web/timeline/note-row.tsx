import type { RunNote } from "../../client/index.ts";
import "./note-row.css";

const words: Record<RunNote["kind"], string> = {
  failed: "could not answer",
  silent: "read this and said nothing",
  canceled: "was stopped",
};

/** What came of a run that left no message. */
export const NoteRow = ({ note, name }: { note: RunNote; name: string }) => (
  <p className="note" data-kind={note.kind}>
    {name} {words[note.kind]}
    {note.reason ? `: ${note.reason}` : "."}
  </p>
);
