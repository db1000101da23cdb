import type { Note } from "../../client/index.ts";
import "./note-row.css";

const words: Record<Note["kind"], string> = {
  failed: "could not answer",
  silent: "read this and said nothing",
  canceled: "was stopped",
  unrouted: "could not decide who is to answer",
};

/** What came of a run that left no message, or of a router that failed. */
export const NoteRow = ({ note, name }: { note: Note; name: string }) => (
  <p className="note" data-kind={note.kind}>
    {name} {words[note.kind]}
    {note.reason ? `: ${note.reason}` : "."}
  </p>
);
